"""What a trace depends on is in its key: what could change unseen is refused, as in TF."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf
from headrace.compat import v2 as tf2


def test_a_set_is_refused() -> None:
    """It was compared by identity once: after ``add`` the old trace answered."""
    with tf.Graph().as_default():

        @tf.function
        def smallest(s: Any) -> Any:
            return tf.constant(min(s))

        with pytest.raises(TypeError, match="hashable: 'set'"):
            smallest({3})
        with pytest.raises(AttributeError):  # its class in TF 1.15
            smallest(bytearray(b"a"))


def test_arguments_beyond_the_signature() -> None:
    """They stay what they are by default: the signature has one trace."""
    with tf.Graph().as_default():

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def signed(x: Any, positive: bool = True) -> Any:
            return x if positive else -x

        x = tf.constant(2.0)
        with tf.Session() as sess:
            assert sess.run([signed(x), signed(x, True), signed(x, positive=True)]) == [2.0] * 3
        for call in (lambda: signed(x, False), lambda: signed(x, positive=False)):
            with pytest.raises(TypeError, match="only pass arguments covered by it"):
                call()


def test_methods_of_objects_that_cannot_be_hashed() -> None:
    class Model:
        __hash__ = None  # type: ignore[assignment]

        @tf2.function
        def double(self, x: Any) -> Any:
            return x * 2

    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(Model().double(tf.constant(2))) == 4
