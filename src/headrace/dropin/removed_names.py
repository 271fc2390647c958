"""Names that NumPy and Python's library had when TensorFlow 1 was current and have no more.

A TensorFlow-1 program says ``np.float`` or ``collections.Mapping``. From :func:`install` on such a
program finds them, with one warning for each name, and so do installed packages that are built on
TensorFlow (Sonnet, texar). Other installed packages do not: they ask for these names to find out
which version they run with. :func:`uninstall` takes the names back.

    >>> import numpy as np
    >>> np.float            # in the program, with a FutureWarning
    <class 'float'>
"""

from __future__ import annotations

import ast
import base64
import builtins
import collections
import functools
import inspect
import math
import os
import pickle
import re
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.dropin import old_calls, old_library, old_protos, one_element_arrays, package_names

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["install", "uninstall"]

#: What to use instead, by name: an expression, evaluated when the name is used.
_NUMPY = {
    "float": "builtins.float",
    "int": "builtins.int",
    "bool": "builtins.bool",
    "object": "builtins.object",
    "complex": "builtins.complex",
    "str": "builtins.str",
    "float_": "numpy.float64",
    "complex_": "numpy.complex128",
    "string_": "numpy.bytes_",
    "unicode_": "numpy.str_",
    "unicode": "builtins.str",
    "bool8": "numpy.bool_",
    "int0": "numpy.intp",
    "uint0": "numpy.uintp",
    "longfloat": "numpy.longdouble",
    "singlecomplex": "numpy.complex64",
    "Inf": "numpy.inf",
    "Infinity": "numpy.inf",
    "infty": "numpy.inf",
    "PINF": "numpy.inf",
    "NINF": "-numpy.inf",
    "NaN": "numpy.nan",
    "NAN": "numpy.nan",
    "alltrue": "numpy.all",
    "sometrue": "numpy.any",
    "product": "numpy.prod",
    "cumproduct": "numpy.cumprod",
    "round_": "numpy.round",
    "in1d": "numpy.isin",
    "row_stack": "numpy.vstack",
    "trapz": "numpy.trapezoid",
    "asfarray": "lambda a, dtype=float: numpy.asarray(a, dtype)",
    "asscalar": "lambda a: a.item()",
    "rank": "numpy.ndim",
    "mat": "numpy.asmatrix",
    "cast": "Casts(numpy)",
    "find_common_type": "lambda a, s: numpy.result_type(*a, *s)",
    "msort": "lambda a: numpy.sort(a, axis=0)",
    "math": "math",
    "warnings": "warnings",
    "ComplexWarning": "numpy.exceptions.ComplexWarning",
    "RankWarning": "numpy.exceptions.RankWarning",
    "VisibleDeprecationWarning": "numpy.exceptions.VisibleDeprecationWarning",
    "AxisError": "numpy.exceptions.AxisError",
    "DataSource": "numpy.lib.npyio.DataSource",
    "alen": "len",
    "byte_bounds": "numpy.lib.array_utils.byte_bounds",
    "cfloat": "numpy.complex128",
    "longcomplex": "numpy.clongdouble",
    "disp": "lambda message, device=None, linefeed=True: print(message, file=device, "
    "end='\\n' if linefeed else '')",
    "fastCopyAndTranspose": "lambda a: a.T.copy()",
    "issctype": "lambda t: isinstance(t, type) and issubclass(t, numpy.generic)",
    "issubclass_": "issubclass",
    "issubsctype": "numpy.issubdtype",
    "obj2sctype": "lambda t: numpy.dtype(t).type",
    "loads": "pickle.loads",
    "recfromcsv": "lambda f, **k: numpy.genfromtxt(f, **{'delimiter': ',', 'names': True, "
    "'dtype': None, 'case_sensitive': 'lower', **k}).view(numpy.recarray)",
    "recfromtxt": "lambda f, **k: numpy.genfromtxt(f, **{'dtype': None, **k}).view(numpy.recarray)",
    "safe_eval": "ast.literal_eval",
    "sctypes": "scalar_types(numpy)",
    "set_string_function": "lambda f, repr=True: numpy.set_printoptions("
    "override_repr=f if repr else None)",
    "typeDict": "numpy.sctypeDict",
    "NZERO": "-0.0",
    "PZERO": "0.0",
}
_COLLECTIONS = {
    name: f"collections.abc.{name}"
    for name in [
        "Callable",
        "Container",
        "Hashable",
        "ItemsView",
        "Iterable",
        "Iterator",
        "KeysView",
        "Mapping",
        "MappingView",
        "MutableMapping",
        "MutableSequence",
        "MutableSet",
        "Sequence",
        "Set",
        "Sized",
        "ValuesView",
        "Generator",
    ]
}
_TABLES = {
    "numpy": _NUMPY,
    "numpy.core": _NUMPY,
    "numpy.lib": _NUMPY,
    "collections": _COLLECTIONS,
    "time": {"clock": "time.perf_counter"},
    "fractions": {"gcd": "math.gcd"},
    "inspect": {"getargspec": "getargspec"},
    "base64": {"encodestring": "base64.encodebytes", "decodestring": "base64.decodebytes"},
}
_TENSORFLOW = re.compile(rb"^\s*(?:import|from) tensorflow\b", re.MULTILINE)
_PACKAGES = tuple({sysconfig.get_path(p) for p in ("purelib", "platlib", "stdlib", "platstdlib")})


