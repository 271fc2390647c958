"""Samples of reductions, scans, segment reductions, sequences and counts."""

import numpy as np

from tests.samples.base import Sample, bf16, boolean, c64, f32, f64, i32, i64


def f16(*shape, **kw):
    return f32(*shape, **kw).astype(np.float16)


def axes(*values):
    return np.array(values, np.int32)


def scalar(value, dtype=np.int32):
    return np.array(value, dtype)


def ids(*values):
    return np.array(values, np.int32)


def _reduction(op, x, reduced, **kw):
    attrs = dict(keep_dims=kw.pop("keep_dims", False))
    const = [] if kw.pop("fed_axes", False) else ["reduction_indices"]
    return Sample(
        op, dict(input=x, reduction_indices=np.asarray(reduced, np.int32)), attrs, const=const, **kw
    )


def _every(op, grad):
    """The variants that every numeric reduction has."""
    g = ["input"] if grad else []
    return [
        _reduction(op, f32(2, 3), [0, 1], grad=g),
        _reduction(op, f32(2, 3, 4), [1], grad=g, id=op + "-middle"),
        _reduction(op, f32(2, 3, 4), [-1], grad=g, keep_dims=True, id=op + "-last-kept"),
        _reduction(op, f32(2, 3, 4), [0, 2], grad=g, id=op + "-two"),
        _reduction(op, f32(2, 3, 4), [1, 2], grad=g, id=op + "-trailing"),
        _reduction(op, f32(2, 3, 4), [2, 0], grad=g, keep_dims=True, id=op + "-two-kept"),
        _reduction(op, f64(3, 2), [0], grad=g, id=op + "-double"),
        _reduction(op, f32(2, 3), scalar(1), grad=g, id=op + "-scalar-axis"),
        _reduction(op, f32(2, 3), scalar(-2), grad=g, fed_axes=True, id=op + "-fed-axis"),
        _reduction(op, f32(2, 3, 2), [2, 0], grad=g, fed_axes=True, id=op + "-fed-axes"),
        _reduction(op, f32(2, 3), np.zeros(0, np.int32), grad=g, id=op + "-no-axes"),
        _reduction(op, scalar(1.5, np.float32), np.zeros(0, np.int32), grad=g, id=op + "-scalar"),
        _reduction(op, f32(2, 3, 2), [0, 0], id=op + "-repeated-axis"),
        _reduction(op, f32(64, 40), [1], id=op + "-large-last"),
        _reduction(op, f32(64, 10), [1], id=op + "-short-rows"),
        _reduction(op, f32(128, 10), [1], keep_dims=True, id=op + "-many-short-rows"),
        _reduction(op, f32(40, 64), [0], id=op + "-large-first"),
        _reduction(op, f32(3, 8, 5, 32), [1, 2], id=op + "-large-middle"),
        _reduction(op, f32(0, 3), [0], id=op + "-empty"),
        _reduction(op, f32(0, 3), [1], id=op + "-empty-kept-empty"),
        _reduction(op, i32(3, 4), [1], id=op + "-int32"),
        _reduction(op, i64(3, 4, low=-9), [0], id=op + "-int64"),
        _reduction(op, i32(3, 4).astype(np.uint8), [0, 1], id=op + "-uint8"),
        _reduction(op, i32(3, 4, low=-9).astype(np.int8), [1], id=op + "-int8"),
        _reduction(op, f16(3, 4), [1], id=op + "-half"),
    ]


SAMPLES = []
for _op in ("Sum", "Mean", "Prod", "Max", "Min"):
    SAMPLES += _every(_op, True)
for _op in ("Sum", "Mean", "Prod"):
    SAMPLES += [
        _reduction(_op, c64(3, 4), [1], grad=["input"], id=_op + "-complex"),
        _reduction(_op, bf16(3, 4), [1], id=_op + "-bfloat16"),
    ]
