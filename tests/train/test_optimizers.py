"""Training: ops in place and pure, optimizers, moving averages, schedules and the global step,
against TensorFlow.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace.ops  # noqa: F401 (defines all ops)
from headrace import errors
from headrace.core import dtypes, scopes
from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import KernelNode, OpDef, bind_kernel, lookup
from headrace.kernels.numpy import numpy_xp
from headrace.ops.array import basic
from headrace.ops.training import apply_ops as training_ops
from headrace.ops.training import inplace_updates as training_inplace
from headrace.ops.training import resource_apply as training_resource  # noqa: F401
from headrace.ops.training.sparse_apply import layers
from headrace.train import global_step as steps
from headrace.train import moving_averages, schedules
from headrace.train.optimizers import standard as optimizers
from headrace.train.optimizers.optimizer import Optimizer
from headrace.variables import variable as variables
from tests.golden import store
from tests.golden.training_programs import PROGRAMS, SAME_OPS, SCHEDULES, run_program, run_schedule
from tests.tolerances import assert_close

SAMPLES = store.load_samples("training")


# kernels ----------------------------------------------------------------------------------------


def defaults(opdef: OpDef, given: dict[str, Any]) -> dict[str, Any]:
    return {**{a.name: a.default for a in opdef.attrs.values() if a.has_default}, **given}


def pure(opdef: OpDef, attrs: dict[str, Any], inputs: list[Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        new = bind_kernel(opdef, KernelNode("n", opdef.name, defaults(opdef, attrs)), numpy_xp)(
            *inputs
        )
    return new if len(opdef.traits.writes) > 1 else (new,)


def in_place(opdef: OpDef, attrs: dict[str, Any], inputs: list[Any]) -> list[Any]:
    assert opdef.inplace is not None
    count = len(opdef.traits.writes)
    written = [v.copy() if v.flags.c_contiguous else strided(v) for v in inputs[:count]]
    known = defaults(opdef, attrs)
    with np.errstate(all="ignore"):
        opdef.inplace(*written, *inputs[count:], **{p: known[p] for p in opdef.kernel_params})
    return written


def strided(array: Any) -> Any:
    """The same values, not contiguous."""
    out = (
        np.empty(array.shape[::-1], array.dtype).T
        if array.ndim > 1
        else np.empty(2 * array.size, array.dtype)[::2]
    )
    out[...] = array
    return out


def arrays_of(sample: Any, opdef: OpDef, dtype: Any = None) -> list[Any]:
    inputs = [np.asarray(sample.inputs[a.name]) for a in opdef.inputs]
    return [v.astype(dtype) if dtype is not None and v.dtype.kind == "f" else v for v in inputs]


@pytest.mark.parametrize("key, sample", SAMPLES, ids=[k for k, _ in SAMPLES])
def test_in_place_gives_the_same_values(key: str, sample: Any) -> None:
    opdef = lookup(sample.op)
    inputs = arrays_of(sample, opdef)
    before = [v.copy() for v in inputs]
    wanted = pure(opdef, sample.attrs, inputs)
    found = in_place(opdef, sample.attrs, inputs)
    for new, old in zip(wanted, found):
        assert new.dtype == old.dtype
        # a scaled sum in one step (BLAS) or in another order: the last bits differ
        rounding = {"float32": 1e-5, "float64": 1e-13}.get(new.dtype.name, 4e-3)
        wide = np.complex128 if new.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(old.astype(wide), new.astype(wide), rtol=rounding, atol=rounding)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(inputs, before)), "inputs were written to"


DENSE = [(k, s) for k, s in SAMPLES if s.op.startswith("ResourceApply") and "float32-2x3" in k]


@pytest.mark.parametrize("key, sample", DENSE, ids=[k for k, _ in DENSE])
@pytest.mark.parametrize("shape", [(1500,), (40, 50)])
def test_in_place_in_several_blocks_and_strided(
    key: str, sample: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_inplace, "MAX_WITHOUT_BLOCKS", 8)
    monkeypatch.setattr(training_inplace, "BLOCK", 512)
    monkeypatch.setattr(training_inplace, "_scratch", training_inplace._Scratch())
    opdef = lookup(sample.op)
    rng = np.random.RandomState(1)
    inputs = [
        rng.uniform(0.5, 1.5, shape).astype(np.float32) if v.ndim else v
        for v in arrays_of(sample, opdef)
    ]
    wanted = pure(opdef, sample.attrs, inputs)
    for given in (inputs, [strided(v) if v.ndim else v for v in inputs]):
        for new, old in zip(wanted, in_place(opdef, sample.attrs, given)):
            # BLAS multiplies and adds in one step; what cancels (v - mg**2) shows the difference
            np.testing.assert_allclose(new, old, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("key, sample", DENSE, ids=[k for k, _ in DENSE])
def test_bfloat16_stays_bfloat16(key: str, sample: Any) -> None:
    opdef = lookup(sample.op)
    inputs = arrays_of(sample, opdef, ml_dtypes.bfloat16)
    exact = pure(opdef, sample.attrs, arrays_of(sample, opdef))
    for new, old, wanted in zip(
        pure(opdef, sample.attrs, inputs), in_place(opdef, sample.attrs, inputs), exact
    ):
        assert new.dtype == old.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(
            new.astype(np.float32), old.astype(np.float32), rtol=0.02, atol=0.02
        )
        np.testing.assert_allclose(new.astype(np.float32), wanted, rtol=0.1, atol=0.05)


def test_wrong_values_are_refused_before_anything_is_written() -> None:
    f = np.float32
    var, rate = np.ones(2, f), f(0.1)
    cases = [
        (
            "ApplyGradientDescent",
            [var, rate, np.ones(3, f)],
            r"var and delta do not have the same shape\[2\] \[3\]",
        ),
        (
            "ApplyMomentum",
            [var, np.ones(3, f), rate, var, rate],
            r"var and accum do not have the same shape\[2\] \[3\]",
        ),
        (
            "ApplyAdagrad",
            [var, var, rate, np.ones((2, 1), f)],
            r"var and grad do not have the same shape\[2\] \[2,1\]",
        ),
        ("ApplyAdagrad", [var, var, np.ones(2, f), var], r"lr is not a scalar: \[2\]"),
        (
            "SparseApplyAdagrad",
            [var, var, rate, np.ones(2, f), np.array([0, 2])],
            "Index 2 at offset 1 in indices is out of range",
        ),
        (
            "SparseApplyAdagrad",
            [var, var, rate, np.ones(2, f), np.array([0])],
            "grad must be the same size as indices",
        ),
        (
            "SparseApplyAdagrad",
            [var, var, rate, np.ones(1, f), np.array([[0]])],
            "indices must be one-dimensional",
        ),
    ]
    for name, inputs, message in cases:
        opdef = lookup(name)
        for call in (pure, in_place):
            with pytest.raises(errors.InvalidArgumentError, match=message):
                call(opdef, {}, [np.asarray(i) for i in inputs])


def test_layers_keep_the_order_of_repeated_indices() -> None:
    indices = np.array([4, 1, 4, 4, 0, 1])
    parts = [p.tolist() for p in layers(indices)]
    assert [sorted(p) for p in parts] == [[0, 1, 4], [2, 5], [3]]
    assert list(layers(np.array([3, 1]))) == [slice(None)]


def test_functions_by_tensorflows_names() -> None:
    with Graph().as_default() as graph:
        var, accum = (variables.Variable([1.0, 2.0], name=n) for n in ("var", "accum"))
        out = training_ops.apply_momentum(
            var._ref(), accum._ref(), 0.1, [1.0, 1.0], momentum=0.9, name="step"
        )
    assert out.op.type == "ApplyMomentum" and out.op.name == "step" and out.dtype._is_ref_dtype
    assert out.op in graph.get_operations()
    with pytest.raises(AttributeError, match="apply_nothing"):
        training_ops.apply_nothing  # noqa: B018


def test_shapes_are_checked_while_building() -> None:
    with Graph().as_default():
        ref, resource = (
            variables.Variable([1.0, 2.0]),
            variables.Variable([1.0, 2.0], use_resource=True),
        )
        with pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
            training_ops.apply_gradient_descent(ref._ref(), 0.1, [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
            training_ops.resource_apply_gradient_descent(resource.handle, 0.1, [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match="must be rank 0 but is rank 1"):
            training_ops.apply_gradient_descent(ref._ref(), [0.1], [1.0, 2.0])
        with pytest.raises(TypeError, match="mutable tensor"):
            training_ops.apply_gradient_descent(basic.constant([1.0]), 0.1, [1.0])


# programs against TensorFlow --------------------------------------------------------------------


@functools.cache
def golden() -> Any:
    with gzip.open(os.path.join(store.HERE, "optimizers.json.gz")) as f:
        return json.load(f)


@functools.cache
def tf(executor: str = "numpy") -> Any:
    """As much of the tf namespace as the programs need."""
    from headrace.ops.array import basic, gathering
    from headrace.ops.control import dependencies as control
    from headrace.ops.linalg import matmul as linalg
    from headrace.ops.math import binary as math_binary
    from headrace.ops.math import reductions
    from headrace.ops.math import unary as math_unary
    from headrace.session.session import Session
    from headrace.variables import initializers, variable_lists, variable_scope
    from headrace.variables import partitioners as partitioning
    from headrace.variables import variable as variables

    train = {
        n: getattr(m, n) for m in (optimizers, schedules, moving_averages, steps) for n in m.__all__
    }
    return SimpleNamespace(
        Graph=Graph,
        Session=functools.partial(Session, executor=executor),
        IndexedSlices=IndexedSlices,
        Variable=variables.Variable,
        get_variable=variable_scope.get_variable,
        variable_scope=variable_scope.variable_scope,
        fixed_size_partitioner=partitioning.fixed_size_partitioner,
        placeholder_with_default=basic.placeholder_with_default,
        global_variables=variable_lists.global_variables,
        global_variables_initializer=variable_lists.global_variables_initializer,
        constant=basic.constant,
        identity=basic.identity,
        placeholder=basic.placeholder,
        group=control.group,
        gather=gathering.gather,
        matmul=linalg.matmul,
        maximum=math_binary.maximum,
        multiply=math_binary.multiply,
        square=math_unary.square,
        reduce_mean=reductions.reduce_mean,
        reduce_sum=reductions.reduce_sum,
        zeros_initializer=initializers.zeros_initializer,
        control_dependencies=scopes.control_dependencies,
        name_scope=scopes.name_scope,
        float32=dtypes.float32,
        float64=dtypes.float64,
        int64=dtypes.int64,
        moving_averages=moving_averages,
        train=SimpleNamespace(**train),
    )


def outside_cond(ops: list[list[str]]) -> list[list[str]]:
    """Without what tf.cond makes (an average starts with the initialized value).

    How that looks is not at issue.
    """
    return [op for op in ops if "cond/" not in op[0]]


@pytest.mark.parametrize("executor", ["numpy", "reference"])
@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_program(program: Any, executor: str) -> None:
    values, ops = run_program(tf(executor), program)
    if program.same_ops:
        assert outside_cond(ops) == outside_cond(golden()["ops"][program.name])
    wanted = golden()["values"][program.name]
    assert sorted(values) == sorted(wanted)
    for name, (dtype, value) in wanted.items():
        assert_close(values[name], np.array(value, dtype), rtol=1e-5, what=name)


@pytest.mark.parametrize("name, make", SCHEDULES, ids=[n for n, _ in SCHEDULES])
def test_schedule(name: str, make: Any) -> None:
    rates, ops = run_schedule(tf(), make)
    dtype, wanted = golden()["values"]["schedule/" + name]
    assert_close(rates, np.array(wanted, dtype), rtol=1e-5)
    if name in SAME_OPS:
        assert ops == golden()["ops"]["schedule/" + name]


# the base class ---------------------------------------------------------------------------------


class Halving(Optimizer):
    """A user's optimizer.

    Halves what it is given and counts, with a slot and a variable of its own.
    """

    def __init__(self) -> None:
        super().__init__(False, "Halving")

    def _create_slots(self, var_list: Any) -> None:
        self._create_non_slot_variable(1.0, "steps", var_list[0])
        for v in var_list:
            self._zeros_slot(v, "seen", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        seen = self.get_slot(var, "seen").assign_add(grad)
        return tf().group(var.assign_sub(grad * 0.5), seen)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return var.scatter_sub(grad)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        count = self._get_non_slot_variable("steps", update_ops[0].graph)
        with scopes.control_dependencies(update_ops):
            return tf().group(count.assign_add(1.0), *update_ops, name=name_scope)


@pytest.mark.parametrize("resource", [False, True])
def test_subclass_of_a_user(resource: bool) -> None:
    with Graph().as_default() as graph:
        w = variables.Variable([1.0, 2.0], name="w", use_resource=resource)
        optimizer = Halving()
        train = optimizer.apply_gradients([(basic.constant([2.0, 4.0]), w)])
        assert train.name == "Halving" and graph.get_collection(GraphKeys.TRAIN_OP) == [train]
        assert optimizer.get_slot_names() == ["seen"] and optimizer.get_name() == "Halving"
        assert optimizer.get_slot(w, "seen").op.name == "w/Halving"
        assert optimizer.get_slot(w, "other") is None
        assert [v.op.name for v in optimizer.variables()] == ["steps", "w/Halving"]
        with tf().Session() as session:
            session.run(tf().global_variables_initializer())
            session.run(train)
            np.testing.assert_array_equal(session.run(w), [0.0, 0.0])
            np.testing.assert_array_equal(session.run(optimizer.get_slot(w, "seen")), [2.0, 4.0])
            assert session.run(optimizer.variables()[0]) == 2.0
    with Graph().as_default():
        assert optimizer.variables() == []


def test_sparse_gradient_of_a_user_has_unique_indices() -> None:
    with Graph().as_default():
        w = variables.Variable([1.0, 2.0, 3.0], name="w")
        slices = IndexedSlices(basic.constant([1.0, 10.0, 2.0]), basic.constant([0, 2, 0]))
        train = Halving().apply_gradients([(slices, w)])
        with tf().Session() as session:
            session.run(tf().global_variables_initializer())
            session.run(train)
            np.testing.assert_array_equal(session.run(w), [-2.0, 2.0, -7.0])


def test_errors_of_the_base_class() -> None:
    sgd = optimizers.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        Optimizer(False, "")
    with Graph().as_default():
        w = variables.Variable([1.0, 2.0], name="w")
        with pytest.raises(ValueError, match=r"No variables provided\."):
            sgd.apply_gradients([])
        with pytest.raises(
            ValueError, match=r"No gradients provided for any variable: \[.*'w:0'.*\]\."
        ):
            sgd.apply_gradients([(None, w)])
        with pytest.raises(NotImplementedError, match="Trying to update a Tensor"):
            sgd.apply_gradients([(basic.constant([1.0]), basic.constant([1.0]))])
        with pytest.raises(NotImplementedError):
            Optimizer(False, "Base").apply_gradients([(basic.constant([1.0, 2.0]), w)])
        bounded = variables.Variable([1.0, 2.0], constraint=lambda v: v)
        slices = IndexedSlices(basic.constant([1.0]), basic.constant([0]))
        with pytest.raises(
            RuntimeError, match="Cannot use a constraint function on a sparse variable"
        ):
            sgd.apply_gradients([(slices, bounded)])
        with pytest.raises(ValueError, match="gate_gradients must be one of"):
            sgd.compute_gradients(w * 2.0, gate_gradients=7)
        with pytest.raises(ValueError, match=r"Invalid type tf.int32 for .*, expected"):
            sgd.compute_gradients(basic.constant(1))
        with pytest.raises(ValueError, match="No variables to optimize"):
            sgd.compute_gradients(basic.constant(1.0), var_list=[])
        with pytest.raises(
            ValueError, match="No gradients provided for any variable, check your graph"
        ):
            sgd.minimize(basic.constant(1.0))
    for make in (optimizers.AdagradOptimizer, optimizers.ProximalAdagradOptimizer):
        with pytest.raises(ValueError, match=r"initial_accumulator_value must be positive: 0\.0"):
            make(0.1, initial_accumulator_value=0.0)
    with pytest.raises(
        ValueError, match=r"learning_rate_power 0\.500000 needs to be negative or zero"
    ):
        optimizers.FtrlOptimizer(0.1, learning_rate_power=0.5)


@pytest.mark.parametrize("gate", [Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH])
def test_gates_give_the_same_gradients(gate: int) -> None:
    with Graph().as_default():
        a, b = variables.Variable([2.0]), variables.Variable([3.0], use_resource=True)
        unused = variables.Variable([1.0])
        pairs = optimizers.AdamOptimizer().compute_gradients(a * b, gate_gradients=gate)
        assert [v for _, v in pairs] == [a, b, unused] and pairs[2][0] is None
        with tf().Session() as session:
            session.run(tf().global_variables_initializer())
            assert [float(session.run(g)[0]) for g, _ in pairs[:2]] == [3.0, 2.0]


# averages and the global step -------------------------------------------------------------------


def test_names_of_averages() -> None:
    with Graph().as_default() as graph:
        w, b = (
            variables.Variable([1.0], name="w"),
            variables.Variable([1.0], name="b", trainable=False),
        )
        ema = moving_averages.ExponentialMovingAverage(0.9)
        assert ema.average(w) is None and ema.average_name(w) == "w/ExponentialMovingAverage"
        ema.apply()
        shadow = ema.average(w)
        assert shadow.op.name == ema.average_name(w) == "w/ExponentialMovingAverage"
        assert graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES) == [w]
        assert ema.variables_to_restore() == {"w/ExponentialMovingAverage": w, "b": b}
        assert not shadow.trainable
        with pytest.raises(TypeError, match="The variables must be half, float, or double"):
            ema.apply([variables.Variable([1], name="n")])


def test_global_step() -> None:
    with Graph().as_default() as graph:
        assert steps.get_global_step() is None
        step = steps.get_or_create_global_step()
        assert step.op.name == "global_step" and step.dtype.base_dtype is dtypes.int64
        assert steps.get_global_step(graph) is step is steps.get_or_create_global_step()
        assert not step.trainable and step in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        with pytest.raises(ValueError, match='"global_step" already exists'):
            steps.create_global_step()
        more = steps._increment_global_step(2)
        with tf().Session() as session:
            session.run(tf().global_variables_initializer())
            session.run(more)
            assert steps.global_step(session, step) == 2
    with Graph().as_default():
        variables.Variable(0, name="global_step")
        assert steps.get_global_step().name == "global_step:0"
        with pytest.raises(TypeError, match="does not have integer type"):
            steps.assert_global_step(basic.constant(1.0))
        with pytest.raises(TypeError, match="is not scalar"):
            steps.assert_global_step(basic.constant([1]))
        with pytest.raises(TypeError, match="must be a Variable or Tensor"):
            steps.assert_global_step("step")


def test_piecewise_constant_refuses_what_does_not_fit() -> None:
    with Graph().as_default():
        with pytest.raises(ValueError, match="1 less than the length of values"):
            schedules.piecewise_constant(1, [1, 2], [1.0, 2.0])
        with pytest.raises(ValueError, match="must have the same dtype as x"):
            schedules.piecewise_constant(1, [1.5], [1.0, 2.0])
        with pytest.raises(ValueError, match="Values must have elements all with the same dtype"):
            schedules.piecewise_constant(1, [1], [1.0, 2])


def test_noisy_schedule_stays_near_the_plain_one() -> None:
    with Graph().as_default():
        noisy = schedules.noisy_linear_cosine_decay(0.1, 5, 30, initial_variance=1e-6)
        plain = schedules.linear_cosine_decay(0.1, 5, 30)
        with tf().Session() as session:
            a, b = session.run([noisy, plain])
            assert a != b and abs(a - b) < 1e-2