class Casts:
    """``np.cast[dtype](x)``."""

    def __init__(self, numpy: ModuleType) -> None:
        self._asarray = numpy.asarray

    def __getitem__(self, dtype: DType) -> Callable[[Any], Any]:
        return lambda x: self._asarray(x, dtype)


class ArgSpec(NamedTuple):
    """What :func:`getargspec` returns."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """``inspect.getargspec``: names, varargs, keywords and defaults."""
    full = inspect.getfullargspec(function)
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def scalar_types(numpy: ModuleType) -> dict[str, list[type]]:
    """``np.sctypes``: the types of each kind."""
    kinds = {"int": "bhilq", "uint": "BHILQ", "float": "efdg", "complex": "FDG"}
    types = {k: [numpy.dtype(c).type for c in codes] for k, codes in kinds.items()}
    for k in ("int", "uint"):  # two C types may have one width
        types[k] = list({numpy.dtype(t).itemsize: t for t in types[k]}.values())
    return {**types, "others": [bool, object, bytes, str, numpy.void]}


def _moved_out_of_lib() -> dict[str, str]:
    """``np.lib.pad``: numpy.lib had the functions that it defines for numpy."""
    numpy = sys.modules["numpy"]
    public = {n: f"numpy.{n}" for n in numpy.__all__ if not isinstance(getattr(numpy, n), type)}
    return {**public, **_NUMPY}


#: What the tables' expressions use.
_KNOWN = {
    "Casts": Casts,
    "ast": ast,
    "pickle": pickle,
    "scalar_types": scalar_types,
    "warnings": warnings,
    "base64": base64,
    "builtins": builtins,
    "collections": collections,
    "getargspec": getargspec,
    "math": math,
    "time": time,
}
#: Names that a warning was given for.
_told: set[tuple[str, str]] = set()
#: The modules' own ``__getattr__`` (None: it had none), while ours stands in.
_replaced: dict[str, Any] = {}


def install() -> None:
    """Give programs the names back. numpy must be importable; nothing else is imported."""
    import importlib

    for name, table in _TABLES.items():
        if name not in _replaced:
            module = importlib.import_module(name)
            if name == "numpy.lib":
                table = _moved_out_of_lib()
            own = module.__dict__.get("__getattr__")
            _replaced[name] = own
            module.__getattr__ = _finder(module, table, own)  # type: ignore[method-assign]
    old_calls.install(_is_package)
    old_library.install()
    one_element_arrays.install(_is_package)
    package_names.install()
    old_protos.install()


def uninstall() -> None:
    """Undo :func:`install`."""
    old_calls.uninstall()
    old_library.uninstall()
    one_element_arrays.uninstall()
    package_names.uninstall()
    old_protos.uninstall()
    _told.clear()
    for name, own in _replaced.items():
        if own is None:
            del sys.modules[name].__getattr__
        else:
            sys.modules[name].__getattr__ = own  # type: ignore[method-assign]
    _replaced.clear()


def _finder(module: ModuleType, table: dict[str, str], own: Any) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name in table and not _is_package(sys._getframe(1).f_code.co_filename):
            return _find(module, name, table[name])
        if own is not None:
            return own(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name)

    return __getattr__


def _is_package(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package that does not use TensorFlow."""
    if file.startswith("<frozen"):
        return True
    installed = file.startswith(_PACKAGES) or _has_packages(file)
    return installed and not _uses_tensorflow(os.path.dirname(file))


def _has_packages(path: str) -> bool:
    """Whether a path is below some environment's packages, perhaps not this one's."""
    return "site-packages" in path or "dist-packages" in path


@functools.lru_cache(maxsize=1024)
def _uses_tensorflow(folder: str) -> bool:
    """Whether a module in a folder imports TensorFlow. Python's own folders have none."""
    if not _has_packages(folder):
        return False
    return any(_imports_tensorflow(p) for p in sorted(Path(folder).glob("*.py")))


def _imports_tensorflow(file: Path) -> bool:
    try:
        return _TENSORFLOW.search(file.read_bytes()) is not None
    except OSError:
        return False


def _find(module: ModuleType, name: str, expression: str) -> Any:
    if (module.__name__, name) not in _told:
        _told.add((module.__name__, name))
        warnings.warn(
            f"{module.__name__}.{name} is not in this version of {module.__name__}. `headrace run` "
            f"and headrace.dropin give the program {expression.removeprefix('builtins.')}",
            FutureWarning,
            stacklevel=3,
        )
    return eval(expression, {**_KNOWN, "numpy": sys.modules["numpy"]})