SAMPLES += [
    _reduction(
        "Prod",
        np.array([[0, 2, 3], [0, 0, 4], [1, 2, 3]], np.float32),
        [1],
        grad=["input"],
        id="Prod-zeros",
    ),
    _reduction(
        "Prod",
        np.array([[0, 2, 3], [5, 6, 4]], np.float32),
        [0, 1],
        grad=["input"],
        id="Prod-zero-all",
    ),
    _reduction("Mean", np.array([-3, -4, 0], np.int32), [0], id="Mean-truncated"),
    _reduction("Mean", np.array([200, 200], np.uint8), [0], id="Mean-wraps"),
    _reduction("Max", np.array([[1, 3, 3], [2, 2, 2]], np.float32), [1], id="Max-ties"),
    _reduction("Max", i32(0, 2), [0], id="Max-empty-int"),
    _reduction("Min", i32(0, 2), [0], id="Min-empty-int"),
    _reduction("All", boolean(3, 4), [1]),
    _reduction("All", np.ones((2, 3), np.bool_), [0, 1], keep_dims=True, id="All-true"),
    _reduction("All", boolean(0, 4), [0], id="All-empty"),
    _reduction("Any", boolean(3, 4), [0]),
    _reduction("Any", np.zeros((2, 3), np.bool_), [0, 1], id="Any-false"),
    _reduction("Any", boolean(2, 0), [-1], keep_dims=True, id="Any-empty"),
    _reduction("EuclideanNorm", f32(2, 3), [1], grad=["input"]),
    _reduction(
        "EuclideanNorm",
        f64(2, 3, 2),
        [0, 2],
        keep_dims=True,
        grad=["input"],
        id="EuclideanNorm-kept",
    ),
    _reduction("EuclideanNorm", f32(2, 3), [0, 1], grad=["input"], id="EuclideanNorm-all"),
    _reduction("EuclideanNorm", i32(2, 3), [1], id="EuclideanNorm-int"),
    _reduction("EuclideanNorm", c64(2, 3), [1], id="EuclideanNorm-complex"),
]


def _arg(op, x, dimension, **kw):
    attrs = dict(output_type=kw.pop("output_type", "int64"))
    return Sample(op, dict(input=x, dimension=scalar(dimension)), attrs, const=["dimension"], **kw)


for _op in ("ArgMax", "ArgMin"):
    SAMPLES += [
        _arg(_op, f32(3, 4), 1),
        _arg(_op, f32(3, 4, 2), 0, id=_op + "-first"),
        _arg(_op, f32(3, 4, 2), -2, output_type="int32", id=_op + "-int32-output"),
        _arg(_op, f64(5), 0, id=_op + "-vector"),
        _arg(_op, i32(3, 4, high=3), 1, id=_op + "-ties"),
        _arg(_op, i32(3, 4).astype(np.uint8), 0, id=_op + "-uint8"),
        _arg(_op, f16(3, 4), 1, id=_op + "-half"),
        _arg(_op, bf16(3, 4), 1, id=_op + "-bfloat16"),
        _arg(_op, f32(0, 3), 1, id=_op + "-empty"),
    ]


def _scan(op, x, axis, exclusive=False, reverse=False, **kw):
    return Sample(
        op,
        dict(x=x, axis=scalar(axis)),
        dict(exclusive=exclusive, reverse=reverse),
        const=["axis"],
        **kw,
    )


for _op in ("Cumsum", "Cumprod"):
    SAMPLES += [
        _scan(_op, f32(2, 3), 1, grad=["x"]),
        _scan(_op, f32(4, 2), 0, True, False, grad=["x"], id=_op + "-exclusive"),
        _scan(_op, f32(2, 3, 2), -2, False, True, grad=["x"], id=_op + "-reverse"),
        _scan(_op, f64(5), 0, True, True, grad=["x"], id=_op + "-exclusive-reverse"),
        _scan(_op, i32(2, 3), 1, True, True, id=_op + "-int"),
        _scan(_op, i32(3, 2).astype(np.uint8), 0, id=_op + "-uint8"),
        _scan(_op, f16(2, 3), 1, id=_op + "-half"),
        _scan(_op, c64(2, 3), 1, False, True, id=_op + "-complex"),
        _scan(_op, f32(2, 0), 1, True, id=_op + "-empty"),
        _scan(_op, f32(3, 1), 1, True, id=_op + "-one-exclusive"),
    ]
