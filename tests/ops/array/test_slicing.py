"""``tensor[...]`` and StridedSlice: values, static shapes and gradients against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import errors
from headrace.core.graph import Graph
from headrace.core.opdef import lookup
from headrace.ops.array import array_shape, basic, filling, slicing
from headrace.ops.math import operators
from headrace.session.session import Session

assert operators is not None and lookup("StridedSlice")

BOUND = st.none() | st.integers(-7, 7)
STEP = st.none() | st.sampled_from([1, 2, 3, -1, -2, -3])


@st.composite
def indexed(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape, and an index that fits it."""
    dims = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    used = draw(st.integers(0, len(dims)))
    ellipsis_at = draw(st.none() | st.integers(0, used))
    index: list[Any] = []
    at = 0
    for i in range(used):
        if ellipsis_at == i:
            index.append(Ellipsis)
            at += len(dims) - used
        if draw(st.integers(0, 4)) == 0:
            index.append(None)
        if dims[at] and draw(st.integers(0, 2)) == 0:
            index.append(draw(st.integers(-dims[at], dims[at] - 1)))
        else:
            index.append(slice(draw(BOUND), draw(BOUND), draw(STEP)))
        at += 1
    if ellipsis_at == used:
        index.append(Ellipsis)
    return dims, tuple(index) or (Ellipsis,)


@settings(max_examples=150, deadline=None)
@given(indexed(), st.booleans())
def test_getitem_is_numpys(case: tuple[tuple[int, ...], tuple[Any, ...]], known: bool) -> None:
    dims, index = case
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    wanted = array[index]
    with Graph().as_default() as graph, Session(graph=graph) as session:
        x = basic.placeholder("float32", dims if known else [None] * len(dims))
        y = x[index]  # type: ignore[index]
        got = session.run(y, {x: array})
    np.testing.assert_array_equal(got, wanted)
    assert y.shape.is_compatible_with(wanted.shape)
    assert y.shape.ndims == wanted.ndim
    if known:
        assert y.shape.as_list() == list(wanted.shape)


@settings(max_examples=60, deadline=None)
@given(indexed())
def test_gradient_puts_back(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    from headrace.autodiff.gradients import gradients

    dims, index = case
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    wanted = np.zeros(dims, np.float32)
    wanted[index] = 1 + np.arange(array[index].size, dtype=np.float32).reshape(array[index].shape)
    with Graph().as_default() as graph, Session(graph=graph) as session:
        x = basic.placeholder("float32", dims)
        y = x[index]  # type: ignore[index]
        cotangent = 1 + np.arange(array[index].size, dtype=np.float32).reshape(array[index].shape)
        (found,) = gradients([y], [x], grad_ys=[cotangent])
        np.testing.assert_array_equal(session.run(found, {x: array}), wanted)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-4, 3), st.integers(-5, 5), st.integers(-5, 5), st.sampled_from(["int32", "int64"])
)
def test_tensors_as_indices(i: int, begin: int, end: int, dtype: str) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    with Graph().as_default() as graph, Session(graph=graph) as session:
        x = basic.placeholder("float32", [4, 6])
        at, first, last = (basic.placeholder(dtype, []) for _ in range(3))
        y = x[at, first:last]  # type: ignore[index]
        assert y.shape.as_list() == [None]
        got = session.run(y, {x: array, at: i, first: begin, last: end})
        np.testing.assert_array_equal(got, array[i, begin:end])
        assert x[:, at].shape.as_list() == [4]  # type: ignore[index]
        assert x[at, 1:3].shape.as_list() == [2]  # type: ignore[index]


def test_partial_shapes_through_a_pack() -> None:
    with Graph().as_default():
        x = basic.placeholder("float32", [None, 4, 6])
        size: Any = array_shape.shape(x)
        assert array_shape.reshape(x, [size[0], -1]).shape.as_list() == [None, None]
        assert array_shape.reshape(x, [-1, size[1] * 6]).shape.ndims == 2
        assert array_shape.reshape(x, [size[0], size[2], size[1]]).shape.as_list() == [None, 6, 4]
        assert filling.zeros([size[0], 3]).shape.as_list() == [None, 3]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (5, "slice index 5 of dimension 0 out of bounds"),
        ((0, 0, 0), "Index out of range using input dim 2; input has only 2 dims"),
        (slice(None, None, 0), "strides.0. must be non-zero"),
        (np.array([True, False]), "Shapes .4,. and .2,. are incompatible"),
        (True, "mask cannot be scalar"),
        ((..., ...), "Multiple ellipses not allowed"),
    ],
)
def test_wrong_indices_fail_while_building(index: Any, message: str) -> None:
    with Graph().as_default():
        x = basic.placeholder("float32", [4, 6])
        with pytest.raises(ValueError, match=message):
            x[index]  # type: ignore[index]


@pytest.mark.parametrize("index", [1.5, "a", [[1, 2]], (0, np.array([True] * 6))])
def test_other_indices_are_refused(index: Any) -> None:
    with Graph().as_default():
        x = basic.placeholder("float32", [4, 6])
        with pytest.raises(TypeError, match="Only integers, slices"):
            x[index]  # type: ignore[index]


def test_out_of_range_at_run_time() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        x, at = basic.placeholder("float32", [4, 6]), basic.placeholder("int32", [])
        with pytest.raises(
            errors.InvalidArgumentError, match="slice index 9 of dimension 0 out of bounds"
        ):
            session.run(x[at], {x: np.zeros((4, 6)), at: 9})  # type: ignore[index]


def test_names_are_tensorflows() -> None:
    with Graph().as_default() as graph:
        x = basic.placeholder("float32", [4, 6])
        x[1:, 0]  # type: ignore[index]
        slicing.slice(x, [0, 0], [1, 1])
        array_shape.reshape(x, [array_shape.size(x[0]), -1])  # type: ignore[index]
        assert [op.name for op in graph.get_operations()] == [
            "Placeholder",
            "strided_slice/stack",
            "strided_slice/stack_1",
            "strided_slice/stack_2",
            "strided_slice",
            "Slice/begin",
            "Slice/size",
            "Slice",
            "strided_slice_1/stack",
            "strided_slice_1/stack_1",
            "strided_slice_1/stack_2",
            "strided_slice_1",
            "Size",
            "Reshape/shape/1",
            "Reshape/shape",
            "Reshape",
        ]
