"""Seeded random cases: calls of the public API with arguments that are mostly right.

A case is plain JSON, so that both libraries read the same one:

    {"id": 3, "fn": "reduce_sum", "args": [VALUE, ...], "kwargs": {name: VALUE},
     "grad": true, "seed": null, "compare": true}

``fn`` is a path below ``tf``, or ``method:NAME`` for a method of the first argument. A VALUE has a
kind ``k``: ``py`` (a Python literal), ``float`` (text, for nan and inf), ``bytes``, ``dtype``,
``np`` (an array), ``nested`` (the array as nested lists), ``const``, ``ph`` (a fed placeholder with
a ``static`` shape), ``var``, ``list``, ``tuple``, ``shape``, ``slice``, ``ellipsis``, ``sparse``,
``slices`` (IndexedSlices), ``call`` (the result of another call: a cell, a dataset, an optimizer),
``fn`` (a function by its name in runner.py), ``made`` (another value, passed through a branch, a
loop, a variable: runner.ways_of). A placeholder may have ``fed``: an array that is fed although it
does not fit. ``runs`` counts the runs in one session; after the last one the variables are read.
``pick`` takes one part of the result.

The catalogue (catalogue_*.py) describes valid calls only: functions of a :class:`Source` that
return named arguments. :func:`make_case` then chooses positional or keyword form and, for a third
of the cases, spoils one argument: another dtype, rank, size, an axis or a number out of range.
"""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

Value = dict[str, Any]
Arguments = list[tuple[str, Value]]
Entry = Callable[["Source"], Arguments]

