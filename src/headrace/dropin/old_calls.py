"""Calls of NumPy's functions and methods that were right when TensorFlow 1 was current.

From :func:`install` on a program may write them; one warning for each line says what happens:

- ``np.array([[1, 2], [3]])`` (and ``asarray``, ``asanyarray``): rows of different lengths give an
  array of objects. NumPy refuses them since 1.24; text programs keep their sentences so.
- ``np.reshape(a, newshape=s)``: the parameter is called ``shape`` now.
- ``np.percentile(a, q, interpolation="lower")``: the parameter is called ``method`` now; so it is
  for ``quantile``, ``nanpercentile`` and ``nanquantile``.
- ``np.fromstring(b, np.uint8)``: bytes, which ``np.frombuffer`` reads now.
- ``np.array(a, copy=False)`` where a copy must be made.
- ``a.tostring()``, ``a.itemset(...)``, ``a.ptp()``, ``a.newbyteorder()`` of arrays.

The functions are tried as they are first, so that calls which NumPy accepts mean what they meant
without Headrace. Installed packages get NumPy's own errors from the functions.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike


__all__ = ["install", "set_method", "uninstall"]

#: NumPy's own functions while ours stand in, and the methods that were added, by name.
_replaced: dict[str, Callable[..., Any]] = {}
_added: list[tuple[type, str]] = []


def install(is_package: Callable[[str], bool]) -> None:
    """Accept the old calls from files for which `is_package` is false."""
    import numpy as np

    if _replaced:
        return
    for name, old_calls in _FUNCTIONS.items():
        own = _replaced[name] = getattr(np, name)
        setattr(np, name, _tolerant(own, old_calls, is_package))
    for kind in (np.ndarray, np.generic):
        for name, method in _METHODS.items():
            if not hasattr(kind, name):
                set_method(kind, name, method)
                _added.append((kind, name))


def uninstall() -> None:
    """Undo :func:`install`."""
    import numpy as np

    for name, own in _replaced.items():
        setattr(np, name, own)
    for kind, name in _added:
        set_method(kind, name, None)
    _replaced.clear()
    _added.clear()


def _tolerant(
    own: Callable[..., Any],
    old_calls: dict[str, Callable[..., Any]],
    is_package: Callable[[str], bool],
) -> Callable[..., Any]:
    """`own`, with an old call for what fails with a message that has its sign in it."""

    @functools.wraps(own)
    def function(*args: object, **kwargs: object) -> Any:
        try:
            return own(*args, **kwargs)
        except (TypeError, ValueError) as error:
            old_call = next((c for sign, c in old_calls.items() if sign in str(error)), None)
            if old_call is None or is_package(sys._getframe(1).f_code.co_filename):
                raise
            result = old_call(own, error, *args, **kwargs)
        warnings.warn(
            f"np.{own.__name__} is called as before NumPy 2, which refuses this call. `headrace "
            "run` and headrace.dropin give the program what it gave then",
            FutureWarning,
            stacklevel=2,
        )
        return result

    return function


def _array_of_objects(
    own: Callable[..., Any], error: Exception, *args: Any, **kwargs: object
) -> Any:
    """Rows of different lengths, with the dimensions that all rows share.

    NumPy (of any version) tries to broadcast rows that are arrays, such as images of different
    sizes, and fails: these are filled in one by one.
    """
    if len(args) != 1 or "dtype" in kwargs:
        raise error
    try:
        return own(args[0], dtype=object, **kwargs)
    except ValueError:
        import numpy as np

        rows = list(args[0])
        made = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            made[i] = row
        return made


def _reshape(own: Callable[..., Any], error: Exception, a: TensorLike, **kwargs: object) -> Any:
    del error
    shape = kwargs.pop("newshape")
    return own(a, shape, **kwargs)


def _by_method(own: Callable[..., Any], error: Exception, *args: object, **kwargs: object) -> Any:
    del error
    return own(*args, method=kwargs.pop("interpolation"), **kwargs)


def _from_bytes(
    own: Callable[..., Any],
    error: Exception,
    string: Any,
    dtype: Any = float,
    count: int = -1,
    **kwargs: Any,
) -> Any:
    del own
    if kwargs.pop("sep", "") or kwargs:
        raise error
    import numpy as np

    data = string.encode("latin-1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


def _copy_if_needed(
    own: Callable[..., Any], error: Exception, *args: object, **kwargs: object
) -> Any:
    del error
    return own(*args, **{**kwargs, "copy": None})


_METHOD = {"'interpolation'": _by_method}
_RAGGED = {"inhomogeneous shape": _array_of_objects}
#: Function -> what its error says, and what the call meant.
_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "array": {**_RAGGED, "Unable to avoid copy": _copy_if_needed},
    "asarray": _RAGGED,
    "asanyarray": _RAGGED,
    "reshape": {"newshape": _reshape},
    "percentile": _METHOD,
    "quantile": _METHOD,
    "nanpercentile": _METHOD,
    "nanquantile": _METHOD,
    "fromstring": {"binary mode of fromstring is removed": _from_bytes},
}


def _tostring(self: Any, order: str = "C") -> bytes:
    return bytes(self.tobytes(order))


def _itemset(self: Any, *args: object) -> None:
    *index, value = args
    if not index:
        self[...] = value.item() if hasattr(value, "item") else value
    elif len(index) == 1 and not isinstance(index[0], tuple):
        self.flat[index[0]] = value
    else:
        self[index[0] if len(index) == 1 else tuple(index)] = value


def _ptp(self: Any, axis: int | None = None, out: Array | None = None, **kwargs: object) -> Any:
    import numpy as np

    ptp: Callable[..., Any] = np.ptp
    return ptp(self, axis, out, **kwargs)


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


_METHODS: dict[str, Callable[..., Any]] = {
    "itemset": _itemset,
    "newbyteorder": _newbyteorder,
    "ptp": _ptp,
    "tostring": _tostring,
}


def set_method(kind: type, name: str, method: Callable[..., Any] | None) -> None:
    """Add or remove a method of a type that is written in C.

    Such types refuse ``setattr``; the dictionary behind their ``__dict__`` is found through the
    garbage collector, and the interpreter is told that the type has changed.
    """
    members: dict[str, Any] = gc.get_referents(kind.__dict__)[0]
    if method is None:
        members.pop(name, None)
    else:
        members[name] = method
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
