"""Gradients of ops that TensorFlow has in single precision only.

They are checked with a coarser step.
"""

import numpy as np

from tests.samples.base import Sample, c64, f32

_FOUR = np.array([4], np.int32)
_PLANE = np.array([4, 6], np.int32)
_SPACE = np.array([2, 2, 4], np.int32)
_NORM = dict(
    x=f32(2, 3, 2, 2), scale=f32(2, low=0.5, high=1.5), offset=f32(2), mean=f32(0), variance=f32(0)
)
_FIXED = dict(_NORM, mean=f32(2, salt=1), variance=f32(2, low=0.5, high=1.0))
_BACK = dict(
    y_backprop=f32(2, 3, 2, 2, salt=2),
    x=_NORM["x"],
    scale=_NORM["scale"],
    reserve_space_1=f32(2, salt=3),
    reserve_space_2=f32(2, low=0.5, high=1.0, salt=4),
)
_CTC = dict(
    inputs=f32(5, 2, 4),
    labels_indices=np.array([[0, 0], [0, 1], [1, 0]], np.int64),
    labels_values=np.array([0, 2, 1], np.int32),
    sequence_length=np.array([5, 4], np.int32),
)


def first_output(outputs, golden):
    """TensorFlow leaves the other outputs uninitialised."""
    np.testing.assert_allclose(outputs[0], golden[0], 1e-5, 1e-5)


SAMPLES = [
    Sample(
        "SparseMatMul",
        dict(a=f32(2, 3), b=f32(3, 4)),
        dict(a_is_sparse=True),
        grad=["a", "b"],
        single=True,
    ),
    Sample(
        "RFFT",
        dict(input=f32(2, 4), fft_length=_FOUR),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "RFFT2D",
        dict(input=f32(4, 6), fft_length=_PLANE),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "RFFT3D",
        dict(input=f32(2, 2, 4), fft_length=_SPACE),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "IRFFT3D",
        dict(input=c64(2, 2, 3), fft_length=_SPACE),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "IRFFT",
        dict(input=c64(2, 3), fft_length=_FOUR),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "IRFFT2D",
        dict(input=c64(4, 4), fft_length=_PLANE),
        grad=["input"],
        const=["fft_length"],
        single=True,
    ),
    Sample(
        "CTCLoss",
        _CTC,
        grad=["inputs"],
        tol=1e-5,
        why="summed in another order",
        single=True,
        grad_outputs=[0],
    ),
]
for _version in ("", "V2", "V3"):
    SAMPLES += [
        Sample(
            "FusedBatchNorm" + _version,
            _NORM,
            dict(epsilon=0.25),
            grad=["x", "scale", "offset"],
            tol=1e-5,
            why="summed in another order",
            single=True,
            grad_outputs=[0],
        ),
        Sample(
            "FusedBatchNorm" + _version,
            _FIXED,
            dict(is_training=False),
            grad=["x", "scale", "offset"],
            check=first_output,
            single=True,
            grad_outputs=[0],
            id="FusedBatchNorm%s-fixed" % _version,
        ),
    ]
for _version, _more in (("V2", {}), ("V3", dict(reserve_space_3=f32(0)))):
    SAMPLES.append(
        Sample(
            "FusedBatchNormGrad" + _version,
            dict(_BACK, **_more),
            dict(is_training=False),
            grad=["y_backprop", "scale"],
            check=first_output,
            single=True,
            grad_outputs=[0],
        )
    )
