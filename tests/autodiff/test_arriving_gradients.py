"""Gradients that arrive as rows (IndexedSlices), and what has no gradient: loops, switches, ranks
that are known only at the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tools.differential.raw_calls import parameter, samples, takes

import headrace as tf

SAMPLES = [s for s in samples() if s.grad]
_CHUNK = 60


@pytest.mark.parametrize(
    "chosen",
    [SAMPLES[i : i + _CHUNK] for i in range(0, len(SAMPLES), _CHUNK)],
    ids=lambda chosen: str(chosen[0].id),
)
def test_every_gradient_takes_rows(chosen: list[Any]) -> None:
    """The gradient of ``tf.gather(op(x), all rows)`` is that of ``op(x)``."""
    wrong = []
    for sample in chosen:
        try:
            _compare(sample)
        except NotImplementedError:
            continue  # an op that TensorFlow has removed
        except (AssertionError, AttributeError, TypeError) as error:
            wrong.append(f"{sample.id}: {type(error).__name__} {error}")
    assert not wrong, "\n".join(wrong)


def _compare(sample: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, inputs, feeds = _called(sample)
        for y in outputs[:1]:
            rows = y.shape.as_list()[0]
            if not rows:
                continue
            taken = tf.gradients(tf.gather(y, np.arange(rows)), inputs)
            whole = tf.gradients(tf.identity(y), inputs)
            assert [g is None for g in taken] == [g is None for g in whole]
            pairs = [
                (tf.convert_to_tensor(a), tf.convert_to_tensor(b))
                for a, b in zip(taken, whole)
                if a is not None
            ]
            for a, b in session.run(pairs, feeds):
                np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def _called(sample: Any) -> tuple[list[tf.Tensor], list[tf.Tensor], dict[tf.Tensor, Any]]:
    """Outputs with rows, inputs that may have gradients, and what is fed."""
    feeds: dict[tf.Tensor, Any] = {}

    def given(value: Any) -> tf.Tensor:
        array = np.asarray(value)
        if array.dtype.kind not in "fc":
            return tf.constant(array)
        fed = tf.placeholder(array.dtype, array.shape)
        feeds[fed] = array
        return fed

    known = {parameter(sample.op, k): v for k, v in sample.attrs.items()}
    arguments = {k: v for k, v in known.items() if k in takes(sample.op)}
    for name, value in sample.inputs.items():
        many = isinstance(value, (list, tuple))
        made = [given(v) for v in (value if many else [value])]
        arguments[parameter(sample.op, name)] = made if many else made[0]
    flat = tf.nest.flatten(getattr(tf.raw_ops, sample.op)(**arguments))
    rows = [t for t in flat if isinstance(t, tf.Tensor) and t.dtype.is_floating and t.shape.ndims]
    return rows, list(feeds), feeds


_ONLY_STEERS: list[Callable[[Any, Any], Any]] = [
    lambda v, x: tf.map_fn(lambda row: row * tf.cast(v > 0, tf.float32), x),
    lambda v, x: tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.cast(v > 0, tf.float32)), [0, x]
    )[1],
    lambda v, x: tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.stop_gradient(v)), [0, x]
    )[1],
    lambda v, x: tf.while_loop(
        lambda i, a: tf.reduce_sum(a) < v, lambda i, a: (i + 1, a * 2), [0, x]
    )[1],
    lambda v, x: tf.scan(lambda a, row: a + tf.where(v > row, row, row * 2), x),
]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("make", _ONLY_STEERS)
def test_what_only_steers_a_loop_has_no_gradient(make: Callable[..., Any], resource: bool) -> None:
    v = tf.Variable(0.5, use_resource=resource)
    x = tf.constant([1.0, 2.0, 3.0])
    none, some = tf.gradients(make(v, x), [v, x])
    assert none is None and some is not None


def test_a_nested_loop_keeps_the_gradients_that_arrive() -> None:
    """Only what cannot be reached by a gradient is left out."""
    v, w, x = (tf.placeholder(tf.float64, []) for _ in range(3))

    def inner(a: Any) -> Any:
        return tf.while_loop(
            lambda j, b: j < 2,
            lambda j, b: (j + 1, tf.cond(b > w, lambda: b * v, lambda: b + v)),
            [0, a],
        )[1]

    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(inner(a))), [0, x])[1]
    gv, gw, gx = tf.gradients(y, [v, w, x])
    assert gw is None
    feed = {v: 0.7, w: 0.4, x: 0.3}
    with tf.Session() as session:
        for t, g in ((v, gv), (x, gx)):
            up, down = (session.run(y, {**feed, t: feed[t] + d}) for d in (1e-6, -1e-6))
            np.testing.assert_allclose(session.run(g, feed), (up - down) / 2e-6, 1e-5)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("axis", "batch", "size"),
    [(1, 0, (2, 2)), (2, 1, (2, 3)), (3, 2, (2, 3, 2)), (-2, 0, (3,)), (1, 1, (2, 2))],
)
def test_gathers_of_unknown_rank(
    axis: int, batch: int, size: tuple[int, ...], fed: bool, known: bool
) -> None:
    rng = np.random.RandomState(0)
    params, indices = rng.rand(2, 3, 4, 5), rng.randint(0, 3, size)
    x = tf.placeholder(tf.float64, params.shape if known else None)
    i = tf.placeholder(tf.int64, size if known else None)
    at: Any = tf.placeholder_with_default(np.int64(axis), []) if fed else axis
    y = tf.raw_ops.GatherV2(params=x, indices=i, axis=at, batch_dims=batch)
    found = tf.gradients(tf.sin(y), x)[0]
    wanted = np.zeros_like(params)
    where = np.arange(params.size).reshape(params.shape)
    with tf.Session() as session:
        taken = session.run(y, {x: where, i: indices}).astype(int)
        np.add.at(
            wanted.reshape(-1), taken.reshape(-1), np.cos(params.reshape(-1)[taken]).reshape(-1)
        )
        np.testing.assert_allclose(session.run(found, {x: params, i: indices}), wanted, 1e-12)
