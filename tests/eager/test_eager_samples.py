"""The sample table, eagerly.

Every op gives what a session gives, and a tape what ``tf.gradients`` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headrace.autodiff.gradients import gradients
from headrace.core import dtypes
from headrace.core.build import apply
from headrace.core.opdef import Arg
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import EAGER, STATE, eager_mode
from headrace.eager.eager_tensor import EagerTensor
from headrace.eager.eager_variables import EagerVariable
from headrace.eager.tape import GradientTape
from headrace.session.session import Session
from tests.ops.test_samples import (
    GRAD_IDS,
    IDS,
    PAIRS,
    WITH_GRAD,
    Case,
    _dtype,
    _fetch,
    _flat,
    cotangent,
    is_variable,
)
from tests.tolerances import assert_close


def by_reference(sample: Any) -> bool:
    return any(arg.is_ref for arg in Case(sample).opdef.inputs)


@pytest.fixture(autouse=True)
def fresh_generators() -> Iterator[None]:
    EAGER.seed = None
    yield


class EagerCase:
    """A sample's inputs as eager tensors and variables, and what the op gives for them."""

    def __init__(self, case: Case, watched: list[str] | None = None) -> None:
        self.case = case
        self.variables: dict[str, EagerVariable] = {}
        opdef, sample = case.opdef, case.sample
        with eager_mode():
            self.inputs = {a.name: self._input(a, sample.inputs[a.name]) for a in opdef.inputs}
            attrs = {
                k: case._attr(k, v) for k, v in sample.attrs.items() if k not in opdef.inferred
            }
            self.tape = GradientTape(persistent=True)
            with self.tape:
                for name in watched or ():
                    for x in _flat(self.inputs[name]):
                        self.tape.watch(self.variables.get(name, x))
                result = apply(opdef, *(self.inputs[a.name] for a in opdef.inputs), **attrs)
        self.outputs: list[Any] = []
        for part in result if isinstance(result, (tuple, list)) else [result]:
            self.outputs += part if isinstance(part, list) else [] if part is None else [part]

    def _input(self, arg: Arg, value: Any) -> Any:
        if arg.is_list:
            return [self._tensor(arg, self.case.array(v)) for v in value]
        return self._tensor(arg, self.case.array(value))

    def _tensor(self, arg: Arg, array: Any) -> Any:
        tensor = EagerTensor(np.array(array), _dtype(array))
        if is_variable(arg):
            self.variables[arg.name] = variable = EagerVariable(tensor)
            return variable.handle
        return tensor


@pytest.mark.parametrize(("family", "key", "sample"), PAIRS, ids=IDS)
def test_values(family: str, key: str, sample: Any) -> None:
    case = Case(sample)
    if by_reference(sample):
        with pytest.raises(RuntimeError, match="does not support eager execution"):
            with eager_mode():
                apply(case.opdef, *(_eager_input(a, sample) for a in case.opdef.inputs))
        return
    with Session(graph=case.graph) as session:
        wanted = case.run(session, case.outputs or [case.op], sample.inputs)
        wanted = wanted if case.outputs else []
        after = (
            {n: session.run(v.read) for n, v in case.variables.items()}
            if case.opdef.traits.writes and sample.op != "DestroyResourceOp"
            else {}
        )
    eager = EagerCase(case)
    assert len(eager.outputs) == len(wanted)
    for i, (got, want, tensor) in enumerate(zip(eager.outputs, wanted, case.outputs)):
        assert isinstance(got, EagerTensor)
        assert got.dtype is tensor.dtype.base_dtype
        if sample.check is None and not (case.opdef.traits.random and _unseeded(case)):
            assert_close(got.numpy(), want, sample.tol, f"output {i}")
        else:
            assert got.shape.as_list() == list(np.shape(want))
    for name, value in after.items():
        have = STATE.values[eager.variables[name].handle._static]
        assert_close(have, value, sample.tol, f"{name} afterwards")


def _unseeded(case: Case) -> bool:
    return not any(case.op._attrs.get(a) for a in ("seed", "seed2"))


def _eager_input(arg: Arg, sample: Any) -> Any:
    value = sample.inputs[arg.name]
    make = lambda v: EagerTensor(np.array(v), _dtype(np.asarray(v)))
    return [make(v) for v in value] if arg.is_list else make(value)


@pytest.mark.parametrize(("family", "key", "sample"), WITH_GRAD, ids=GRAD_IDS)
@pytest.mark.usefixtures("any_float_type")
def test_gradient(family: str, key: str, sample: Any) -> None:
    if by_reference(sample):
        pytest.skip("references are for graphs")
    case = Case(sample, double=not sample.single)
    chosen = range(len(case.outputs)) if sample.grad_outputs is None else sample.grad_outputs
    picked = [i for i in chosen if case.outputs[i].dtype._kind in "fc"]
    ys = [case.outputs[i] for i in picked]
    eager = EagerCase(case, sample.grad)
    weights = [cotangent(np.asarray(eager.outputs[i].numpy()), n) for n, i in enumerate(picked)]
    with Session(graph=case.graph) as session, case.graph.as_default():
        for name in sample.grad:
            tensors: list[Tensor] = _flat(case.tensors[name])
            found = gradients(ys, tensors, grad_ys=weights)
            wanted = case.run(session, [_fetch(g) for g in found], sample.inputs)
            sources = _flat(eager.variables.get(name, eager.inputs[name]))
            with eager_mode():
                targets = [eager.outputs[i] for i in picked]
                got = eager.tape.gradient(targets, sources, output_gradients=weights)
                arrays = [np.asarray(_fetch(g)) for g in got]
            for i, (have, want) in enumerate(zip(arrays, wanted)):
                assert_close(have, want, sample.tol, f"gradient {i} of {name}")


def test_state_is_freed() -> None:
    before = len(STATE.values)
    with eager_mode():
        variable = EagerVariable(EagerTensor(np.zeros(3, np.float32), dtypes.float32))
    assert len(STATE.values) == before + 1
    del variable
    assert len(STATE.values) == before
