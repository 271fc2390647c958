"""Random ops with fixed seeds: one run of each. Consecutive runs are in test_random.py."""

import numpy as np

from tests.samples.base import Sample, f32, f64, i32, i64

SEEDS = dict(seed=87654321, seed2=3)


def shape(*dims, **kw):
    return np.array(dims, kw.get("dtype", np.int32))


def s(op, inputs, attrs=None, const=("shape",), id=None, **kw):
    attrs = dict(attrs or {})
    if not op.startswith("Stateless"):
        attrs = dict(SEEDS, **attrs)
    const = [c for c in const if c in inputs]
    return Sample(op, inputs, attrs, const=const, id=id or op, **kw)


SAMPLES = []
for _op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    for _dtype in ("float32", "float64", "float16", "bfloat16"):
        SAMPLES.append(
            s(_op, dict(shape=shape(3, 7)), dict(dtype=_dtype), id="%s %s" % (_op, _dtype))
        )
    SAMPLES += [
        s(_op, dict(shape=shape()), dict(dtype="float32"), id=_op + " scalar"),
        s(_op, dict(shape=shape(2, 0)), dict(dtype="float32"), id=_op + " empty"),
        s(
            _op,
            dict(shape=shape(40, dtype=np.int64)),
            dict(dtype="float32"),
            id=_op + " int64 shape",
        ),
        s(_op, dict(shape=shape(5)), dict(dtype="float32"), const=(), id=_op + " fed shape"),
        s(
            _op,
            dict(shape=shape(5)),
            dict(dtype="float32", seed=0, seed2=2**31 - 1),
            id=_op + " seed 0",
        ),
    ]
for _op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
    for _dtype in ("float32", "float64", "float16"):
        _inputs = dict(shape=shape(3, 7), seed=np.array([5, -6], np.int32))
        SAMPLES.append(s(_op, _inputs, dict(dtype=_dtype), id="%s %s" % (_op, _dtype)))
    SAMPLES += [
        s(_op, dict(shape=shape(9), seed=np.array([5, 2**50], np.int64)), dict(dtype="float32")),
        s(
            _op,
            dict(shape=shape(0), seed=np.array([5, 6], np.int64)),
            dict(dtype="float32"),
            id=_op + " empty",
        ),
    ]
