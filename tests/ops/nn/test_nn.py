"""tf.nn and tf.losses as users call them, against TensorFlow's values and gradients.

Errors; speed-relevant layout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.autodiff.gradients import gradients
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph
from headrace.kernels.numpy import im2col
from headrace.kernels.numpy import pooling_kernels as pooling
from headrace.ops import load_all
from headrace.ops.array.basic import constant, placeholder
from headrace.ops.nn import losses
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.session.session import Session
from tests.golden.nn_programs import PROGRAMS
from tests.tolerances import assert_close

load_all()
GOLDEN = str(Path(__file__).parents[2] / "golden" / "nn_programs.npz")


class Namespace:
    """TensorFlow's API, and the inputs that a program makes."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


@pytest.fixture(scope="module")
def golden() -> Any:
    with np.load(GOLDEN) as file:
        return dict(file)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_gives_tensorflows_values(name: str, golden: Any) -> None:
    with Graph().as_default() as graph:
        tf = Namespace()
        outputs = PROGRAMS[name](tf)
        fetches = {f"{name}/{i:02d}": t for i, t in enumerate(outputs)}
        for i, t in enumerate(outputs):
            if t.dtype.is_floating:
                found = gradients(t, tf.inputs)
                parts = [(j, g) for j, g in enumerate(found) if g is not None]
                fetches.update((f"{name}/{i:02d}/d{j:02d}", convert_to_tensor(g)) for j, g in parts)
        wanted = {k: v for k, v in golden.items() if k.startswith(name + "/")}
        assert sorted(fetches) == sorted(wanted)
        with Session(graph=graph) as session:
            got = session.run(fetches)
    for key, tensor in fetches.items():
        assert tensor.shape.is_compatible_with(got[key].shape), key
        assert_close(got[key], wanted[key], 2e-5, key)


# errors -------------------------------------------------------------------------------------------


def nn() -> Any:
    return tf.nn


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def at_build(call: Any, text: str, kind: type[Exception] = ValueError) -> None:
    with Graph().as_default(), pytest.raises(kind) as caught:
        call(nn())
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda t: t.conv2d(zeros(1, 5, 5, 3), zeros(3, 3, 2, 4), 1, "SAME"),
            "Depth of input (3) is not a multiple",
        ),
        (
            lambda t: t.conv2d(zeros(1, 2, 5, 3), zeros(3, 3, 3, 4), 1, "VALID"),
            "caused by subtracting 3 from 2 for",
        ),
        (
            lambda t: t.conv2d(zeros(5, 5, 3), zeros(3, 3, 3, 4), 1, "VALID"),
            "Shape must be rank 4 but is rank 3",
        ),
        (
            lambda t: t.conv2d(zeros(1, 5, 5, 3), zeros(3, 3, 3, 4), 1, "FOO"),
            "passed string 'FOO' not in",
        ),
        (
            lambda t: t.max_pool(zeros(1, 5, 5, 3), [1, 2, 2], 2, "SAME"),
            "ksize should be of length 1, 2 or 4",
        ),
        (
            lambda t: t.max_pool(zeros(1, 2, 5, 3), 3, 2, "VALID"),
            "caused by subtracting 3 from 2 for",
        ),
        (lambda t: t.bias_add(zeros(2, 3), zeros(4)), "Dimensions must be equal, but are 3 and 4"),
        (lambda t: t.bias_add(zeros(3), zeros(3)), "Shape must be at least rank 2 but is rank 1"),
        (lambda t: t.softmax(np.float32(1)), "Shape must be at least rank 1 but is rank 0"),
        (
            lambda t: t.softmax_cross_entropy_with_logits(zeros(2, 4), zeros(2, 5)),
            "with named arguments",
        ),
        (
            lambda t: t.softmax_cross_entropy_with_logits(labels=zeros(2, 4), logits=zeros(2, 5)),
            "are 5 and 4",
        ),
        (
            lambda t: t.sigmoid_cross_entropy_with_logits(labels=zeros(2), logits=zeros(3)),
            "must have the same shape",
        ),
        (
            lambda t: t.sparse_softmax_cross_entropy_with_logits(
                labels=zeros(2, 1), logits=zeros(2, 3)
            ),
            "Rank mismatch",
        ),
        (lambda t: t.dropout(zeros(2), 0.0), "in the range [0, 1), got 1"),
        (lambda t: t.dropout(np.arange(3), 0.5), "x has to be a floating point tensor"),
        (lambda t: t.l2_normalize(zeros(2), axis=0, dim=0), "Cannot specify both 'dim' and 'axis'"),
        (
            lambda t: losses.mean_squared_error(zeros(2, 3), zeros(2, 3), weights=zeros(3)),
            "can not be broadcast",
        ),
        (
            lambda t: losses.compute_weighted_loss(zeros(2), reduction="best"),
            "Invalid Reduction Key best.",
        ),
    ],
)
def test_wrong_while_building(call: Any, text: str) -> None:
    at_build(call, text)


