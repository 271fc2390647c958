"""Convolution and pooling through oneDNN give what NumPy's functions give.

What oneDNN does not take is left to NumPy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as tf
import headrace.executors
from headrace.core.opdef import KernelNode, bind_kernel, lookup
from headrace.kernels import accel
from headrace.kernels.numpy import im2col, numpy_xp, windowed
from headrace.kernels.numpy import pooling_kernels as pooling
from headrace.runtime.thread_pool import set_threads, thread_count


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, taking small cases too."""
    found = accel.library()
    if found is None:
        pytest.skip(f"no kernel library: {accel.status()}")
    from headrace.kernels.onednn import conv_primitives as conv
    from headrace.kernels.onednn import pool_primitives as pool

    monkeypatch.setattr(conv, "MIN_WORK", 0)
    monkeypatch.setattr(conv, "MIN_POINTWISE", 0)
    monkeypatch.setattr(pool, "MIN_SIZE", 0)
    monkeypatch.setattr(windowed, "LIBRARY_FROM", 0)
    return found


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def close(got: Any, wanted: Any) -> None:
    assert got.dtype == np.float32 and got.shape == wanted.shape
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=3e-5 * scale)


def check_conv(lib: Any, x: Any, w: Any, g: im2col.Geometry) -> None:
    """Result and both gradients, each computed by oneDNN, against NumPy."""
    y = lib.conv(x, w, g)
    close(y, im2col.conv(x, w, g))
    d = normal(*y.shape, seed=1)
    close(lib.conv_input_grad(x.shape, w, d, g), im2col.conv_input_grad(x.shape, w, d, g))
    close(lib.conv_filter_grad(x, w.shape, d, g), im2col.conv_filter_grad(x, w.shape, d, g))


SAME, VALID = "SAME", "VALID"
CONVOLUTIONS = [
    # images, kernel and width, strides, dilations, padding
    ((2, 9, 8, 3), (3, 3, 16), (1, 1), (1, 1), SAME),
    ((2, 9, 8, 3), (3, 2, 5), (2, 1), (1, 1), VALID),
    ((4, 20, 32, 1), (3, 32, 16), (1, 1), (1, 1), VALID),  # windows as wide as the image: text
    ((3, 21, 10, 4), (4, 10, 8), (2, 1), (1, 1), VALID),
    ((3, 21, 10, 4), (4, 10, 8), (1, 10), (2, 1), VALID),
    ((2, 12, 6, 3), (1, 6, 16), (1, 1), (1, 1), VALID),
    ((2, 12, 7, 3), (3, 7, 16), (1, 1), (1, 1), SAME),  # as wide, but padded
    ((1, 28, 28, 1), (5, 5, 32), (1, 1), (1, 1), SAME),
    ((3, 14, 14, 32), (5, 5, 64), (1, 1), (1, 1), SAME),
    ((2, 15, 13, 16), (3, 3, 24), (2, 3), (1, 1), SAME),
    ((2, 15, 13, 16), (3, 3, 24), (2, 2), (1, 1), VALID),
    ((2, 16, 16, 8), (1, 1, 16), (1, 1), (1, 1), SAME),
    ((2, 16, 16, 8), (1, 1, 16), (3, 3), (1, 1), SAME),
    ((2, 16, 16, 7), (3, 3, 9), (1, 1), (2, 2), SAME),
    ((2, 16, 16, 7), (3, 3, 9), (1, 1), (3, 1), VALID),
    ((2, 84, 84, 4), (8, 8, 16), (4, 4), (1, 1), VALID),
    ((1, 6, 6, 2), (6, 6, 8), (1, 1), (1, 1), VALID),
    ((1, 4, 4, 2), (7, 7, 8), (1, 1), (1, 1), SAME),
    ((5, 40, 6), (3, 8), (1,), (1,), SAME),
    ((5, 40, 6), (4, 8), (2,), (1,), VALID),
    ((2, 8, 9, 10, 4), (3, 3, 3, 8), (1, 1, 1), (1, 1, 1), SAME),
    ((2, 8, 9, 10, 4), (2, 3, 1, 8), (2, 1, 2), (1, 1, 1), VALID),
    ((1, 9, 9, 9, 2), (3, 3, 3, 4), (1, 1, 1), (2, 2, 2), SAME),
]