HALF, SINGLE, DOUBLE = "float16", "float32", "float64"
FLOATS = ["float16", "float32", "float32", "float32", "float64", "float64", "bfloat16"]
INTS = [
    "int32",
    "int32",
    "int32",
    "int64",
    "int64",
    "int8",
    "int16",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
COMPLEX = ["complex64", "complex128"]
NUMBERS = FLOATS + ["int32", "int32", "int64", "int64", "int8", "uint8"] + COMPLEX
REALS = FLOATS + INTS
EVERY = [*sorted({*FLOATS, *INTS, *COMPLEX}), "bool", "string"]

#: name → (entry, flags)
CATALOGUE: dict[str, list[tuple[Entry, dict[str, Any]]]] = {}


def op(*names: str, **flags: Any) -> Callable[[Entry], Entry]:
    """Register an entry for functions of one signature.

    Flags: grad, seeded, compare, loose, positional, runs, pick.
    """

    def register(entry: Entry) -> Entry:
        for name in names:
            CATALOGUE.setdefault(name, []).append((entry, flags))
        return entry

    return register


def numpy_dtype(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def py(value: Any) -> Value:
    return {"k": "py", "v": value}


def dtype(name: str) -> Value:
    return {"k": "dtype", "v": name}


def encoded(array: np.ndarray[Any, Any], name: str) -> Value:
    """dtype, shape and data of an array, without a kind."""
    if name == "string":
        data: Any = [base64.b64encode(x).decode() for x in array.reshape(-1).tolist()]
    else:
        data = base64.b64encode(np.ascontiguousarray(array, numpy_dtype(name)).tobytes()).decode()
    return {"dtype": name, "shape": list(array.shape), "data": data}


class Source:
    """Where random arguments come from."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.np = np.random.RandomState(seed % 2**32)
        #: This case may contain NaN, infinities, zeros of both signs, denormals and extremes.
        self.special = self.rng.random() < 0.2

    # choices ------------------------------------------------------------------------------------

    def one(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def of(self, options: Sequence[Any]) -> Any:
        return self.rng.choice(options)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def int(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def size(self) -> int:
        return self.of([0, 1, 1, 2, 2, 3, 3, 4, 5])

    def dims(self, low: int = 0, high: int = 4) -> list[int]:
        sizes = [self.size() for _ in range(self.int(low, high))]
        return sizes if self.chance(0.15) else [max(1, s) for s in sizes]

    def broadcastable(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts with the given one."""
        cut = list(shape)[self.int(0, len(shape)) :] if self.chance(0.4) else list(shape)
        return [1 if self.chance(0.2) else n for n in cut]

    def axis(self, rank: int) -> int:
        if rank == 0:
            return self.one(0, -1)
        return self.int(-rank, rank - 1)

    # arrays -------------------------------------------------------------------------------------

    def array(self, name: str, shape: Sequence[int], low: float = -4, high: float = 4) -> Any:
        """Random numbers of a dtype; strings and bools too."""
        n = int(np.prod(shape, dtype=np.int64))
        if name == "string":
            words = [
                b"",
                b"a",
                b"hello",
                b"Hi there",
                b"1.5",
                b"-7",
                b"a,b,,c",
                "h\u00e9".encode(),
                b"\xff\x00z",
            ]
            out = np.empty(n, object)
            for i in range(n):
                out[i] = self.of(words)
            return out.reshape(shape)
        if name == "bool":
            return (self.np.rand(n) < 0.5).reshape(shape)
        kind = numpy_dtype(name)
        if name.startswith("complex"):
            flat = (self.np.uniform(low, high, n) + 1j * self.np.uniform(low, high, n)).astype(kind)
        elif name.startswith(("int", "uint")):
            flat = self.np.randint(
                max(int(low), 0) if name[0] == "u" else int(low), int(high) + 1, n
            )
            flat = flat.astype(kind)
        else:
            flat = self.np.uniform(low, high, n).astype(kind)
        if self.special and n:
            self._put_specials(flat, name)
        return flat.reshape(shape)

    def _put_specials(self, flat: Any, name: str) -> None:
        if name.startswith(("int", "uint")):
            limits = np.iinfo(flat.dtype)
            values = [limits.min, limits.max, 0]
        else:
            values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40 if name != HALF else 1e-7]
        for _ in range(self.int(1, 2)):
            flat[self.int(0, flat.size - 1)] = self.of(values)

    def value(self, name: str, shape: Sequence[int], low: float = -4, high: float = 4) -> Value:
        """An argument that holds random numbers: fed, constant, array or nested list."""
        return self.carried(self.array(name, shape, low, high), name)

    def carried(self, array: Any, name: str, kinds: Sequence[str] = ()) -> Value:
        v = encoded(np.asarray(array), name)
        v["k"] = self.of(kinds or ["ph", "ph", "ph", "const", "const", "np", "nested"])
        if v["k"] == "nested" and (name in ("bfloat16",) or name.startswith("complex")):
            v["k"] = "np"
        if v["k"] == "np" and name == "bfloat16":
            v["k"] = "const"
        if v["k"] == "ph":
            v["static"] = self.static(v["shape"])
        return v

    def static(self, shape: Sequence[int]) -> list[int | None] | None:
        how = self.rng.random()
        if how < 0.55:
            return list(shape)
        if how < 0.75:
            return [None if self.chance(0.5) else n for n in shape]
        return None

    def variable(self, name: str, shape: Sequence[int], low: float = -4, high: float = 4) -> Value:
        v = encoded(self.array(name, shape, low, high), name)
        v.update(k="var", resource=self.chance(0.4))
        return v

    def ints(self, values: Any, name: str = "int32") -> Value:
        """Indices, shapes, axes: Python values or tensors."""
        if self.chance(0.5):
            return py(values)
        return self.carried(np.array(values, name), name)

    def indices(self, shape: Sequence[int], below: int, name: str | None = None) -> Value:
        name = name or self.one("int32", "int64")
        array = self.np.randint(0, max(below, 1), int(np.prod(shape, dtype=np.int64)))
        return self.carried(array.reshape(shape).astype(name), name)

    def reals(self) -> str:
        return str(self.of(REALS))

    def floats(self) -> str:
        return str(self.of(FLOATS))


# cases --------------------------------------------------------------------------------------------


def make_case(number: int, seed: int) -> dict[str, Any]:
    """Case ``number`` of a seed: always the same one."""
    source = Source(seed * 1_000_003 + number)
    names = sorted(CATALOGUE)
    name = names[source.rng.randrange(len(names))]
    entry, flags = source.of(CATALOGUE[name])
    arguments = entry(source)
    if source.chance(0.3):
        arguments = spoiled(source, arguments)
    if source.chance(0.12):
        arguments = detoured(source, arguments)
    return finished(source, number, name, arguments, flags)


def finished(
    source: Source, number: int, name: str, arguments: Arguments, flags: dict[str, Any]
) -> dict[str, Any]:
    """The case, with a random number of the arguments given by position."""
    unnamed = [i for i, (n, _) in enumerate(arguments) if not n]
    least = max(flags.get("positional", 0), unnamed[-1] + 1 if unnamed else 0)
    most = next((i for i, (n, _) in enumerate(arguments) if n.startswith("*")), len(arguments))
    at = source.int(least, most) if least < most and source.chance(0.5) else most
    return {
        "id": number,
        "fn": name,
        "args": [v for _, v in arguments[:at]],
        "kwargs": {n.lstrip("*"): v for n, v in arguments[at:]},
        "grad": bool(flags.get("grad")) and source.chance(0.4),
        "seed": 7 if flags.get("seeded") else None,
        "compare": flags.get("compare", True),
        "loose": flags.get("loose", 1),
        **{k: flags[k] for k in ("runs", "pick") if k in flags},
    }


#: Names in runner.ways_of.
WAYS = [
    "cond",
    "not_cond",
    "while",
    "open_while",
    "case",
    "function",
    "py_func",
    "transposed",
    "default",
    "stacked",
    "concatenated",
    "ref",
    "resource",
    "ordered",
]


def detoured(source: Source, arguments: Arguments) -> Arguments:
    """The arguments with one tensor passed through control flow, a variable or another op."""
    places = [i for i, (_, v) in enumerate(arguments) if v["k"] in ("ph", "const")]
    if not places:
        return arguments
    at = source.of(places)
    made = {"k": "made", "how": source.of(WAYS), "v": arguments[at][1]}
    return [*arguments[:at], (arguments[at][0], made), *arguments[at + 1 :]]


# spoiling -----------------------------------------------------------------------------------------


def spoiled(source: Source, arguments: Arguments) -> Arguments:
    """The arguments with one of them made wrong (or unusual)."""
    arguments = copy.deepcopy(arguments)
    places = [i for i, (_, v) in enumerate(arguments) if v["k"] not in ("dtype", "ellipsis")]
    if not places:
        return arguments
    at = source.of(places)
    name, v = arguments[at]
    arguments[at] = (name, spoil(source, v))
    return arguments


def spoil(source: Source, v: Value) -> Value:
    """The value made wrong or unusual: another dtype, rank, size or number."""
    kind = v["k"]
    if kind in ("ph", "const", "np", "nested", "var"):
        return _spoil_array(source, v)
    if kind in ("list", "tuple", "slice") and v["v"]:
        i = source.int(0, len(v["v"]) - 1)
        if v["v"][i] is not None:
            v["v"][i] = spoil(source, v["v"][i])
        return v
    if kind in ("sparse", "slices"):
        part = source.of([p for p in ("indices", "values", "shape") if p in v])
        v[part] = spoil(source, v[part])
        return v
    if kind == "py":
        return _spoil_python(source, v)
    return v


def _spoil_python(source: Source, v: Value) -> Value:
    x = v["v"]
    if isinstance(x, bool):
        return py(source.one(not x, None, 3, "yes"))
    if isinstance(x, int):
        return py(source.one(-1, -2, 0, x + 1, 9, -9, 1.5, "1", None, [x], 2**33))
    if isinstance(x, float):
        return py(source.one(-1.0, 0.0, 2, "x", None, [x], 1e30))
    if isinstance(x, str):
        return py(source.one("nonsense", x.lower(), 3, None, ""))
    if isinstance(x, list) and x:
        how = source.int(0, 4)
        if how == 0:
            return py([*x, 1])
        if how == 1:
            return py(x[:-1])
        if how == 2:
            return py([*x[:-1], source.one(-1, -3, 7, 0, 1.5, "a", None)])
        if how == 3:
            return py(x[0])
        return py([x[0]] * len(x))
    if x is None:
        return py(source.one(0, 1, -1))
    return v


def _spoil_array(source: Source, v: Value) -> Value:
    from tools.differential.render import plain_array

    array, name = plain_array(v), v["dtype"]
    if v["k"] == "ph" and source.chance(0.2):
        return {**v, "fed": _unfit(source, v)}
    how = source.int(0, 6)
    if how <= 1:  # another dtype
        name = source.of(EVERY)
        array = source.array(name, array.shape, 0, 3)
    elif how == 2:  # one rank more
        array = array.reshape((1, *array.shape))
    elif how == 3 and array.ndim:  # one rank less
        array = array[0] if array.shape[0] else array.reshape(0)
    elif how == 4 and array.ndim:  # another size
        axis = source.int(0, array.ndim - 1)
        if array.shape[axis] > 1 and source.chance(0.5):
            array = np.take(array, range(array.shape[axis] - 1), axis)
        else:
            array = np.concatenate([array, array], axis)
    elif how == 5 and array.ndim:  # nothing along one axis
        array = np.take(array, [], source.int(0, array.ndim - 1))
    elif name.startswith("int") and array.size:  # out of range
        array = array.copy()
        array.reshape(-1)[source.int(0, array.size - 1)] = source.one(-1, -3, 7, 100)
    else:
        return v
    out = encoded(np.asarray(array), name)
    out["k"] = "const" if v["k"] in ("np", "nested") and name in ("bfloat16",) else v["k"]
    if out["k"] == "nested" and name.startswith("complex"):
        out["k"] = "np"
    if out["k"] == "ph":
        out["static"] = source.static(out["shape"])
    if out["k"] == "var":
        out["resource"] = v["resource"]
    return out


def _unfit(source: Source, v: Value) -> Value:
    """An array that does not fit the placeholder: another dtype, rank or size."""
    from tools.differential.render import plain_array

    array = plain_array(v)
    how = source.int(0, 3)
    if how == 0 or v["static"] is None:
        name = source.of([n for n in EVERY if n != "bfloat16"])
        return encoded(source.array(name, array.shape, 0, 3), name)
    if how == 1:
        return encoded(array.reshape((1, *array.shape)), v["dtype"])
    if how == 2 and array.ndim:
        return encoded(np.concatenate([array, array]), v["dtype"])
    return encoded(array.reshape(-1), v["dtype"])
