"""Variable scopes, get_variable, partitioners and templates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace.ops
from headrace.core import dtypes
from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.ops.array.basic import constant, identity
from headrace.session.session import Session
from headrace.variables import partitioners as partitioning
from headrace.variables.initializers import (
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from headrace.variables.make_template import make_template
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.resource_variable import ResourceVariable
from headrace.variables.variable import Variable
from headrace.variables.variable_lists import (
    global_variables_initializer,
    local_variables,
    trainable_variables,
)
from headrace.variables.variable_scope import (
    AUTO_REUSE,
    disable_resource_variables,
    enable_resource_variables,
    get_local_variable,
    get_variable,
    get_variable_scope,
    variable_op_scope,
    variable_scope,
)

headrace.ops.load_all()


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[Graph]:
    with Graph().as_default() as g:
        yield g


def zeros(name: str, shape: Any = (1,), **kwargs: Any) -> Any:
    return get_variable(name, list(shape), initializer=zeros_initializer(), **kwargs)


# sharing ----------------------------------------------------------------------------------------


def test_existing_variable_is_refused_with_its_line() -> None:
    zeros("w")
    with pytest.raises(ValueError) as info:
        zeros("w")
    text = str(info.value)
    assert (
        "Variable w already exists, disallowed. Did you mean to set reuse=True or "
        "reuse=tf.AUTO_REUSE" in text
    )
    assert "Originally defined at:" in text and "test_variable_scope.py" in text


def test_reuse() -> None:
    with variable_scope("a"):
        v = zeros("v")
    with variable_scope("a", reuse=True):
        assert get_variable("v") is v
        with (
            variable_scope("inner"),
            pytest.raises(ValueError, match=r"Variable a/inner/v does not exist"),
        ):
            get_variable("v", [1])
        with pytest.raises(ValueError, match=r"specified shape \(2,\) and found shape \(1,\)"):
            get_variable("v", [2])
        with pytest.raises(ValueError, match="specified dtype int32 and found dtype float32_ref"):
            get_variable("v", [1], dtypes.int32)
    with variable_scope("a", reuse=AUTO_REUSE) as scope:
        assert get_variable("v", [1]) is v
        assert zeros("u").name == "a/u:0"
        assert scope.reuse is AUTO_REUSE
    with variable_scope("a") as scope:
        scope.reuse_variables()
        assert get_variable("v") is v
    assert get_variable_scope().reuse is False


def test_root_scope_can_be_set_to_reuse() -> None:
    v = zeros("v")
    get_variable_scope().reuse_variables()
    assert get_variable("v") is v


def test_wrong_scope_arguments() -> None:
    with pytest.raises(TypeError, match="If default_name is None then name_or_scope is required"):
        variable_scope(None)
    with pytest.raises(ValueError, match="reuse parameter must be True or False or None"):
        variable_scope("a", reuse="yes")
    with pytest.raises(ValueError, match="reuse=True cannot be used without a name_or_scope"):
        variable_scope(None, "a", reuse=True).__enter__()
    with pytest.raises(TypeError, match="must be a string or VariableScope"):
        variable_scope(5).__enter__()  # type: ignore[arg-type]
    assert get_variable_scope().name == ""


# names ------------------------------------------------------------------------------------------


def test_names() -> None:
    with variable_scope("a") as a, variable_scope("b") as b:
        assert zeros("v").name == "a/b/v:0"
        assert b.name == "a/b" and b.original_name_scope == "a/b/"
    with variable_scope("other"), variable_scope(b):
        assert zeros("u").name == "a/b/u:0"
        assert identity(1.0, name="x").name == "other/b/x:0"
    with (
        variable_scope(a, auxiliary_name_scope=False) as again,
        name_scope(again.original_name_scope),
    ):
        assert identity(1.0, name="x").name == "a/x:0"
    with name_scope("only_ops"):
        assert zeros("w").name == "w:0"
        assert Variable(1.0, name="p").name == "only_ops/p:0"


def test_default_names_are_made_unique() -> None:
    names = []
    for _ in range(3):
        with variable_scope(None, "layer") as scope:
            names.append(scope.name)
            with variable_scope(None, "inner") as inner:
                names.append(inner.name)
    assert names == ["layer", "layer/inner", "layer_1", "layer_1/inner", "layer_2", "layer_2/inner"]


def test_entering_a_scope_again_takes_back_default_names() -> None:
    """As in TF 1.15: what is opened inside a scope that is entered again leaves no trace."""
    with variable_scope("a") as a:
        with variable_scope(None, "d"):
            pass
    names = []
    for _ in range(2):
        with variable_scope(a), variable_scope(None, "d") as d:
            names.append(d.name)
    with variable_scope(get_variable_scope()), variable_scope(None, "e") as e:
        names.append(e.name)
    with variable_scope(None, "e") as e:
        names.append(e.name)
    assert names == ["a/d", "a/d", "e", "e"]


def test_entering_one_object_twice() -> None:
    scope = variable_scope("a")
    with scope:
        first = identity(1.0, name="x")
    with scope:
        second = identity(1.0, name="x")
        assert get_variable_scope().name == "a"
    assert (first.name, second.name) == ("a/x:0", "a_1/x:0")


def test_scope_is_left_after_an_exception() -> None:
    with pytest.raises(RuntimeError, match="inside"), variable_scope("a"), variable_scope("b"):
        raise RuntimeError("inside")
    assert get_variable_scope().name == "" and identity(1.0, name="x").name == "x:0"


def test_threads_have_their_own_scope(fresh_graph: Graph) -> None:
    seen = []

    def other() -> None:
        with fresh_graph.as_default():
            seen.append(get_variable_scope().name)

    with variable_scope("a"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [""]


def test_collections_of_a_scope() -> None:
    with variable_scope("a") as a:
        v = zeros("v")
        u = zeros("u", trainable=False)
        local = get_local_variable("l", [1], initializer=zeros_initializer())
    zeros("ab/v")
    assert (
        a.global_variables() == [v, u]
        and a.trainable_variables() == [v]
        and a.local_variables() == [local]
    )
    assert local_variables() == [local] and local not in trainable_variables()


# defaults ---------------------------------------------------------------------------------------


def test_defaults_are_inherited(fresh_graph: Graph) -> None:
    def penalty(v: Any) -> Any:
        return identity(v, name="penalty")

    with variable_scope(
        "a", initializer=ones_initializer(), regularizer=penalty, dtype=dtypes.float64
    ):
        with variable_scope("b") as b:
            v = get_variable("v", [2])
            b.set_initializer(constant_initializer(3.0))
            u = get_variable("u", [2], dtypes.float32, regularizer=lambda _: None)
    assert v.dtype.base_dtype is dtypes.float64 and u.dtype.base_dtype is dtypes.float32
    assert [t.name for t in fresh_graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)] == [
        "a/b/v/Regularizer/penalty:0"
    ]
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(v).tolist() == [1, 1] and session.run(u).tolist() == [3, 3]


def test_initializers() -> None:
    with Session() as session:
        made = [
            get_variable("a", [2], initializer=ones_initializer),
            get_variable("b", initializer=[1.0, 2.0]),
            get_variable("c", initializer=lambda: constant([3.0])),
            get_variable("d", [2], initializer=lambda shape, dtype: constant(4.0, dtype, shape)),
            get_variable("e", [], dtypes.int32),
            get_variable("f", 3, initializer=zeros_initializer()),
        ]
        session.run(global_variables_initializer())
        values = [session.run(v).tolist() for v in made]
    assert values == [[1, 1], [1, 2], [3], [4, 4], 0, [0, 0, 0]]


def test_wrong_initializers() -> None:
    with pytest.raises(ValueError, match="If initializer is a constant, do not specify shape"):
        get_variable("a", [1], initializer=[1.0])
    with pytest.raises(ValueError, match="Initializer type '<dtype: 'int32'>' and explicit dtype"):
        get_variable("a", dtype=dtypes.float32, initializer=[1])
    with pytest.raises(ValueError, match="The initializer passed is not valid"):
        get_variable("a", [None])
    with pytest.raises(
        ValueError, match="An initializer for variable a of <dtype: 'complex64'> is required"
    ):
        get_variable("a", [1], dtypes.complex64)


def test_custom_getters_nest() -> None:
    calls = []

    def named(label: str) -> Any:
        def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            calls.append(label)
            return getter(name + "_" + label, *args, **kwargs)

        return getter

    with (
        variable_scope("s", custom_getter=named("outer")),
        variable_scope("t", custom_getter=named("inner")),
    ):
        assert zeros("v").name == "s/t/v_inner_outer:0"
    assert calls == ["inner", "outer"]
    with pytest.raises(ValueError, match="not callable"):
        get_variable("x", [1], custom_getter=3)


def test_constraint() -> None:
    def clip(v: Any) -> Any:
        return v

    with variable_scope("a", constraint=clip):
        assert zeros("v").constraint is clip
        assert zeros("u", constraint=abs).constraint is abs


def test_resource_variables() -> None:
    with variable_scope("a", use_resource=True):
        assert isinstance(zeros("v"), ResourceVariable)
        assert isinstance(Variable(1.0), ResourceVariable)
        assert not isinstance(zeros("u", use_resource=False), ResourceVariable)
    enable_resource_variables()
    try:
        assert isinstance(zeros("w"), ResourceVariable) and isinstance(
            Variable(1.0), ResourceVariable
        )
    finally:
        disable_resource_variables()
    assert not isinstance(Variable(1.0), ResourceVariable)


def test_variable_op_scope() -> None:
    with variable_op_scope([constant(1.0)], None, "default") as scope:
        assert scope.name == "default"


# partitions -------------------------------------------------------------------------------------


def test_partitioned_variable() -> None:
    with variable_scope("p", partitioner=partitioning.fixed_size_partitioner(2)):
        w = get_variable("w", initializer=constant(np.arange(10, dtype=np.float32).reshape(5, 2)))
        assert not isinstance(zeros("scalar", ()), PartitionedVariable)
    assert isinstance(w, PartitionedVariable) and w.get_shape() == TensorShape([5, 2])
    first, second = w
    assert (first.name, second.name) == ("p/w/part_0:0", "p/w/part_1:0")
    assert (first.shape, second.shape) == (TensorShape([3, 2]), TensorShape([2, 2]))
    assert second._get_save_slice_info().spec == "5 2 3,2:0,2"
    with variable_scope("p", reuse=True):
        assert get_variable("w") is w
    with Session() as session:
        session.run(global_variables_initializer())
        np.testing.assert_array_equal(session.run(w.as_tensor()), np.arange(10).reshape(5, 2))
        session.run(w.assign(np.ones([5, 2], np.float32)))
        np.testing.assert_array_equal(session.run(identity(w)), np.ones([5, 2]))


def test_partitioned_and_plain_do_not_mix() -> None:
    partitioner = partitioning.fixed_size_partitioner(2)
    zeros("plain", (4,))
    zeros("parts", (4,), partitioner=partitioner)
    with pytest.raises(ValueError, match="an unpartitioned version of the variable was found"):
        zeros("plain", (4,), partitioner=partitioner)
    with pytest.raises(ValueError, match="a partitioned version of the variable was found"):
        zeros("parts", (4,))


def test_partitioners() -> None:
    def parts(partitioner: Any, shape: list[int], dtype: Any = dtypes.float32) -> Any:
        return partitioner(shape=TensorShape(shape), dtype=dtype)

    assert parts(partitioning.fixed_size_partitioner(4, axis=1), [3, 2]) == [1, 2]
    assert parts(partitioning.variable_axis_size_partitioner(40), [10, 2]) == [2, 1]
    assert parts(partitioning.variable_axis_size_partitioner(8, max_shards=3), [10, 2]) == [3, 1]
    assert parts(partitioning.variable_axis_size_partitioner(32), [4], dtypes.string) == [2]
    assert parts(partitioning.min_max_variable_partitioner(8, min_slice_size=16), [10, 2]) == [5, 1]
    assert parts(partitioning.min_max_variable_partitioner(3, min_slice_size=16), [10, 2]) == [3, 1]
    assert parts(partitioning.min_max_variable_partitioner(8), [10, 2]) == [1, 1]


# templates --------------------------------------------------------------------------------------


def test_template_shares() -> None:
    def scaled(x: Any, n: int) -> Any:
        return identity(zeros("w", (n,)), name="out")

    template = make_template("scale", scaled, n=2)
    assert template.variables == []
    assert (template(1.0).name, template(2.0).name) == ("scale/out:0", "scale_1/out:0")
    assert [v.name for v in template.trainable_variables] == ["scale/w:0"]
    assert template.variable_scope_name == "scale/"
    other = make_template("scale", scaled, n=2)
    other(1.0)
    assert other.variable_scope_name == "scale_1/"


def test_template_refuses_new_variables() -> None:
    template = make_template("t", lambda: Variable(1.0))
    template()
    with pytest.raises(
        ValueError, match="Trainable variable created when calling a template after the first time"
    ):
        template()
