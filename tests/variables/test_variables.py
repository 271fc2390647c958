"""Variables of both kinds: the operations they make, what they hold, how they are written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headrace.ops
from headrace import errors
from headrace.core import convert, dtypes, graph, scopes
from headrace.core.build import apply_op
from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.ops.array import basic
from headrace.ops.state import ref_scatter, state_kernels
from headrace.ops.state import ref_state as state
from headrace.session.session import Session
from headrace.variables import initializers, variable_lists, variable_scope
from headrace.variables import make_template as templates
from headrace.variables import partitioners as partitioning
from headrace.variables import variable as variables
from headrace.variables.ref_variable import RefVariable
from headrace.variables.resource_variable import ResourceVariable, is_resource_variable
from headrace.variables.variable import Variable
from tests.golden import variables_programs

headrace.ops.load_all()

_MODULES: Any = (
    basic,
    graph,
    scopes,
    dtypes,
    convert,
    ref_scatter,
    state,
    variables,
    variable_lists,
    variable_scope,
    partitioning,
    templates,
    initializers,
)
#: The part of ``tf`` that the programs use.
tf: Any = SimpleNamespace(**{n: getattr(m, n) for m in _MODULES for n in m.__all__})
_GOLDEN = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "variables_ops.json")

BOTH = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[Graph]:
    with Graph().as_default() as g:
        yield g


@pytest.fixture(params=["numpy", "reference"])
def session(request: Any, fresh_graph: Graph) -> Iterator[Session]:
    with Session(graph=fresh_graph, executor=request.param) as s:
        yield s


def started(session: Session, *args: Any, **kwargs: Any) -> Any:
    variable = Variable(*args, **kwargs)
    session.run(variable.initializer)
    return variable


# the same operations as TensorFlow --------------------------------------------------------------


def ops_of(program: Callable[[Any], None], g: Graph) -> tuple[list[Any], list[Any]]:
    with open(_GOLDEN) as f:
        want = json.load(f)[program.__name__]
    program(tf)
    return [[op.name, op.type] for op in g.get_operations()], want


_EXACT = [p for p in variables_programs.PROGRAMS if p.__name__ != "dependent_initial_value"]


@pytest.mark.parametrize("program", _EXACT, ids=lambda p: p.__name__)
def test_operations_are_tensorflows(program: Any, fresh_graph: Graph) -> None:
    have, want = ops_of(program, fresh_graph)
    assert have == want


def test_dependent_initial_values_outside_of_cond(fresh_graph: Graph) -> None:
    """The operations inside a tf.cond are control flow's matter."""
    have, want = ops_of(variables_programs.dependent_initial_value, fresh_graph)
    assert [o for o in have if "cond" not in o[0]] == [o for o in want if "cond" not in o[0]]


# what a variable is -----------------------------------------------------------------------------


def test_kinds() -> None:
    ref, resource = Variable([1.0, 2.0]), Variable([1.0, 2.0], use_resource=True)
    assert (
        isinstance(ref, RefVariable) and isinstance(ref, Variable) and not is_resource_variable(ref)
    )
    assert (
        isinstance(resource, ResourceVariable)
        and isinstance(resource, Variable)
        and is_resource_variable(resource)
    )
    assert ref.dtype is dtypes.float32._as_ref and resource.dtype is dtypes.float32
    assert repr(ref) == "<tf.Variable 'Variable:0' shape=(2,) dtype=float32_ref>"
    assert repr(resource) == "<tf.Variable 'Variable_1:0' shape=(2,) dtype=float32>"
    assert ref.op.type == "VariableV2" and resource.op.type == "VarHandleOp"
    assert ref != resource and len({ref, resource, ref}) == 2
    assert ref._shared_name == "Variable"


def test_collections() -> None:
    a = Variable(1.0)
    b = Variable(1.0, trainable=False)
    c = Variable(1.0, collections=[GraphKeys.LOCAL_VARIABLES], trainable=False)
    d = Variable(1.0, synchronization=variables.VariableSynchronization.ON_READ)
    assert tf.global_variables() == [a, b, d]
    assert tf.trainable_variables() == [a]
    assert tf.local_variables() == [c]
    assert tf.global_variables(scope="Variable_1") == [b]


@BOTH
def test_conversion(use_resource: bool) -> None:
    v = Variable([1.0, 2.0], use_resource=use_resource)
    assert convert.is_tensor(v)
    assert convert.convert_to_tensor(v).dtype is dtypes.float32
    with pytest.raises(ValueError, match="Incompatible type conversion requested to type 'int32'"):
        convert.convert_to_tensor(v, dtype=dtypes.int32)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"initial_value must be specified\."):
        Variable()
    with pytest.raises(ValueError, match="initial_value must have a shape specified"):
        Variable(basic.placeholder(dtypes.float32))
    with pytest.raises(
        ValueError, match="collections argument to Variable constructor must be a list"
    ):
        Variable(1.0, collections="variables")
    with pytest.raises(ValueError, match="constraint"):
        Variable(1.0, constraint=3)
    with pytest.raises(ValueError, match="Invalid variable aggregation mode"):
        Variable(1.0, aggregation="sum of sorts")
    with pytest.raises(TypeError, match="not iterable"):
        iter(Variable([1.0]))
    with pytest.raises(AttributeError, match="no attribute 'assign'"):  # as in TF 1.15
        tf.assign(basic.constant(1.0), 2.0)
    with pytest.raises(ValueError, match="Sliced assignment is only supported for variables"):
        basic.constant([1.0, 2.0])[0:1].assign([2.0])
    with pytest.raises(ValueError, match="Sliced assignment is only supported for variables"):
        tf.assign(basic.constant([1.0, 2.0])[0:1], [2.0])
    assert not hasattr(basic.constant([1.0]), "assign")


