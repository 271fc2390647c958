"""Functions in the configurations of cells, as TensorFlow's Keras stores them: the compiled code,
the defaults and the values of the closure.

    dumped = dump_function(lambda i, o: i + o)
    load_function(dumped)(1, 2)                  # 3

Only configurations of the same Python version can be read: the code is Python's own.
"""

from __future__ import annotations

import base64
import marshal
from collections.abc import Callable
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["dump_function", "load_function"]

Dumped = tuple[str, tuple[Any, ...] | None, tuple[Any, ...] | None]


def dump_function(function: Callable[..., Any]) -> Dumped:
    """(code, defaults, values of the closure) of a Python function."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"Only Python functions can be stored in a configuration, not {function!r}")
    code = base64.encodebytes(marshal.dumps(function.__code__)).decode("ascii")
    closure = tuple(c.cell_contents for c in function.__closure__ or ())
    return code, function.__defaults__, closure or None


def load_function(dumped: Sequence[Any]) -> Callable[..., Any]:
    """The function that :func:`dump_function` stored."""
    code, defaults, closure = dumped
    cells = tuple(CellType(value) for value in closure or ())
    made = marshal.loads(base64.decodebytes(code.encode("ascii")))
    defaults = tuple(defaults) if defaults else None
    return FunctionType(made, globals(), argdefs=defaults, closure=cells or None)