def when_run(build: Any, feeds: list[Any], kind: type[Exception], text: str) -> None:
    with Graph().as_default() as graph:
        inputs = [placeholder(dtypes.as_dtype(np.asarray(v).dtype)) for v in feeds]
        result = build(nn(), *inputs)
        with Session(graph=graph) as session, pytest.raises(kind) as caught:
            session.run(result, dict(zip(inputs, feeds)))
    assert text in str(caught.value)


def test_label_out_of_range() -> None:
    when_run(
        lambda t, y, x: t.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        [np.array([1, 9], np.int32), zeros(2, 5)],
        errors.InvalidArgumentError,
        "Received a label value of 9 which is outside the valid range of [0, 5).  Label "
        "values: 1 9",
    )


def test_grouped_convolution_is_refused() -> None:
    when_run(
        lambda t, x, w: t.conv2d(x, w, 1, "SAME"),
        [zeros(1, 5, 5, 4), zeros(3, 3, 2, 4)],
        errors.UnimplementedError,
        "does not support grouped convolutions",
    )


def test_bias_of_another_size() -> None:
    when_run(
        lambda t, x, b: t.bias_add(x, b),
        [zeros(2, 3), zeros(4)],
        errors.InvalidArgumentError,
        "Must provide as many biases as the last dimension of the input tensor: [4] vs. [2,3]",
    )


def test_logits_and_labels_that_do_not_broadcast() -> None:
    when_run(
        lambda t, y, x: t.softmax_cross_entropy_with_logits(labels=y, logits=x),
        [zeros(2, 4), zeros(2, 5)],
        errors.InvalidArgumentError,
        "logits and labels must be broadcastable: logits_size=[2,5] labels_size=[2,4]",
    )


def test_unknown_shapes_work() -> None:
    with Graph().as_default() as graph:
        x, y = placeholder(dtypes.float32), placeholder(dtypes.int32)
        t = nn()
        loss = t.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
        dense = t.softmax_cross_entropy_with_logits_v2(labels=t.softmax(x), logits=x)
        weighted = losses.mean_squared_error(x, t.relu(x), weights=x)
        with Session(graph=graph) as session:
            found = session.run(
                [loss, dense, weighted], {x: zeros(2, 3, 4), y: np.zeros((2, 3), np.int32)}
            )
    np.testing.assert_allclose(found[0], np.full((2, 3), np.log(4)), 1e-6)
    np.testing.assert_allclose(found[1], np.full((2, 3), np.log(4)), 1e-6)
    assert found[2] == 0


# gradients that the sample table cannot check -----------------------------------------------------