@pytest.mark.parametrize(("images", "filters", "strides", "dilations", "padding"), CONVOLUTIONS)
def test_convolution(
    onednn: Any, images: Any, filters: Any, strides: Any, dilations: Any, padding: str
) -> None:
    *kernel, width = filters
    g = im2col.geometry(images[1:-1], tuple(kernel), strides, dilations, padding)
    check_conv(onednn, normal(*images), normal(*kernel, images[-1], width), g)


@pytest.mark.parametrize("pads", [((1, 0), (0, 2)), ((2, 2), (1, 1)), ((0, 1), (3, 0))])
def test_explicit_padding(onednn: Any, pads: im2col.Pads) -> None:
    g = im2col.geometry((9, 8), (4, 4), (1, 2), (1, 1), "EXPLICIT", pads)
    check_conv(onednn, normal(2, 9, 8, 3), normal(4, 4, 3, 8), g)


def test_padding_wider_than_the_window_gives_the_same_in_every_kernel(onednn: Any) -> None:
    g = im2col.geometry((6, 6), (2, 2), (1, 1), (1, 1), "EXPLICIT", ((4, 3), (2, 5)))
    x, w = normal(2, 6, 6, 3), normal(2, 2, 3, 8)
    close(windowed.conv(x, w, g), im2col.conv(x, w, g))
    d = normal(2, *g.out, 8)
    close(windowed.conv_input_grad(x.shape, w, d, g), im2col.conv_input_grad(x.shape, w, d, g))
    close(windowed.conv_filter_grad(x, w.shape, d, g), im2col.conv_filter_grad(x, w.shape, d, g))


dims = st.integers(1, 12)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    size=st.tuples(dims, dims),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.sampled_from([SAME, VALID]),
    channels=st.integers(1, 20),
    width=st.integers(1, 20),
    batch=st.integers(1, 3),
)
def test_any_geometry(
    onednn: Any,
    size: Any,
    kernel: Any,
    strides: Any,
    dilations: Any,
    padding: str,
    channels: int,
    width: int,
    batch: int,
) -> None:
    g = im2col.geometry(size, kernel, strides, dilations, padding)
    if 0 in g.out:
        return
    x, w = normal(batch, *size, channels), normal(*kernel, channels, width)
    y = windowed.conv(x, w, g)
    close(y, im2col.conv(x, w, g))
    d = normal(*y.shape, seed=1)
    close(windowed.conv_input_grad(x.shape, w, d, g), im2col.conv_input_grad(x.shape, w, d, g))
    close(windowed.conv_filter_grad(x, w.shape, d, g), im2col.conv_filter_grad(x, w.shape, d, g))


def test_filter_gradient_of_windows_that_skip_pixels(onednn: Any) -> None:
    """oneDNN's AVX2 code gave wrong sums for one channel and nine filters."""
    for channels, width, strides in ((1, 9, (1, 2)), (1, 9, (2, 2)), (3, 17, (3, 1))):
        g = im2col.geometry((6, 10), (1, 1), strides, (1, 1), SAME)
        x, d = normal(1, 6, 10, channels), normal(1, *g.out, width)
        shape = (1, 1, channels, width)
        close(windowed.conv_filter_grad(x, shape, d, g), im2col.conv_filter_grad(x, shape, d, g))


@pytest.mark.parametrize("multiplier", [1, 2, 3])
@pytest.mark.parametrize(
    ("channels", "strides", "dilations", "padding"),
    [
        (1, (1, 1), (1, 1), SAME),
        (5, (1, 1), (1, 1), SAME),
        (32, (2, 2), (1, 1), SAME),
        (16, (1, 1), (2, 2), VALID),
        (24, (2, 1), (1, 1), VALID),
    ],
)
def test_depthwise(
    onednn: Any, channels: int, multiplier: int, strides: Any, dilations: Any, padding: str
) -> None:
    g = im2col.geometry((11, 12), (3, 3), strides, dilations, padding)
    x, w = normal(2, 11, 12, channels), normal(3, 3, channels, multiplier)
    y = windowed.depthwise(x, w, g)
    close(y, im2col.depthwise(x, w, g))
    d = normal(*y.shape, seed=1)
    close(
        windowed.depthwise_input_grad(x.shape, w, d, g),
        im2col.depthwise_input_grad(x.shape, w, d, g),
    )
    close(
        windowed.depthwise_filter_grad(x, w.shape, d, g),
        im2col.depthwise_filter_grad(x, w.shape, d, g),
    )


