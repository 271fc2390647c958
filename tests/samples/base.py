"""The sample table: one entry is one op on given inputs.

Every defined op must be in it at least once. The same table is run in Headrace on each executor
and, by ``tests/golden/make.py``, in TensorFlow 1.15 (whose Python is 3.7: keep these modules to its
syntax, and to NumPy 1.18).

    inputs = dict(a=f32(2, 3), b=f32(3, 4))
    SAMPLES = [Sample("MatMul", inputs, dict(transpose_a=False), grad=["a", "b"])]
"""

import zlib

import numpy as np


class Sample(object):
    """One op call: named inputs (arrays, or lists of arrays for list inputs) and named attributes.

    Types in ``attrs`` are names ("float32"). ``grad`` names the inputs whose gradient is checked
    against finite differences (float64 copies of the inputs are used, so kernels must take
    float64). ``const`` names inputs that are given as constants, not fed (shapes, axes). ``golden``
    False leaves the comparison with TensorFlow out and must be given a ``why``. ``tol`` widens the
    tolerance (relative) and must be given a ``why`` too. ``check`` replaces the comparison of
    values: a function of (outputs, golden outputs) that asserts. ``expect`` gives the outputs by
    hand where TensorFlow cannot be asked. ``single`` has the gradient checked in float32, for ops
    that have nothing wider; ``grad_outputs`` lists the outputs that the gradient is taken of, where
    TensorFlow's gradient ignores the others.
    """

    def __init__(
        self,
        op,
        inputs=None,
        attrs=None,
        grad=(),
        const=(),
        golden=True,
        tol=None,
        why="",
        check=None,
        expect=None,
        id=None,
        single=False,
        grad_outputs=None,
    ):
        self.op = op
        self.inputs = dict(inputs or {})
        self.attrs = dict(attrs or {})
        self.grad = list(grad)
        self.const = list(const)
        self.golden = golden
        self.tol = tol
        self.why = why
        self.check = check
        self.expect = expect
        self.id = id or op
        self.single = single
        self.grad_outputs = grad_outputs
        if (not golden or tol is not None) and not why:
            raise ValueError("sample %s: say why" % self.id)


def _rng(shape, salt):
    return np.random.RandomState(zlib.crc32(repr((shape, salt)).encode()) & 0x7FFFFFFF)


def f32(*shape, **kw):
    """Reproducible float32 numbers in (low, high), default (-1, 1)."""
    return f64(*shape, **kw).astype(np.float32)


def f64(*shape, **kw):
    low, high = kw.get("low", -1.0), kw.get("high", 1.0)
    return _rng(shape, kw.get("salt", 0)).uniform(low, high, shape)


def i32(*shape, **kw):
    low, high = kw.get("low", 0), kw.get("high", 10)
    return _rng(shape, kw.get("salt", 0)).randint(low, high, shape).astype(np.int32)


def i64(*shape, **kw):
    return i32(*shape, **kw).astype(np.int64)


def boolean(*shape, **kw):
    return i32(*shape, low=0, high=2, **kw).astype(np.bool_)


def bf16(*shape, **kw):
    return f32(*shape, **kw).astype(_bfloat16())


def _bfloat16():
    try:
        import ml_dtypes
    except ImportError:  # TensorFlow's environment has its own
        import tensorflow as tf

        return tf.bfloat16.as_numpy_dtype
    return ml_dtypes.bfloat16


def c64(*shape, **kw):
    salt = kw.get("salt", 0)
    return (f64(*shape, salt=(salt, 1)) + 1j * f64(*shape, salt=(salt, 2))).astype(np.complex64)


def strings(values):
    out = np.empty(np.shape(values), object)
    flat = out.reshape(-1)
    for i, v in enumerate(np.array(values, object).reshape(-1)):
        flat[i] = v if isinstance(v, bytes) else v.encode()
    return flat.reshape(np.shape(values))
