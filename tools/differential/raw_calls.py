"""Cases of ``tf.raw_ops``: the samples of tests/samples with an input, an attribute or a dtype
that is another one.

A sample is called with its inputs fed, constant or of unknown shape. Most cases spoil one input or
one attribute; some change the dtype of all inputs that share one. :func:`make_raw_case` gives what
``cases.make_case`` gives, so that the same runner and the same comparison take it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from tools.differential.cases import (
    Arguments,
    Source,
    Value,
    detoured,
    encoded,
    finished,
    numpy_dtype,
    py,
    spoil,
)

#: Families of samples without state of their own and without random numbers.
FAMILIES = (
    "array",
    "basic",
    "image",
    "indexing",
    "linalg",
    "math",
    "nn",
    "parsing",
    "reductions",
    "single_precision",
    "sparse_strings",
)

#: Parameters of ``tf.raw_ops`` that have other names than the op's inputs and attributes.
RENAMED = {
    "reduction_indices": "axis",
    "dim": "axis",
    "split_dim": "axis",
    "squeeze_dims": "axis",
    "t": "x",
    "e": "y",
}

DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int32",
    "int64",
    "int8",
    "uint8",
    "uint16",
    "complex64",
    "complex128",
    "bool",
]


@functools.cache
def samples() -> list[Any]:
    """The samples that ``tf.raw_ops`` can be called with: a Const takes a message instead."""
    found = []
    for family in FAMILIES:
        found += importlib.import_module("tests.samples." + family).SAMPLES
    return [s for s in found if s.op != "Const" and takes(s.op)]


@functools.cache
def takes(op: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of the raw op; they are TensorFlow's."""
    raw_ops = importlib.import_module("headrace").raw_ops
    call = getattr(raw_ops, op, None)
    return {} if call is None else inspect.signature(call).parameters


def parameter(op: str, name: str) -> str:
    """What ``tf.raw_ops`` calls an input or attribute of a sample."""
    if op == "Where" and name == "input":
        return "condition"
    return RENAMED[name] if name in RENAMED and name not in takes(op) else name


def make_raw_case(number: int, seed: int) -> dict[str, Any]:
    """Case ``number`` of a seed: always the same one."""
    source = Source(seed * 1_000_003 + number)
    sample = source.of(samples())
    retyped = _retyping(source, sample)
    inputs: Arguments = []
    for name, given in sorted(sample.inputs.items()):
        const = name in sample.const
        called = parameter(sample.op, name)
        if isinstance(given, (list, tuple)):
            values = [_value(source, a, const, retyped) for a in given]
            inputs.append((called, {"k": "list", "v": values}))
        else:
            inputs.append((called, _value(source, given, const, retyped)))
    attributes = _attributes(sample)
    what = source.rng.random()
    if what < 0.5 and inputs:
        inputs = _with_one_spoiled(source, inputs)
    elif what < 0.7 and attributes:
        attributes = _with_one_spoiled(source, attributes)
    if source.chance(0.08):
        inputs = detoured(source, inputs)
    flags = {"grad": bool(sample.grad), "loose": 10 if sample.tol else 1}
    case = finished(source, number, "raw_ops." + sample.op, [], flags)
    case["kwargs"] = dict(inputs + attributes)
    return case


def _attributes(sample: Any) -> Arguments:
    named = {parameter(sample.op, k): v for k, v in sample.attrs.items()}
    return [(k, _plain(v)) for k, v in sorted(named.items()) if k in takes(sample.op)]


def _plain(value: Any) -> Value:
    if isinstance(value, np.ndarray):
        name = _name(value)
        return {**encoded(value, name), "k": "np"}
    if isinstance(value, bytes):
        return py(value.decode("latin-1"))
    return py(value)


def _name(array: np.ndarray[Any, Any]) -> str:
    return "string" if array.dtype.kind in "OSU" else str(array.dtype)


def _retyping(source: Source, sample: Any) -> dict[str, str]:
    """Another dtype for the inputs of one dtype, in one case of six."""
    if not source.chance(0.17):
        return {}
    flat = [a for v in sample.inputs.values() for a in (v if isinstance(v, (list, tuple)) else [v])]
    names = sorted({_name(np.asarray(a)) for a in flat} - {"string"})
    return {source.of(names): str(source.of(DTYPES))} if names else {}


def _value(source: Source, given: Any, const: bool, retyped: dict[str, str]) -> Value:
    array = np.asarray(given)
    name = _name(array)
    if name in retyped:
        name = retyped[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex to real, infinities to integers
            array = array.astype(numpy_dtype(name))
    if source.special and name.startswith(("float", "bfloat")) and array.size:
        array = np.array(array)
        flat = array.reshape(-1)
        flat[source.int(0, flat.size - 1)] = source.of([np.nan, np.inf, -np.inf, 0.0, -0.0])
    kinds = ["const", "const", "const", "ph"] if const else ["ph", "ph", "ph", "const"]
    return source.carried(array, name, kinds)


def _with_one_spoiled(source: Source, arguments: Arguments) -> Arguments:
    at = source.int(0, len(arguments) - 1)
    name, value = arguments[at]
    return [*arguments[:at], (name, spoil(source, value)), *arguments[at + 1 :]]