SAMPLES += [
    _scan("CumulativeLogsumexp", f32(2, 4), 1, grad=["x"]),
    _scan(
        "CumulativeLogsumexp",
        f32(4, 2),
        0,
        False,
        True,
        grad=["x"],
        id="CumulativeLogsumexp-reverse",
    ),
    _scan("CumulativeLogsumexp", f64(4), 0, True, True, id="CumulativeLogsumexp-exclusive-reverse"),
    _scan("CumulativeLogsumexp", f32(3, 2), -1, True, id="CumulativeLogsumexp-exclusive"),
    _scan("CumulativeLogsumexp", f16(2, 4), 1, id="CumulativeLogsumexp-half"),
    Sample("L2Loss", dict(t=f32(2, 3)), grad=["t"]),
    Sample("L2Loss", dict(t=f64(4)), grad=["t"], id="L2Loss-double"),
    Sample("L2Loss", dict(t=scalar(3, np.float32)), grad=["t"], id="L2Loss-scalar"),
    Sample("L2Loss", dict(t=f32(0)), id="L2Loss-empty"),
    Sample("L2Loss", dict(t=f16(5)), id="L2Loss-half"),
]


# segments ---------------------------------------------------------------------------------------

_SORTED_IDS = ids(0, 0, 1, 3)
for _op in ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax"):
    SAMPLES += [
        Sample(_op, dict(data=f32(4, 3), segment_ids=_SORTED_IDS), grad=["data"]),
        Sample(
            _op,
            dict(data=f64(4), segment_ids=_SORTED_IDS.astype(np.int64)),
            grad=["data"],
            id=_op + "-vector",
        ),
        Sample(
            _op,
            dict(data=f32(4, 2, 2), segment_ids=ids(1, 1, 1, 2)),
            grad=["data"],
            id=_op + "-rank-3",
        ),
        Sample(_op, dict(data=i32(4, 3, low=-9), segment_ids=_SORTED_IDS), id=_op + "-int"),
        Sample(_op, dict(data=f32(0, 3), segment_ids=ids()), id=_op + "-empty"),
    ]
_ROWS_WITH_ZEROS = np.array([[1, 0, 3], [0, 0, 4], [5, 6, 7], [0, 2, 0]], np.float32)
SAMPLES += [
    Sample(
        "SegmentProd",
        dict(data=_ROWS_WITH_ZEROS, segment_ids=_SORTED_IDS),
        grad=["data"],
        id="SegmentProd-zeros",
    ),
    Sample(
        "SegmentSum",
        dict(data=c64(4, 2), segment_ids=_SORTED_IDS),
        grad=["data"],
        id="SegmentSum-complex",
    ),
]


def _unsorted(op, data, segment_ids, count, **kw):
    inputs = dict(data=data, segment_ids=segment_ids, num_segments=scalar(count))
    return Sample(op, inputs, const=["num_segments"], **kw)


for _op in (
    "UnsortedSegmentSum",
    "UnsortedSegmentProd",
    "UnsortedSegmentMin",
    "UnsortedSegmentMax",
):
    SAMPLES += [
        _unsorted(_op, f32(4, 3), ids(2, 0, 2, 1), 3, grad=["data"]),
        _unsorted(_op, f32(4, 3), ids(0, -1, 1, 0), 2, grad=["data"], id=_op + "-negative-ids"),
        _unsorted(_op, f64(5), np.array([1, 0, 1, 1, 2]), 3, grad=["data"], id=_op + "-vector"),
        _unsorted(
            _op,
            f32(2, 3, 2),
            ids(1, 0, 1, 0, 2, 2).reshape(2, 3),
            3,
            grad=["data"],
            id=_op + "-matrix-ids",
        ),
        _unsorted(_op, f32(4, 3), ids(2, 0, 2, 0), 4, id=_op + "-unused-ids"),
        _unsorted(_op, i32(4, 2, low=-9), ids(1, 1, 0, 0), 3, id=_op + "-int"),
        _unsorted(_op, f16(4, 2), ids(1, 1, 0, 0), 3, id=_op + "-half"),
        _unsorted(_op, f32(0, 2), ids(), 2, id=_op + "-empty"),
        _unsorted(_op, f32(2, 2), ids(-1, -1), 0, id=_op + "-no-segments"),
    ]
SAMPLES += [
    _unsorted(
        "UnsortedSegmentSum", f32(160, 128), i32(160, high=20), 20, id="UnsortedSegmentSum-large"
    ),
    _unsorted(
        "UnsortedSegmentSum",
        c64(4, 2),
        ids(1, 1, 0, 0),
        2,
        grad=["data"],
        id="UnsortedSegmentSum-complex",
    ),
    _unsorted(
        "UnsortedSegmentProd",
        _ROWS_WITH_ZEROS,
        ids(1, 1, 0, -1),
        2,
        grad=["data"],
        id="UnsortedSegmentProd-zeros",
    ),
]