@pytest.mark.parametrize(("groups", "channels", "width"), [(2, 8, 16), (4, 64, 32), (3, 9, 6)])
def test_groups(onednn: Any, groups: int, channels: int, width: int) -> None:
    """Each group of channels with its own part of the filter."""
    g = im2col.geometry((10, 9), (3, 3), (1, 2), (1, 1), SAME)
    inner = channels // groups
    x, w = normal(2, 10, 9, channels), normal(3, 3, inner, width)
    d = normal(2, *g.out, width, seed=1)
    xs, ws, ds = (np.split(a, groups, axis=-1) for a in (x, w, d))
    both = [np.ascontiguousarray(a) for a in (*xs, *ds)]
    xs, ds = both[:groups], both[groups:]
    ws = [np.ascontiguousarray(a) for a in ws]
    close(
        onednn.conv(x, w, g, groups),
        np.concatenate([im2col.conv(a, b, g) for a, b in zip(xs, ws)], -1),
    )
    close(
        onednn.conv_input_grad(x.shape, w, d, g, groups),
        np.concatenate(
            [im2col.conv_input_grad(a.shape, b, c, g) for a, b, c in zip(xs, ws, ds)], -1
        ),
    )
    close(
        onednn.conv_filter_grad(x, w.shape, d, g, groups),
        np.concatenate(
            [im2col.conv_filter_grad(a, b.shape, c, g) for a, b, c in zip(xs, ws, ds)], -1
        ),
    )


G = im2col.geometry((14, 14), (3, 3), (1, 1), (1, 1), SAME)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shortcut", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("channels", [8, 1])
def test_more_in_the_same_pass(
    onednn: Any, channels: int, biased: bool, shortcut: bool, relu: bool
) -> None:
    x, w, b = normal(2, 14, 14, channels), normal(3, 3, channels, 20), normal(20)
    other = normal(2, 14, 14, 20, seed=1)
    wanted = im2col.conv(x, w, G) + (b if biased else 0) + (other if shortcut else 0)
    if relu:
        wanted = np.maximum(wanted, 0)
    more: dict[str, Any] = {"bias": b if biased else None, "add": other if shortcut else None}
    close(onednn.conv(x, w, G, relu=relu, **more), wanted)
    packed = onednn.pack_filter(x.shape, w, G, bias=biased, add=shortcut, relu=relu)
    close(onednn.conv(x, w, G, relu=relu, packed=packed, **more), wanted)
    assert onednn.conv(x, w, G, add=other[:1]) is None  # no broadcasting


@pytest.mark.parametrize(
    "fused_ops", [(), ("BiasAdd",), ("BiasAdd", "Relu"), ("Add",), ("BiasAdd", "Add", "Relu")]
)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("with_library", [False, True])
def test_the_fused_op(
    onednn: Any,
    monkeypatch: pytest.MonkeyPatch,
    fused_ops: Any,
    data_format: str,
    with_library: bool,
) -> None:
    if not with_library:
        monkeypatch.setattr(accel, "_library", None)
    first = data_format == "NCHW"
    x, w, b = normal(2, 14, 14, 8), normal(3, 3, 8, 20), normal(20)
    other = normal(2, 14, 14, 20, seed=1)
    terms = {"BiasAdd": b, "Add": other}
    wanted = im2col.conv(x, w, G) + sum(terms[n] for n in fused_ops if n in terms)
    if first:
        terms["Add"] = np.ascontiguousarray(other.transpose(0, 3, 1, 2))
    if "Relu" in fused_ops:
        wanted = np.maximum(wanted, 0)
    attrs = {
        "strides": (1, 1, 1, 1),
        "padding": SAME,
        "explicit_paddings": (),
        "data_format": data_format,
        "dilations": (1, 1, 1, 1),
        "fused_ops": fused_ops,
    }
    kernel = bind_kernel(
        lookup("_FusedConv2D"), KernelNode("y", "_FusedConv2D", attrs, None), numpy_xp
    )
    images = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if first else x
    got = kernel(images, w, *[terms[n] for n in fused_ops if n in terms])
    close(got.transpose(0, 2, 3, 1) if first else got, wanted)


def test_gradients_of_filter_and_bias_together(onednn: Any) -> None:
    x, d = normal(4, 14, 14, 8), normal(4, 14, 14, 20)
    by_filter, by_bias = onednn.conv_filter_and_bias_grad(x, (3, 3, 8, 20), d, G)
    close(by_filter, im2col.conv_filter_grad(x, (3, 3, 8, 20), d, G))
    close(by_bias, d.sum((0, 1, 2)))


