"""What the differential fuzz found, through the public API; TF 1.15 gives the same classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as sess:
        return sess.run(fetches, feed)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_none_is_nan_for_floats() -> None:
    x = tf.placeholder(tf.float32)
    assert np.isnan(run(x + 1.0, {x: None}))
    shaped, whole = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32)
    with pytest.raises(ValueError, match="shape"):
        run(shaped + 1.0, {shaped: None})
    with pytest.raises(TypeError):
        run(whole + 1, {whole: None})


def test_gamma_functions_at_their_ends() -> None:
    assert run(tf.lgamma([-np.inf, np.inf])).tolist() == [np.inf, np.inf]
    assert run(tf.igamma([np.nan, 1.0], [0.0, 0.0])).tolist() == [0.0, 0.0]


def test_the_variance_of_fed_complex_numbers_is_a_squared_distance() -> None:
    value = np.array([1 + 2j, 3 - 1j])
    want = np.mean(abs(value - value.mean()) ** 2)
    x = tf.placeholder(tf.complex128, [2])
    assert np.allclose(run(tf.math.reduce_variance(x), {x: value}), want)
    assert np.allclose(run(tf.math.reduce_std(x), {x: value}), np.sqrt(want))


@pytest.mark.parametrize("name", ["ProximalAdagrad", "ProximalGradientDescent"])
@pytest.mark.parametrize("resource", [False, True])
def test_proximal_optimizers_take_float32(name: str, resource: bool) -> None:
    make = getattr(tf.train, name + "Optimizer")
    v = tf.Variable(np.ones(2), use_resource=resource)
    with pytest.raises(TypeError, match="type"):
        make(0.5).minimize(tf.nn.l2_loss(v))
    assert make(0.5).minimize(tf.nn.l2_loss(tf.Variable(np.ones(2, np.float32)))) is not None


def test_sets_have_the_same_groups() -> None:
    first = tf.zeros([2, 2], tf.int64)
    for shape in ([0, 1], [2, 2, 1], [3, None]):
        with pytest.raises(ValueError):
            tf.sets.set_intersection(first, tf.placeholder(tf.int64, shape))


def test_the_axis_of_a_sparse_concat_is_checked() -> None:
    parts = [tf.SparseTensor([[0, i]], [1], [2, 3]) for i in range(2)]
    with pytest.raises(IndexError):
        tf.sparse.concat(-9, parts)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"range \[-2, 2\), got -9"):
        run(tf.sparse.concat(-9, parts, expand_nonconcat_dim=True))
    size = tf.placeholder(tf.int64, [2])
    parts[1] = tf.SparseTensor([[0, 1]], [1], size)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"range \[-2, 2\), got 2"):
        run(tf.sparse.concat(2, parts), {size: [2, 3]})


def test_string_split_converts_to_strings() -> None:
    with pytest.raises(ValueError, match="dtype string"):
        tf.string_split(tf.constant([1.0]))


def test_a_constant_of_nothing_is_filled_with_zeros() -> None:
    assert run(tf.constant([], shape=[2, 1])).tolist() == [[0.0], [0.0]]
    assert run(tf.constant([], tf.string, [2])).tolist() == [b"", b""]


def test_adjust_hue_keeps_the_largest_and_the_smallest_channel() -> None:
    picture = np.random.RandomState(0).randint(0, 200, (8, 8, 3)).astype(np.uint8)
    turned = run(tf.image.adjust_hue(picture, 0.5))
    assert (turned.max(-1) == picture.max(-1)).all()
    assert (abs(turned.min(-1).astype(int) - picture.min(-1)) <= 0).all()


@pytest.mark.parametrize("resource", [False, True])
def test_scattered_shapes_are_compared_once_the_depth_is_known(resource: bool) -> None:
    updates = np.zeros((1, 3, 2))
    for shape, error in (([3, 1], ValueError), ([3, None], tf.errors.InvalidArgumentError)):
        indices = tf.placeholder_with_default(np.zeros((3, 1), np.int32), shape)
        v = tf.Variable(np.zeros((1, 2)), use_resource=resource)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            with pytest.raises(error):
                sess.run(tf.scatter_nd_update(v, indices, updates))
            with pytest.raises(error):
                sess.run(tf.scatter_nd(indices, updates, [1, 2]))


def test_polynomial_decay_of_integers_divides_as_floats() -> None:
    with pytest.raises(TypeError, match="'Pow'"):
        tf.train.polynomial_decay(2, tf.constant(8), 4, 0.5)
    assert run(tf.train.polynomial_decay(2.0, tf.constant(2), 4, 1.0)) == 1.5