def test_creator_scope() -> None:
    def creator(next_creator: Any, **kwargs: Any) -> Any:
        kwargs["name"] = "outer_" + kwargs["name"]
        return next_creator(**kwargs)

    with variable_scope.variable_creator_scope(creator):
        assert Variable(1.0, name="v").name == "outer_v:0"
    assert Variable(1.0, name="v").name == "v:0"


@BOTH
def test_proto_round_trip(use_resource: bool) -> None:
    v = Variable([1.0, 2.0], name="v", use_resource=use_resource, trainable=False)
    again = Variable.from_proto(v.to_proto())
    assert type(again) is type(v) and again.name == v.name and not again.trainable
    assert again.initializer is v.initializer and again._as_graph_element() is v._as_graph_element()
    assert again.initial_value is v.initial_value and again.shape == v.shape
    assert v.to_proto(export_scope="elsewhere") is None


# values -----------------------------------------------------------------------------------------


@BOTH
def test_assignments(session: Session, use_resource: bool) -> None:
    v = started(session, [1.0, 2.0], use_resource=use_resource)
    np.testing.assert_array_equal(session.run(v), [1, 2])
    np.testing.assert_array_equal(session.run(v.assign([3.0, 4.0])), [3, 4])
    np.testing.assert_array_equal(session.run(v.assign_add([1.0, 1.0])), [4, 5])
    np.testing.assert_array_equal(session.run(v.assign_sub([0.5, 0.5])), [3.5, 4.5])
    assert session.run(v.assign([0.0, 0.0], read_value=False)) is None
    np.testing.assert_array_equal(session.run(v.value()), [0, 0])
    v.load([7.0, 8.0], session)
    np.testing.assert_array_equal(v.eval(session), [7, 8])


@BOTH
def test_read_after_write(session: Session, use_resource: bool) -> None:
    v = started(session, 1.0, use_resource=use_resource)
    with scopes.control_dependencies([v.assign(5.0)]):
        after = v.read_value()
    assert session.run(after) == 5.0


@BOTH
def test_operators(session: Session, use_resource: bool) -> None:
    v = started(session, [1.0, 2.0], use_resource=use_resource)
    for made, want in [
        (v + 1.0, [2, 3]),
        (1.0 - v, [0, -1]),
        (v * v, [1, 4]),
        (-v, [-1, -2]),
        (v[1], 2),
        (v > 1.5, [False, True]),
        (np.array([1, 1], np.float32) + v, [2, 3]),
    ]:
        np.testing.assert_array_equal(session.run(made), want)


@BOTH
def test_slice_assignment(session: Session, use_resource: bool) -> None:
    v = started(session, np.zeros([3, 2], np.float32), use_resource=use_resource)
    session.run(v[1:].assign(np.ones([2, 2])))
    np.testing.assert_array_equal(session.run(v[0, 1].assign(5.0)), [[0, 5], [1, 1], [1, 1]])
    with pytest.raises(
        errors.UnimplementedError,
        match=r"sliced l-value shape \[2,2\] does not match r-value shape \[\]",
    ):
        session.run(v[1:].assign(1.0))


@BOTH
def test_scatters(session: Session, use_resource: bool) -> None:
    v = started(session, [1.0, 2.0, 3.0], use_resource=use_resource)

    def rows(indices: list[int], values: list[float]) -> IndexedSlices:
        return IndexedSlices(basic.constant(values), basic.constant(indices))

    np.testing.assert_array_equal(session.run(v.scatter_add(rows([0, 0], [1.0, 1.0]))), [3, 2, 3])
    np.testing.assert_array_equal(
        session.run(v.scatter_update(rows([1, 1], [8.0, 9.0]))), [3, 9, 3]
    )
    np.testing.assert_array_equal(session.run(v.scatter_nd_sub([[2]], [1.0])), [3, 9, 2])
    np.testing.assert_array_equal(session.run(tf.scatter_mul(v, [0], [2.0])), [6, 9, 2])
    with pytest.raises(ValueError, match="sparse_delta is not IndexedSlices"):
        v.scatter_add([1.0])
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        session.run(tf.scatter_update(v, [0, 3], [1.0, 1.0]))
    np.testing.assert_array_equal(session.run(v), [6, 9, 2])  # nothing was written