def _sparse(op, data, indices, segment_ids, **kw):
    return Sample(op, dict(data=data, indices=indices, segment_ids=segment_ids), **kw)


def _sparse_n(op, data, indices, segment_ids, count, **kw):
    inputs = dict(data=data, indices=indices, segment_ids=segment_ids, num_segments=scalar(count))
    return Sample(op + "WithNumSegments", inputs, const=["num_segments"], **kw)


for _op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    SAMPLES += [
        _sparse(_op, f32(5, 3), ids(0, 4, 0, 2), ids(0, 0, 0, 2), grad=["data"]),
        _sparse(_op, f64(5, 2, 2), ids(1, 1, 3), ids(0, 1, 1), grad=["data"], id=_op + "-rank-3"),
        _sparse(_op, f32(5, 3), ids(), ids(), id=_op + "-empty"),
        _sparse_n(_op, f32(5, 3), ids(0, 4, 0, 2), ids(0, 0, 0, 2), 4, grad=["data"]),
        _sparse_n(_op, f32(5, 3), ids(), ids(), 2, id=_op + "WithNumSegments-empty"),
    ]
SAMPLES.append(
    _sparse("SparseSegmentSum", i32(5, 3), ids(0, 4, 0), ids(0, 0, 1), id="SparseSegmentSum-int")
)
for _op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
    _inputs = dict(
        grad=f32(3, 2), indices=ids(0, 3, 0, 2), segment_ids=ids(0, 0, 1, 2), output_dim0=scalar(5)
    )
    SAMPLES.append(Sample(_op, _inputs, grad=["grad"], const=["output_dim0"]))


# sequences and counts -----------------------------------------------------------------------------


def _range(start, limit, delta, dtype, **kw):
    names = ("start", "limit", "delta")
    values = [np.array(v, dtype) for v in (start, limit, delta)]
    return Sample(
        "Range", dict(zip(names, values)), const=names if kw.pop("const", True) else (), **kw
    )


SAMPLES += [
    _range(3, 18, 3, np.int32),
    _range(3, 1, -1, np.int64, id="Range-down"),
    _range(0, 5, 2, np.int32, const=False, id="Range-fed"),
    _range(0, 1, 0.1, np.float32, id="Range-float"),
    _range(3, 1, -0.5, np.float64, id="Range-double-down"),
    _range(2, 2, 1, np.int32, id="Range-empty"),
]
for _n in (1, 2, 7):
    _inputs = dict(start=scalar(-1.5, np.float32), stop=scalar(3, np.float32), num=scalar(_n))
    SAMPLES.append(Sample("LinSpace", _inputs, const=["num"], id="LinSpace-%d" % _n))
SAMPLES += [
    Sample(
        "LinSpace",
        dict(start=scalar(10.0, np.float64), stop=scalar(0.0, np.float64), num=scalar(5, np.int64)),
        id="LinSpace-double",
    ),
    Sample(
        "Bincount",
        dict(arr=i32(3, 4), size=scalar(8), weights=np.zeros(0, np.int32)),
        const=["size"],
    ),
    Sample("Bincount", dict(arr=i32(6), size=scalar(10), weights=f32(6)), id="Bincount-weights"),
    Sample(
        "Bincount",
        dict(arr=i32(0), size=scalar(3), weights=np.zeros(0, np.int64)),
        id="Bincount-empty",
    ),
    Sample(
        "HistogramFixedWidth",
        dict(
            values=np.array([-1, 0, 1.5, 2, 5, 15], np.float32),
            value_range=np.array([0, 5], np.float32),
            nbins=scalar(5),
        ),
        const=["nbins"],
    ),
    Sample(
        "HistogramFixedWidth",
        dict(values=i32(2, 5), value_range=ids(1, 8), nbins=scalar(4)),
        dict(dtype="int64"),
        id="HistogramFixedWidth-int",
    ),
    Sample(
        "Bucketize",
        dict(input=np.array([[-5, 0, 10000], [150, 10, 5]], np.float32)),
        dict(boundaries=[0.0, 10.0, 100.0]),
    ),
    Sample(
        "Bucketize",
        dict(input=i32(6, low=-3)),
        dict(boundaries=[0.0, 2.5, 5.0]),
        id="Bucketize-int",
    ),
    Sample("Cross", dict(a=f32(2, 3), b=f32(2, 3, salt=1)), grad=["a", "b"]),
    Sample("Cross", dict(a=i32(3), b=i32(3, salt=1)), id="Cross-int"),
]