@pytest.mark.parametrize("version", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("is_training", [True, False])
def test_batch_norm_gradient(version: str, data_format: str, is_training: bool) -> None:
    """The gradient of y, against the same formula in plain ops."""
    rng = np.random.default_rng(1)
    channels_last = data_format == "NHWC"
    value = rng.normal(size=(2, 3, 4, 3)).astype(np.float32)
    axes = [0, 1, 2] if channels_last else [0, 2, 3]
    with Graph().as_default() as graph:
        x = constant(value if channels_last else np.moveaxis(value, -1, 1).copy())
        scale, offset = (
            constant(np.array([1, 2, 0.5], np.float32)),
            constant(np.array([0, 1, 2], np.float32)),
        )
        given = np.zeros(0, np.float32) if is_training else np.array([0.1, 0.7, 0.4], np.float32)
        y = apply_op(
            version,
            x,
            scale,
            offset,
            given,
            given,
            epsilon=0.01,
            data_format=data_format,
            is_training=is_training,
        )[0]
        wide = [1, 1, 1, 3] if channels_last else [1, 3, 1, 1]
        s, o, m, v = (
            apply_op("Reshape", t, wide)
            for t in (scale, offset, *([given] * 2 if not is_training else [scale] * 2))
        )
        if is_training:
            m = apply_op("Mean", x, axes, keep_dims=True)
            v = apply_op("Mean", apply_op("Square", apply_op("Sub", x, m)), axes, keep_dims=True)
        centred = apply_op(
            "Mul", apply_op("Sub", x, m), apply_op("Rsqrt", apply_op("AddV2", v, 0.01))
        )
        plain = apply_op("AddV2", apply_op("Mul", centred, s), o)
        weights = rng.normal(size=x.shape.as_list()).astype(np.float32)
        xs = [x, scale, offset]
        fused = gradients(y, xs, grad_ys=[constant(weights)])
        wanted = gradients(plain, xs, grad_ys=[constant(weights)])
        with Session(graph=graph) as session:
            a, b = session.run([[y, *fused], [plain, *wanted]])
    for got, want in zip(a, b):
        np.testing.assert_allclose(got, want, 2e-5, 2e-5)


def test_ctc_second_derivative_is_refused() -> None:
    with Graph().as_default():
        x = constant(np.zeros((3, 1, 3), np.float32))
        labels = SparseTensor(
            np.zeros((1, 2), np.int64), np.array([1], np.int32), np.array([1, 1], np.int64)
        )
        g = gradients(nn().ctc_loss(labels, x, np.array([3], np.int32)), x)
        with pytest.raises(LookupError, match="second derivative of ctc_loss"):
            gradients(g[0], x)


# the array functions ------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 64, 1 << 20])
def test_chunks_do_not_change_a_convolution(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 7, 6, 3)), rng.normal(size=(3, 3, 3, 4))
    g = im2col.geometry((7, 6), (3, 3), (2, 1), (1, 1), "SAME")
    y = im2col.conv(x, w, g)
    dy = rng.normal(size=y.shape)
    dx, dw = im2col.conv_input_grad(x.shape, w, dy, g), im2col.conv_filter_grad(x, w.shape, dy, g)
    monkeypatch.setattr(im2col, "CHUNK", chunk)
    np.testing.assert_allclose(im2col.conv(x, w, g), y, 1e-12)
    np.testing.assert_allclose(im2col.conv_input_grad(x.shape, w, dy, g), dx, 1e-12)
    np.testing.assert_allclose(im2col.conv_filter_grad(x, w.shape, dy, g), dw, 1e-12)


def test_windows_longer_than_the_image() -> None:
    axes = pooling.windows((1, 3, 3, 1), (1, 7, 7, 1), (1, 2, 2, 1), "SAME")
    x = np.arange(9.0).reshape(1, 3, 3, 1)
    assert pooling.maximum(x, axes).reshape(-1).tolist() == [8.0] * 4
    assert pooling.average(x, axes).reshape(-1).tolist() == [4.0] * 4


@pytest.mark.parametrize(
    "shape", [[], [1], [2], [3], [3, 1], [3, 2], [1, 2, 1], [3, 2, 4], [3, 1, 4], [2, 2, 2, 2]]
)
def test_weights_of_losses_that_only_a_run_knows(shape):
    with tf.Graph().as_default(), tf.Session() as sess:
        losses, weights = np.ones([3, 2, 4], np.float32), np.full(shape, 2.0, np.float32)
        fed = tf.placeholder(tf.float32)
        loss = tf.losses.compute_weighted_loss(losses, fed, reduction="weighted_sum")
        if len(shape) in (0, 3):
            assert sess.run(loss, {fed: weights}) == 48.0
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="can not be broadcast"):
                sess.run(loss, {fed: weights})