_LOGITS = f32(5, 7, low=-2, high=2)
_LOGITS[1, 2] = -np.inf
SAMPLES += [
    s("RandomUniformInt", dict(shape=shape(33), minval=np.int32(-5), maxval=np.int32(17))),
    s(
        "RandomUniformInt",
        dict(shape=shape(3, 3), minval=np.int32(-(2**31)), maxval=np.int32(2**31 - 1)),
    ),
    s(
        "RandomUniformInt",
        dict(shape=shape(2, 5), minval=np.int64(-(2**40)), maxval=np.int64(2**41)),
    ),
    s(
        "RandomUniformInt",
        dict(shape=shape(5), minval=np.int64(-(2**63)), maxval=np.int64(2**63 - 1)),
    ),
    s(
        "RandomUniformInt",
        dict(shape=shape(0), minval=np.int32(1), maxval=np.int32(3)),
        id="RandomUniformInt empty",
    ),
    s(
        "StatelessRandomUniformInt",
        dict(shape=shape(9), seed=i32(2), minval=np.int32(-3), maxval=np.int32(70)),
    ),
    s(
        "StatelessRandomUniformInt",
        dict(shape=shape(3, 2), seed=i64(2), minval=np.int64(-3), maxval=np.int64(9)),
    ),
    s("RandomShuffle", dict(value=i32(11))),
    s("RandomShuffle", dict(value=f32(50, 2)), id="RandomShuffle rows"),
    s("RandomShuffle", dict(value=f32(1, 4)), id="RandomShuffle one row"),
    s("RandomShuffle", dict(value=f32(0, 4)), id="RandomShuffle empty"),
    s(
        "Multinomial",
        dict(logits=_LOGITS, num_samples=np.int32(3)),
        dict(output_dtype="int64"),
        const=["num_samples"],
    ),
    s(
        "Multinomial",
        dict(logits=_LOGITS.astype(np.float64), num_samples=np.int32(10)),
        dict(output_dtype="int32"),
    ),
    s(
        "Multinomial",
        dict(logits=_LOGITS.astype(np.float16), num_samples=np.int32(1)),
        dict(output_dtype="int64"),
        id="Multinomial half",
    ),
    s(
        "Multinomial",
        dict(logits=_LOGITS, num_samples=np.int32(0)),
        dict(output_dtype="int64"),
        id="Multinomial none",
    ),
    s(
        "StatelessMultinomial",
        dict(logits=_LOGITS, num_samples=np.int32(4), seed=i32(2)),
        dict(output_dtype="int64"),
        const=["num_samples"],
    ),
    s(
        "StatelessMultinomial",
        dict(logits=f64(2, 3), num_samples=np.int32(4), seed=i64(2)),
        dict(output_dtype="int32"),
    ),
]
_ALPHAS = np.array([[0.1, 0.5, 1.0], [1.5, 20, 100]])
for _dtype in ("float16", "float32", "float64"):
    SAMPLES += [
        s(
            "RandomGamma",
            dict(shape=shape(5), alpha=_ALPHAS.astype(_dtype)),
            id="RandomGamma " + _dtype,
        ),
        s(
            "RandomPoissonV2",
            dict(shape=shape(4), rate=np.array([0.0, 0.5, 3, 9.5, 10, 20, 1000], _dtype)),
            dict(dtype=_dtype),
            id="RandomPoissonV2 " + _dtype,
        ),
    ]
    for _i, _p in enumerate(
        [
            (0.0, 1.0, -2.0, 2.0),
            (0.0, 1.0, -0.5, 0.5),
            (0.0, 1.0, 3.0, 4.0),
            (1.0, 2.0, -np.inf, -1.0),
            (0.0, 1.0, 5.0, 5.2),
        ]
    ):
        _params = dict(
            zip(("means", "stdevs", "minvals", "maxvals"), (np.array(v, _dtype) for v in _p))
        )
        SAMPLES.append(
            s(
                "ParameterizedTruncatedNormal",
                dict(_params, shape=shape(23, 5)),
                id="ParameterizedTruncatedNormal %s %d" % (_dtype, _i),
            )
        )
SAMPLES += [
    s("RandomGamma", dict(shape=shape(), alpha=np.float32(2.5)), id="RandomGamma scalar"),
    s(
        "RandomPoissonV2",
        dict(shape=shape(2, 2), rate=np.array([1, 30], np.int32)),
        dict(dtype="int64"),
        id="RandomPoissonV2 ints",
    ),
    s(
        "ParameterizedTruncatedNormal",
        dict(
            shape=shape(3, 9),
            means=np.array([0, 1, 2], np.float32),
            stdevs=np.array([1], np.float32),
            minvals=np.array([-1, -1, 3], np.float32),
            maxvals=np.array(9, np.float32),
        ),
        id="ParameterizedTruncatedNormal rows",
    ),
]
_A = np.array([0.01, 0.5, 1, 3, 20, 300.0])[:, None] * np.ones(9)
_X = np.array([1e-5, 0.01, 0.3, 1, 2, 5, 20, 280, 320]) * np.ones((6, 1))
SAMPLES += [
    Sample(
        "RandomGammaGrad",
        dict(alpha=_A, sample=_X),
        tol=1e-11,
        why="both end their series at a rounding error's distance",
    ),
    Sample(
        "RandomGammaGrad",
        dict(alpha=_A.astype(np.float32), sample=_X.astype(np.float32)),
        tol=1e-5,
        why="TensorFlow sums in float32, here it is float64",
    ),
    Sample(
        "RandomGammaGrad",
        dict(alpha=f32(3, 1, low=0.5, high=2), sample=f32(4, low=0.5, high=2)),
        tol=1e-5,
        why="TensorFlow sums in float32, here it is float64",
    ),
]
