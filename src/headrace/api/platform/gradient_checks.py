"""``tf.test.compute_gradient``: derivatives of a graph beside those of differences.

>>> tf.test.compute_gradient_error(x, [2], x * x, [2])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff.gradients import gradients
from headrace.core.convert import convert_to_tensor
from headrace.core.stacks import default_sessions
from headrace.ops.array.basic import placeholder
from headrace.session.session import Session

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.tensor import Tensor
    from headrace.session.session import BaseSession

__all__ = ["compute_gradient", "compute_gradient_error"]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """(theoretical, numerical) Jacobian [elements of x, elements of y] of y at x.

    Lists of such if x is a list. A complex element counts as two: its real and imaginary part.
    """
    sess = default_sessions.get() or Session()
    for target in init_targets or []:
        sess.run(target)
    if isinstance(x, list):
        inits = x_init_value or [None] * len(x)
        return [
            _jacobians(sess, xi, shape, y, y_shape, init, delta, extra_feed_dict)
            for xi, shape, init in zip(x, x_shape, inits)
        ]
    return _jacobians(sess, x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict)


def compute_gradient_error(
    x: object,
    x_shape: object,
    y: object,
    y_shape: object,
    x_init_value: object = None,
    delta: float = 1e-3,
    init_targets: object = None,
    extra_feed_dict: object = None,
) -> float:
    """The largest difference between the two Jacobians.

    Of the derivatives of ``y`` (shape ``y_shape``) by ``x`` (shape ``x_shape``): those that
    ``tf.gradients`` gives and those of differences of width ``delta`` around ``x_init_value``
    (random without one), in the default session or a new one. ``init_targets`` are operations to
    run first.

        x = tf.constant([1.0, 2.0])
        with tf.Session():
            assert tf.test.compute_gradient_error(x, [2], x * x, [2]) < 1e-2
    """
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(t - n).max(initial=0)) for t, n in pairs), default=0.0)


def _jacobians(
    sess: BaseSession,
    x: Tensor,
    x_shape: Any,
    y: TensorLike,
    y_shape: Any,
    init: Any,
    delta: float,
    extra: Any,
) -> Any:
    dtype = x.dtype.base_dtype.as_numpy_dtype
    at = np.asarray(np.random.random_sample(tuple(x_shape)) if init is None else init).astype(dtype)
    feeds = dict(extra or {})
    run = lambda fetch, value: np.asarray(sess.run(fetch, {**feeds, x: value}))
    return _theoretical(sess, x, y, tuple(y_shape), at, feeds), _numerical(run, y, at, delta)


def _theoretical(
    sess: Any, x: TensorLike, y: Any, y_shape: tuple[int, ...], at: Any, feeds: dict[Any, Any]
) -> np.ndarray[Any, Any]:
    seed = np.zeros(y_shape, y.dtype.base_dtype.as_numpy_dtype)
    rows = []
    with y.graph.as_default():
        cotangent = placeholder(y.dtype.base_dtype, y_shape)
        gradient = convert_to_tensor(gradients(y, x, grad_ys=cotangent)[0])
        for i in range(_reals(seed).size):
            one = seed.copy()
            _reals(one)[i] = 1
            rows.append(_reals(sess.run(gradient, {**feeds, cotangent: one, x: at})))
    return np.stack(rows, axis=1) if rows else np.zeros((_reals(at).size, 0), _reals(at).dtype)


def _reals(array: Array) -> np.ndarray[Any, Any]:
    """The elements in order; of complex numbers both parts. A view where the array allows it."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _numerical(run: Any, y: TensorLike, at: Any, delta: float) -> np.ndarray[Any, Any]:
    columns = []
    for i in range(_reals(at).size):
        above, below = at.copy(), at.copy()
        _reals(above)[i] += delta
        _reals(below)[i] -= delta
        columns.append(_reals(run(y, above) - run(y, below)) / (2 * delta))
    return np.stack(columns) if columns else np.zeros((0, 0), _reals(at).dtype)