def test_strided_arrays(onednn: Any) -> None:
    """Transposed, sliced and reversed arrays are copied; results lie in C order."""
    w = normal(3, 3, 16, 8)
    first = normal(4, 16, 14, 14)
    wide = normal(4, 14, 14, 32)
    for x in (first.transpose(0, 2, 3, 1), wide[..., ::2], wide[..., 16:], wide[::-1, ..., :16]):
        check_conv(onednn, x, w, G)
    big = normal(4, 64, 40, 40).transpose(0, 2, 3, 1)  # large enough for oneDNN's own copy
    g = im2col.geometry((40, 40), (3, 3), (1, 1), (1, 1), SAME)
    check_conv(onednn, big, normal(3, 3, 64, 8), g)
    odd = normal(3, 3, 8, 16).transpose(0, 1, 3, 2)
    check_conv(onednn, normal(4, 14, 14, 16), odd, G)


def test_what_is_not_taken(onednn: Any) -> None:
    x, w = normal(2, 14, 14, 8), normal(3, 3, 8, 4)
    for dtype in (np.float64, np.float16):
        assert onednn.conv(x.astype(dtype), w.astype(dtype), G) is None
        assert windowed.conv(x.astype(dtype), w.astype(dtype), G).dtype == dtype
    assert onednn.conv(x[:0], w, G) is None
    assert windowed.conv(x[:0], w, G).shape == (0, 14, 14, 4)
    assert windowed.conv_filter_grad(x[:0], w.shape, x[:0, ..., :4], G).sum() == 0


def test_small_work_is_left_to_numpy() -> None:
    found = accel.library()
    if found is None:
        pytest.skip(f"no kernel library: {accel.status()}")
    g = im2col.geometry((4, 4), (3, 3), (1, 1), (1, 1), SAME)
    assert found.conv(normal(1, 4, 4, 2), normal(3, 3, 2, 2), g) is None
    assert found.max_pool(normal(1, 4, 4, 2), pool_axes((1, 4, 4, 2), 2, 2, SAME)) is None


# pooling ----------------------------------------------------------------------------------------


def pool_axes(shape: tuple[int, ...], k: int, s: int, padding: str, first: bool = False) -> Any:
    n = len(shape) - 2
    ksize, strides = ((1, 1, *(v,) * n) if first else (1, *(v,) * n, 1) for v in (k, s))
    return pooling.windows(shape, ksize, strides, padding)


POOLS = [
    (2, 2, SAME),
    (2, 2, VALID),
    (3, 2, SAME),
    (3, 2, VALID),
    (3, 1, SAME),
    (2, 3, SAME),
    (1, 2, VALID),
    (5, 5, SAME),
]


