"""A SavedModel of TF 2 whose functions have gradients of their own: run with TF 2 in this folder.

    python make_gradients.py

Writes the model, and each function's value and gradients before it was saved (gradients.json).
"""

import json
from collections.abc import Callable
from typing import Any

import tensorflow as tf

SCALAR = tf.TensorSpec([])
#: The arguments with which every function is called.
ARGUMENTS: dict[str, list[Any]] = {
    "clipped": [[3.0, 4.0]],
    "two": [0.5, 2.0],
    "steep": [0.5],
    "of_variable": [0.5],
    "calling": [0.5],
    "in_loop": [0.5],
    "in_branch": [0.5],
    "with_model": [0.5],
}


@tf.custom_gradient
def clip(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
    return tf.identity(x), lambda d: tf.clip_by_norm(d, 0.5)


@tf.custom_gradient
def pair(a: tf.Tensor, b: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., Any]]:
    sine, product = tf.sin(a), a * b
    return (sine, product), lambda d, e: (d * 10.0 + sine, e * product)


@tf.custom_gradient
def steep(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda d: d * (1 - 1 / (1 + e)) * 7.0


class Gradients(tf.Module):
    """Gradients that use tensors of the function, variables, branches and loops."""

    def __init__(self) -> None:
        self.w = tf.Variable([1.0, 2.0])
        self.v = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def clipped(self, x: tf.Tensor) -> tf.Tensor:
        return clip(x * self.w)

    @tf.function(input_signature=[SCALAR, SCALAR])
    def two(self, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        sine, product = pair(a, b)
        return sine + product * 2.0

    @tf.function(input_signature=[SCALAR])
    def steep(self, x: tf.Tensor) -> tf.Tensor:
        return steep(x) * 2.0

    @tf.function(input_signature=[SCALAR])
    def of_variable(self, x: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def scaled(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            def grad(d: tf.Tensor, variables: Any = None) -> Any:
                return d * 11.0, [d * 13.0 for _ in variables]

            return x * self.v, grad

        return scaled(x)

    @tf.function(input_signature=[SCALAR])
    def calling(self, x: tf.Tensor) -> tf.Tensor:
        return self.steep(x) + self.steep(x * 2.0)

    @tf.function(input_signature=[SCALAR])
    def in_loop(self, x: tf.Tensor) -> tf.Tensor:
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, steep(y)), (0, x))[1]

    @tf.function(input_signature=[SCALAR])
    def in_branch(self, x: tf.Tensor) -> tf.Tensor:
        return tf.cond(x > 0.0, lambda: steep(x), lambda: -x)

    @tf.function(input_signature=[SCALAR])
    def with_model(self, x: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def doubled(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            return x * 2.0, lambda d: d * self.v * 5.0

        return doubled(x)


def value_and_gradients(model: Any, name: str) -> list[Any]:
    """What a function gives, and its gradients by arguments and variables."""
    given = [tf.constant(a) for a in ARGUMENTS[name]]
    with tf.GradientTape() as tape:
        tape.watch(given)
        value = getattr(model, name)(*given)
    found = tape.gradient(value, [*given, model.w, model.v])
    return [None if g is None else g.numpy().tolist() for g in (value, *found)]


if __name__ == "__main__":
    made = Gradients()
    answers = {name: value_and_gradients(made, name) for name in ARGUMENTS}
    tf.saved_model.save(made, "gradients")
    with open("gradients.json", "w") as file:
        json.dump({"arguments": ARGUMENTS, "answers": answers}, file, indent=1)
        file.write("\n")