def test_batch_scatter_update(session: Session) -> None:
    v = started(session, np.zeros([2, 3], np.float32))
    done = tf.batch_scatter_update(v, [[0], [2]], [[5.0], [6.0]])
    np.testing.assert_array_equal(session.run(done), [[5, 0, 0], [0, 0, 6]])


@BOTH
def test_counting(session: Session, use_resource: bool) -> None:
    v = started(session, 3, use_resource=use_resource)
    count = v.count_up_to(5)
    assert [session.run(count), session.run(count)] == [3, 4]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 5"):
        session.run(count)
    assert session.run(v) == 5


@BOTH
def test_rows_and_points(session: Session, use_resource: bool) -> None:
    v = started(session, np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=use_resource)
    np.testing.assert_array_equal(session.run(v.sparse_read([2, 0])), [[4, 5], [0, 1]])
    np.testing.assert_array_equal(session.run(v.gather_nd([[2, 1], [0, 0]])), [5, 0])


@BOTH
def test_uninitialized(session: Session, use_resource: bool) -> None:
    v, w = (
        Variable(1.0, use_resource=use_resource),
        Variable(2.0, use_resource=use_resource, name="w"),
    )
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value Variable"):
        session.run(v)
    missing = tf.report_uninitialized_variables()
    check = tf.assert_variables_initialized()
    assert session.run(missing).tolist() == [b"Variable", b"w"]
    assert not session.run(tf.is_variable_initialized(w))
    session.run(w.initializer)
    assert session.run(missing).tolist() == [b"Variable"]
    with pytest.raises(errors.FailedPreconditionError):
        session.run(check)
    session.run(tf.global_variables_initializer())
    assert session.run(missing).tolist() == []
    session.run(check)


def test_shapes_are_checked(session: Session) -> None:
    v = started(session, [1.0, 2.0])
    three = basic.placeholder_with_default(np.zeros(3, np.float32), None)
    with pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
        tf.assign(v, [1.0, 2.0, 3.0])
    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
        session.run(tf.assign(v, three))
    np.testing.assert_array_equal(session.run(tf.assign(v, three, validate_shape=False)), [0, 0, 0])
    never = Variable([1.0, 2.0])
    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
        session.run(tf.assign(never, three))


def test_destroy(session: Session) -> None:
    v = started(session, 1.0, use_resource=True)
    session.run(apply_op("DestroyResourceOp", v.handle))
    assert not session.run(v.is_initialized())
    with pytest.raises(errors.NotFoundError):
        session.run(apply_op("DestroyResourceOp", v.handle, ignore_lookup_error=False))


def test_initial_value_from_another_variable(session: Session) -> None:
    """One run initialises all three, in whatever order."""
    a = Variable([1.0, 2.0], name="a")
    b = Variable(a * 2.0 + a, name="b")
    c = Variable(b.initialized_value() + 1.0, name="c")
    session.run(tf.global_variables_initializer())
    for variable, want in [(a, [1, 2]), (b, [3, 6]), (c, [4, 7])]:
        np.testing.assert_array_equal(session.run(variable), want)


def test_initialized_value(session: Session) -> None:
    v = Variable([1.0, 2.0])
    value = v.initialized_value()
    np.testing.assert_array_equal(session.run(value), [1, 2])
    v.load([5.0, 6.0], session)
    np.testing.assert_array_equal(session.run(value), [5, 6])


# in place ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["update", "add", "sub", "mul", "div", "min", "max"])
@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3), (6, 2, 2)])
def test_inplace_is_the_kernel(how: str, shape: tuple[int, ...]) -> None:
    from headrace.kernels.numpy import numpy_xp

    rng = np.random.default_rng(0)
    ref = rng.normal(size=shape).astype(np.float32)
    rows = np.array([5, 0, 5, 5, 2], np.int32)
    updates = rng.uniform(0.5, 2.0, (5, *shape[1:])).astype(np.float32)
    want = ref.copy()
    for row, update in zip(rows, updates):
        want[row] = {
            "update": lambda a, b: b,
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "min": np.minimum,
            "max": np.maximum,
        }[how](want[row], update)
    before = ref.copy()
    np.testing.assert_array_equal(
        state_kernels.scatter_kernel(how)(numpy_xp, ref, rows, updates), want
    )
    np.testing.assert_array_equal(ref, before)  # a kernel never writes to its inputs
    state_kernels.scatter_inplace(how)(ref, rows, updates)
    np.testing.assert_array_equal(ref, want)


def test_failed_scatter_leaves_the_array() -> None:
    ref = np.zeros(3, np.float32)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"indices\[0,1\] = -1 is not in \[0, 3\)"
    ):
        state_kernels.scatter_inplace("add")(
            ref, np.array([[0, -1]], np.int64), np.ones([1, 2], np.float32)
        )
    with pytest.raises(
        errors.InvalidArgumentError, match=r"indices\[1\] = \[3\] does not index into shape \[3\]"
    ):
        state_kernels.scatter_nd_inplace("add")(
            ref, np.array([[0], [3]], np.int32), np.ones(2, np.float32)
        )
    assert not ref.any()
