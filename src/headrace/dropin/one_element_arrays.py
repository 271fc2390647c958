"""``float(a)``, ``int(a)`` and ``"%.2f" % a`` for arrays of one element.

A loss of shape (1,) or (1, 1) is printed so by many TensorFlow-1 programs. NumPy refuses arrays
with dimensions since 2.4; before, the element was the number. From :func:`install` on programs get
that again, with a warning for each line; installed packages get NumPy's error.

Arrays are a type written in C, whose ``__float__`` Python does not look up: its table of number
functions has a C function. The table gets the function that Python gives classes with a
``__float__`` of their own, and :func:`uninstall` puts NumPy's back. On an interpreter whose types
are not laid out as expected (:func:`_is_laid_out`) nothing is changed, and NumPy's error stands.

    >>> print("loss %.3f" % np.array([[0.5]]))
    loss 0.500
"""

from __future__ import annotations

import ctypes
import struct
import sys
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["install", "uninstall"]

_WORD = ctypes.sizeof(ctypes.c_void_p)
#: The releases of CPython whose type objects were looked at.
_RELEASES = ((3, 10), (3, 14))
#: Places of words in a type object (its sizes, its table of number functions), and of functions in
#: that table.
_SIZES, _NUMBERS = (4, 5), 12
_SLOTS = {"__int__": 16, "__float__": 18}
#: Method -> what was there: the entry of the type's dictionary and the pointer in the table.
_replaced: dict[str, tuple[Any, int]] = {}


class _Convertible:
    """A class whose number functions look for ``__float__`` and ``__int__``."""

    def __float__(self) -> float:
        return 0.0

    def __int__(self) -> int:
        return 0


def install(is_package: Callable[[str], bool]) -> None:
    """Convert arrays of one element in files for which `is_package` is false."""
    import numpy as np

    from headrace.dropin.old_calls import set_method

    if _replaced or _converts(np.zeros(1)) or not _is_laid_out():
        return
    for name, place in _SLOTS.items():
        own = np.ndarray.__dict__[name]
        slot = _slot(np.ndarray, place)
        _replaced[name] = own, slot.value
        set_method(np.ndarray, name, _tolerant(own, name.strip("_"), is_package))
        slot.value = _slot(_Convertible, place).value


def uninstall() -> None:
    """Undo :func:`install`."""
    import numpy as np

    from headrace.dropin.old_calls import set_method

    for name, (own, pointer) in _replaced.items():
        _slot(np.ndarray, _SLOTS[name]).value = pointer
        set_method(np.ndarray, name, own)
    _replaced.clear()


def _word(address: int) -> ctypes.c_size_t:
    return ctypes.c_size_t.from_address(address)


def _slot(kind: type, place: int) -> ctypes.c_size_t:
    """A pointer in a type's table of number functions."""
    return _word(_word(id(kind) + _NUMBERS * _WORD).value + place * _WORD)


def _is_laid_out() -> bool:
    """Whether the functions stand where they are expected.

    A release that was not examined, another interpreter, and builds whose objects have a longer
    head (without the lock, or tracing references) are told apart without reading any memory. Then
    three types must show what is known of them: their sizes and which number functions they have.
    """
    release = sys.version_info[:2]
    known = sys.implementation.name == "cpython" and _RELEASES[0] <= release <= _RELEASES[1]
    if not known or object.__basicsize__ != 2 * _WORD or struct.calcsize("n") != _WORD:
        return False
    import numpy as np

    for kind in (np.ndarray, _Convertible, float):
        if [_word(id(kind) + p * _WORD).value for p in _SIZES] != [
            kind.__basicsize__,
            kind.__itemsize__,
        ]:
            return False
    places = _SLOTS.values()
    return all(_slot(k, p).value for k in (np.ndarray, _Convertible, float) for p in places) and (
        _slot(np.ndarray, _SLOTS["__float__"]).value != _slot(float, _SLOTS["__float__"]).value
    )


def _converts(array: Any) -> bool:
    """Whether NumPy still does it itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            float(array)
        except TypeError:
            return False
    return True


def _tolerant(
    own: Callable[[Any], Any], name: str, is_package: Callable[[str], bool]
) -> Callable[[Any], Any]:
    def convert(self: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        if self.ndim == 0 or self.size != 1 or is_package(caller):
            return own(self)
        warnings.warn(
            f"{name}() of an array of shape {self.shape}, which this version of NumPy refuses. "
            "`headrace run` and headrace.dropin give the program its element",
            FutureWarning,
            stacklevel=2,
        )
        return own(self.reshape(()))

    return convert
