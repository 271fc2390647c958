"""``np.array`` of lists of different lengths, as NumPy had it when TensorFlow 1 was current.

``np.array([[1, 2], [3]])`` was an array of two lists; NumPy refuses it since 1.24 unless
``dtype=object`` is given. From :func:`install` on ``array``, ``asarray`` and ``asanyarray`` give a
program the array of objects again, with one warning. Calls from installed packages (NumPy, SciPy,
Headrace itself) raise NumPy's error as before. :func:`uninstall` takes it back.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

__all__ = ["install", "uninstall"]

_NAMES = ("array", "asarray", "asanyarray")
_OWN_FILES = str(Path(__file__).resolve().parent.parent)
#: NumPy's functions, while ours stand in for them.
_replaced: dict[str, Callable[..., Any]] = {}
#: Whether the warning was given.
_told: list[bool] = []


def install(is_package: Callable[[str], bool]) -> None:
    """Replace the functions. ``is_package(file)``: whether a source file is not the program's."""
    for name in _NAMES:
        if name not in _replaced:
            _replaced[name] = getattr(np, name)
            setattr(np, name, _tolerant(_replaced[name], is_package))


def uninstall() -> None:
    """Undo :func:`install`."""
    _told.clear()
    for name, own in _replaced.items():
        setattr(np, name, own)
    _replaced.clear()


def _tolerant(make: Callable[..., Any], is_package: Callable[[str], bool]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except ValueError as error:
            typed = len(args) > 1 or kwargs.get("dtype") is not None
            if typed or "inhomogeneous" not in str(error):
                raise
            if _is_foreign(sys._getframe(1), is_package):
                raise
        _warn(make.__name__)
        return make(*args, **{**kwargs, "dtype": object})

    return made


def _is_foreign(frame: FrameType, is_package: Callable[[str], bool]) -> bool:
    file = frame.f_code.co_filename
    return is_package(file) or file.startswith(_OWN_FILES)


def _warn(name: str) -> None:
    if _told:
        return
    _told.append(True)
    warnings.warn(
        f"numpy.{name} of sequences of different lengths is an error in this version of numpy. "
        "`headrace run` and headrace.dropin give the program an array of objects; say dtype=object",
        FutureWarning,
        stacklevel=3,
    )
