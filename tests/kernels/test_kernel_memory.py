"""What plans rely on: a kernel that is not declared a view returns memory of its own and leaves its
inputs alone.

The numpy executor overwrites values that nobody reads any more and hands results to the user
without a copy; both are right only if every op's ``view`` trait tells the truth. Checked on every
sample of the sample table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.core import dtypes
from headrace.core.opdef import KernelNode, bind_kernel, lookup
from headrace.kernels.numpy import numpy_xp
from headrace.ops import load_all
from tests.golden import store

load_all()


def _samples() -> list[tuple[str, Any]]:
    out = []
    for family in store.families():
        for key, sample in store.load_samples(family):
            opdef = lookup(sample.op)
            traits = opdef.traits
            stateful = (
                traits.stateful
                or traits.random
                or traits.writes
                or traits.reads
                or traits.host_only
            )
            if not stateful and not {"rt", "node"} & set(opdef.kernel_params):
                out.append((f"{family}:{key}", sample))
    return out


SAMPLES = _samples()


def _attrs(sample: Any, opdef: Any, flat: list[Any]) -> dict[str, Any]:
    """Attributes as the graph would have them: given, inferred from the inputs, or default."""
    attrs = {a.name: a.default for a in opdef.attrs.values()}
    for arg in opdef.inputs:
        value = sample.inputs[arg.name]
        first = value[0] if isinstance(value, (list, tuple)) and len(value) else value
        if arg.type_attr and not isinstance(first, (list, tuple)):
            attrs[arg.type_attr] = dtypes.as_dtype(np.asarray(first).dtype)
        if arg.number_attr:
            attrs[arg.number_attr] = len(value)
    for name, value in sample.attrs.items():
        kind = opdef.attrs[name].kind
        if kind == "type":
            value = dtypes.as_dtype(value)
        elif kind == "list(type)":
            value = tuple(dtypes.as_dtype(v) for v in value)
        elif isinstance(value, list):
            value = tuple(value)
        attrs[name] = value
    return attrs


@pytest.mark.parametrize("sample", [s for _, s in SAMPLES], ids=[i for i, _ in SAMPLES])
def test_memory_of_kernels(sample: Any) -> None:
    opdef = lookup(sample.op)
    inputs: list[Any] = []
    for arg in opdef.inputs:
        value = sample.inputs[arg.name]
        inputs += [np.array(v) for v in value] if arg.is_list else [np.array(value)]
    before = [i.copy() for i in inputs]
    node = KernelNode("n", sample.op, _attrs(sample, opdef, inputs))
    with np.errstate(all="ignore"):
        result = bind_kernel(opdef, node, numpy_xp)(*inputs)
    outputs = [
        r
        for r in (result if isinstance(result, (tuple, list)) else (result,))
        if isinstance(r, np.ndarray)
    ]
    for given, kept in zip(inputs, before):
        assert given.tobytes() == kept.tobytes() or given.dtype == object, (
            "the kernel wrote to its input"
        )
    if opdef.traits.view:
        return
    for n, out in enumerate(outputs):
        assert out.flags.writeable or out.ndim == 0, "the result is read-only"
        assert not any(np.shares_memory(out, i) for i in inputs), (
            "the result shares memory with an input"
        )
        assert not any(np.shares_memory(out, o) for o in outputs[:n]), "two results share memory"


@pytest.mark.parametrize("sample", [s for _, s in SAMPLES], ids=[i for i, _ in SAMPLES])
def test_results_of_two_calls_are_independent(sample: Any) -> None:
    """No kernel hands out an array that it keeps (a cached table, a constant)."""
    opdef = lookup(sample.op)
    if opdef.traits.view:
        return
    inputs: list[Any] = []
    for arg in opdef.inputs:
        value = sample.inputs[arg.name]
        inputs += [np.array(v) for v in value] if arg.is_list else [np.array(value)]
    kernel = bind_kernel(opdef, KernelNode("n", sample.op, _attrs(sample, opdef, inputs)), numpy_xp)
    with np.errstate(all="ignore"):
        first, second = kernel(*inputs), kernel(*inputs)
    one = first if isinstance(first, (tuple, list)) else (first,)
    two = second if isinstance(second, (tuple, list)) else (second,)
    for a, b in zip(one, two):
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size and a.ndim:
            assert not np.shares_memory(a, b)
