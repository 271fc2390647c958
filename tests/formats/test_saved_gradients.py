"""``tf.custom_gradient`` in SavedModels of TF 2: a loaded function has the gradient of its own."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace.api.v2 as tf
from headrace.autodiff import registry
from headrace.eager.eager_context import eager_mode

GOLDEN = Path(__file__).parent.parent / "golden" / "saved_models"
WANT = json.loads((GOLDEN / "gradients.json").read_text())


def value_and_gradients(model: Any, name: str) -> list[Any]:
    given = [tf.constant(a) for a in WANT["arguments"][name]]
    with tf.GradientTape() as tape:
        for t in given:
            tape.watch(t)
        value = getattr(model, name)(*given)
    found = tape.gradient(value, [*given, model.w, model.v])
    return [None if g is None else g.numpy() for g in (value, *found)]


def compare(got: list[Any], want: list[Any]) -> None:
    assert [g is None for g in got] == [w is None for w in want]
    for g, w in zip(got, want):
        if w is not None:
            np.testing.assert_allclose(g, w, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(WANT["arguments"]))
def test_gradients_of_tf2(name: str) -> None:
    with eager_mode():
        model = tf.saved_model.load(str(GOLDEN / "gradients"))
        compare(value_and_gradients(model, name), WANT["answers"][name])


def test_a_graph_that_calls_a_loaded_function() -> None:
    with eager_mode():
        model = tf.saved_model.load(str(GOLDEN / "gradients"))

        @tf.function
        def gradient(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = model.steep(x)
            return tape.gradient(value, x)

        want = WANT["answers"]["steep"][1]
        np.testing.assert_allclose(gradient(tf.constant(0.5)).numpy(), want, rtol=1e-5)


def test_models_of_equal_functions_and_unequal_variables() -> None:
    """A gradient that takes a variable takes it from its own model."""
    with eager_mode():
        one = tf.saved_model.load(str(GOLDEN / "gradients"))
        other = tf.saved_model.load(str(GOLDEN / "gradients"))
        other.v.assign(30.0)
        for model, v in ((one, 3.0), (other, 30.0), (one, 3.0)):
            assert value_and_gradients(model, "with_model")[1] == pytest.approx(5.0 * v)


def test_reading_again_registers_what_only_the_file_decides_once() -> None:
    def registered() -> set[str]:
        return {k for k in registry._registered if k.startswith("CustomGradient-")}

    with eager_mode():
        tf.saved_model.load(str(GOLDEN / "gradients"))
        before = registered()
        tf.saved_model.load(str(GOLDEN / "gradients"))
        gc.collect()
        assert len(registered() - before) <= 1  # with_model takes a variable of its model