@pytest.mark.parametrize(("k", "s", "padding"), POOLS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("shape", [(2, 9, 8, 24), (3, 7, 7, 3), (2, 6, 7, 5, 17)])
def test_pooling(
    onednn: Any,
    monkeypatch: pytest.MonkeyPatch,
    shape: Any,
    first: bool,
    k: int,
    s: int,
    padding: str,
) -> None:
    from headrace.kernels.onednn import pool_primitives as pool

    monkeypatch.setattr(pool, "MIN_FIRST", 0)
    # few values, so that there are many ties: the first maximum gets the gradient
    x = np.random.default_rng(k).integers(0, 4, shape).astype(np.float32)
    if first:
        x = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    axes = pool_axes(x.shape, k, s, padding, first)
    y = pooling.maximum(x, axes)
    np.testing.assert_array_equal(onednn.max_pool(x, axes), y)
    d: Any = np.random.default_rng(1).integers(-9, 9, y.shape).astype(np.float32)
    np.testing.assert_array_equal(
        onednn.max_pool_grad(x, d, axes), pooling.maximum_grad(x, y, d, axes)
    )
    close(onednn.avg_pool(x, axes), pooling.average(x, axes))
    close(onednn.avg_pool_grad(x.shape, d, axes), pooling.average_grad(x.shape, d, axes))


def test_maximum_of_what_is_not_a_number(onednn: Any) -> None:
    """As TensorFlow has it.

    A NaN is passed over, and the lowest finite number stands where there is no other.
    """
    x = normal(2, 8, 8, 16)
    x[0, :3, :3] = np.nan
    x[1, :3, :3] = -np.inf
    x[1, 5, 5, 0] = np.inf
    axes = pool_axes(x.shape, 2, 2, SAME)
    y = pooling.maximum(x, axes)
    np.testing.assert_array_equal(onednn.max_pool(x, axes), y)
    assert y[0, 0, 0, 0] == y[1, 0, 0, 0] == np.finfo(np.float32).min and y[1, 2, 2, 0] == np.inf
    assert y[0, 1, 1, 3] == np.nanmax(x[0, 2:4, 2:4, 3])


def test_pooling_keeps_the_order_in_memory(onednn: Any) -> None:
    """A channels-first view of channels-last memory is pooled as it lies."""
    x = normal(2, 8, 8, 16).transpose(0, 3, 1, 2)
    axes = pool_axes(x.shape, 2, 2, SAME, first=True)
    y = onednn.max_pool(x, axes)
    np.testing.assert_array_equal(y, pooling.maximum(x, axes))
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    d = normal(*y.shape)
    for gradient in (d, normal(2, 4, 4, 16).transpose(0, 3, 1, 2)):
        np.testing.assert_array_equal(
            onednn.max_pool_grad(x, gradient, axes), pooling.maximum_grad(x, y, gradient, axes)
        )


def test_pooling_other_axes_or_in_pieces(onednn: Any) -> None:
    """Every kernel gives the same."""
    x = normal(2, 8, 8, 16)
    for ksize in ((1, 1, 1, 2), (1, 2, 1, 2), (1, 1, 2, 1), (1, 2, 2, 2)):
        axes = pooling.windows(x.shape, ksize, ksize, VALID)
        close(windowed.maximum(x, axes), pooling.maximum(x, axes))
    axes = pool_axes((2, 4, 8, 16), 2, 2, SAME)
    assert onednn.max_pool(x[:, ::2], axes) is None
    close(windowed.maximum(x[:, ::2], axes), pooling.maximum(x[:, ::2], axes))
    assert onednn.max_pool(x.astype(np.float64), pool_axes(x.shape, 2, 2, SAME)) is None
    nothing = pool_axes(x.shape, 1, 1, VALID)
    close(windowed.maximum(x, nothing), x)


# the whole way ----------------------------------------------------------------------------------


def run_net(data_format: str) -> list[Any]:
    """A small net with every kind of layer; outputs and gradients."""
    first = data_format == "NCHW"
    x_value = normal(4, 24, 24, 4)
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 4, 24, 24] if first else [None, 24, 24, 4])
        ws = [tf.constant(normal(*s) * 0.2) for s in ((3, 3, 4, 16), (3, 3, 16, 2), (3, 3, 8, 32))]
        ones, twos = [1, 1, 1, 1], [1, 1, 2, 2] if first else [1, 2, 2, 1]
        f: dict[str, Any] = {"data_format": data_format}
        h = tf.nn.relu(tf.nn.conv2d(x, ws[0], strides=ones, padding=SAME, **f))
        h = tf.nn.max_pool(h, twos, twos, SAME, **f)
        h = tf.nn.depthwise_conv2d_native(h, ws[1], ones, SAME, **f)
        h = tf.nn.avg_pool(h, twos, twos, SAME, **f)
        up = [4, 8, 12, 12] if first else [4, 12, 12, 8]
        h = tf.nn.conv2d_transpose(h, ws[2], up, twos, SAME, **f)
        fetches = [h, *tf.gradients(tf.reduce_sum(tf.square(h)), [x, *ws])]
        feed = np.ascontiguousarray(x_value.transpose(0, 3, 1, 2)) if first else x_value
        found = sess.run(fetches, {x: feed})
    if first:
        found[:2] = [a.transpose(0, 2, 3, 1) for a in found[:2]]
    return [np.ascontiguousarray(a) for a in found]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_a_net_with_and_without_the_library(
    onednn: Any, monkeypatch: pytest.MonkeyPatch, data_format: str
) -> None:
    got = run_net(data_format)
    again = run_net(data_format)
    for a, b in zip(got, again):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(accel, "_library", None)
    for a, b in zip(got, run_net("NHWC")):
        close(a, b)


def test_3d_ops(onednn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[Any]:
        with tf.Graph().as_default(), tf.Session() as sess:
            x, w = tf.constant(normal(2, 6, 8, 8, 3)), tf.constant(normal(2, 3, 3, 3, 8))
            h = tf.nn.conv3d(x, w, strides=[1, 1, 2, 1, 1], padding=SAME)
            h = tf.nn.max_pool3d(h, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], SAME)
            h = tf.nn.avg_pool3d(h, [1, 2, 1, 2, 1], [1, 1, 1, 2, 1], SAME)
            return sess.run([h, *tf.gradients(tf.reduce_sum(tf.square(h)), [x, w])])  # type: ignore[no-any-return]

    got = run()
    monkeypatch.setattr(accel, "_library", None)
    for a, b in zip(got, run()):
        close(a, b)


