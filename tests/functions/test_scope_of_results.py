"""Tensors that leave the function, branch or loop that they belong to; names of flat arguments."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.eager.eager_context import eager_mode


@pytest.fixture(autouse=True)
def _eager():
    with eager_mode():
        yield


def test_a_tensor_of_a_loop_body_cannot_be_returned():
    @tf.function
    def f(x):
        out = []
        for i in tf.range(tf.shape(x)[0]):
            out.append(x[i])
        return out

    with pytest.raises(tf.errors.InaccessibleTensorError, match="another function or code block"):
        f(tf.zeros([3, 2]))


def test_a_tensor_of_a_function_is_refused_outside():
    @tf.function
    def f():
        a = tf.constant(1.0)
        with tf.init_scope():
            return a + a

    with pytest.raises(TypeError, match=r"An op outside of the function.*passed[\s\S]*Const"):
        f()


def test_tensors_of_a_tuple_have_numbered_names():
    @tf.function
    def f(x, **kwargs):
        a, b = x
        return a + 10.0 * b + 100.0 * kwargs["d"]

    spec = tf.TensorSpec(None, tf.float32)
    concrete = f.get_concrete_function((spec, spec), d=spec)
    one, two, three = (tf.constant(float(i)) for i in (1, 2, 3))
    assert float(concrete(x=one, x_1=two, d=three)) == 321.0
    assert float(concrete(one, two, three)) == 321.0
    with pytest.raises(ValueError, match="All inputs to `ConcreteFunction`s must be Tensors"):
        f.get_concrete_function((spec, spec), d=spec)("a", "b", "c")