# how it behaves ---------------------------------------------------------------------------------


def test_the_same_bits_every_time(onednn: Any) -> None:
    g = im2col.geometry((28, 28), (5, 5), (1, 1), (1, 1), SAME)
    x, w, d = normal(16, 28, 28, 8), normal(5, 5, 8, 32), normal(16, 28, 28, 32)
    functions: list[Callable[[], Any]] = [
        lambda: onednn.conv(x, w, g),
        lambda: onednn.conv_input_grad(x.shape, w, d, g),
        lambda: onednn.conv_filter_grad(x, w.shape, d, g),
    ]
    for f in functions:
        once = f()
        for _ in range(5):
            np.testing.assert_array_equal(f(), once)


def test_two_threads_at_once(onednn: Any) -> None:
    """Each with its own shapes and, in turn, with the other's: the same bits as alone."""
    cases = []
    for n in (3, 8):
        x, w, d = normal(n, 14, 14, 16), normal(3, 3, 16, 32, seed=n), normal(n, 14, 14, 32)
        cases.append((x, w, d))

    def work(x: Any, w: Any, d: Any) -> list[Any]:
        axes = pool_axes(x.shape, 2, 2, SAME)
        return [
            onednn.conv(x, w, G),
            onednn.conv_input_grad(x.shape, w, d, G),
            onednn.conv_filter_grad(x, w.shape, d, G),
            onednn.max_pool_grad(x, onednn.max_pool(x, axes), axes),
        ]

    wanted = [work(*c) for c in cases]
    wrong: list[str] = []

    def loop(start: int) -> None:
        for i in range(start, start + 20):
            for a, b in zip(work(*cases[i % 2]), wanted[i % 2]):
                if not np.array_equal(a, b):
                    wrong.append(f"case {i % 2}")

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_number_of_threads_may_change(onednn: Any) -> None:
    x, w = normal(4, 14, 14, 16), normal(3, 3, 16, 32)
    before = thread_count()
    try:
        for n in (1, 2, 3):
            set_threads(n)
            check_conv(onednn, x, w, G)
    finally:
        set_threads(before)


def test_ever_new_shapes_keep_a_bounded_number_of_primitives(
    onednn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    convolutions, pools = onednn.conv.__self__, onednn.max_pool.__self__
    for steps in (convolutions.steps, pools.steps):
        monkeypatch.setattr(steps, "limit", 8)
    w = normal(3, 3, 4, 8)
    for n in range(1, 21):
        x = normal(n, 14, 14, 4)
        close(onednn.conv(x, w, G), im2col.conv(x, w, G))
        axes = pool_axes(x.shape, 2, 2, SAME)
        np.testing.assert_array_equal(onednn.max_pool(x, axes), pooling.maximum(x, axes))
    assert len(convolutions.steps) <= 8 and len(pools.steps) <= 8


def test_a_forked_child_computes_without_the_library(onednn: Any) -> None:
    """OpenMP's threads do not survive a fork; waiting for them would never end."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    code = """
import os, signal, numpy as np, headrace.executors
from headrace.kernels import accel
from headrace.kernels.numpy import im2col, windowed
g = im2col.geometry((28, 28), (3, 3), (1, 1), (1, 1), "SAME")
x, w = np.ones((8, 28, 28, 16), np.float32), np.ones((3, 3, 16, 16), np.float32)
y = windowed.conv(x, w, g)
assert accel.library() is not None
child = os.fork()
if child == 0:
    signal.alarm(60)
    ok = accel.library() is None and "fork" in accel.status()
    ok = ok and (windowed.conv(x, w, g) == y).all()
    os._exit(0 if ok else 1)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accel, "_library", None)
    monkeypatch.setattr(accel, "_decided", True)
    x, w = normal(4, 14, 14, 16), normal(3, 3, 16, 32)
    np.testing.assert_array_equal(windowed.conv(x, w, G), im2col.conv(x, w, G))
    axes = pool_axes(x.shape, 2, 2, SAME)
    np.testing.assert_array_equal(windowed.maximum(x, axes), pooling.maximum(x, axes))
