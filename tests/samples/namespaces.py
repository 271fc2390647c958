"""Samples of ops behind functions that few programs use: morphology, fractional pools, tridiagonal
matrices, Unicode, joined strings, suppression over classes.
"""

import numpy as np

from .base import Sample, f32, f64, i32, strings

_MORPHOLOGY = dict(strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME")
_WORDS = strings(["gr\u00fcn".encode("utf8"), b"a\x80b", b""])
_READING = dict(input_encoding="UTF-8", errors="replace", replacement_char=63)

SAMPLES = [
    Sample(
        "Dilation2D",
        dict(input=f32(2, 5, 6, 2), filter=f32(2, 3, 2)),
        _MORPHOLOGY,
        grad=["input", "filter"],
    ),
    Sample(
        "Dilation2D",
        dict(input=i32(1, 5, 4, 1), filter=i32(2, 2, 1)),
        dict(strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"),
        id="Dilation2D-whole",
    ),
    Sample(
        "Dilation2DBackpropInput",
        dict(input=f32(2, 5, 6, 2), filter=f32(2, 3, 2), out_backprop=f32(2, 3, 6, 2)),
        _MORPHOLOGY,
    ),
    Sample(
        "Dilation2DBackpropFilter",
        dict(input=f32(2, 5, 6, 2), filter=f32(2, 3, 2), out_backprop=f32(2, 3, 6, 2)),
        _MORPHOLOGY,
    ),
    Sample(
        "FractionalMaxPoolGrad",
        dict(
            orig_input=f32(1, 5, 4, 2),
            orig_output=f32(1, 3, 2, 2),
            out_backprop=f32(1, 3, 2, 2, salt=1),
            row_pooling_sequence=np.array([0, 2, 3, 5]),
            col_pooling_sequence=np.array([0, 1, 4]),
        ),
        golden=False,
        why="TensorFlow compares with orig_output; golden/namespace_cases.py has true ones",
    ),
    Sample(
        "FractionalAvgPoolGrad",
        dict(
            orig_input_tensor_shape=np.array([1, 5, 4, 2]),
            out_backprop=f32(1, 3, 2, 2),
            row_pooling_sequence=np.array([0, 2, 3, 5]),
            col_pooling_sequence=np.array([0, 1, 4]),
        ),
        dict(overlapping=True),
        const=["orig_input_tensor_shape"],
    ),
    Sample(
        "TridiagonalSolve",
        dict(diagonals=f64(2, 3, 4) + np.array([[0], [3], [0]]), rhs=f64(2, 4, 2)),
        grad=["diagonals", "rhs"],
    ),
    Sample(
        "TridiagonalMatMul",
        dict(
            superdiag=f64(1, 4),
            maindiag=f64(1, 4, salt=1),
            subdiag=f64(1, 4, salt=2),
            rhs=f64(4, 3),
        ),
        grad=["superdiag", "maindiag", "subdiag", "rhs"],
    ),
    Sample("UnicodeDecode", dict(input=_WORDS), _READING),
    Sample(
        "UnicodeDecodeWithOffsets",
        dict(input=_WORDS),
        _READING,
    ),
    Sample(
        "UnicodeEncode",
        dict(
            input_values=np.array([97, 252, 0x1F60A], np.int32), input_splits=np.array([0, 2, 2, 3])
        ),
        dict(output_encoding="UTF-16-BE"),
    ),
    Sample("UnicodeTranscode", dict(input=_WORDS), dict(_READING, output_encoding="UTF-32-BE")),
    Sample(
        "StringNGrams",
        dict(data=strings(["a", "b", "c", "d"]), data_splits=np.array([0, 3, 4])),
        dict(
            separator=" ",
            ngram_widths=[2, 3],
            left_pad="<",
            right_pad=">",
            pad_width=1,
            preserve_short_sequences=True,
        ),
    ),
    Sample(
        "UnsortedSegmentJoin",
        dict(
            inputs=strings(["a", "b", "c"]),
            segment_ids=np.array([1, 0, 1]),
            num_segments=np.int32(3),
        ),
        dict(separator=","),
        const=["num_segments"],
    ),
    Sample(
        "CombinedNonMaxSuppression",
        dict(
            boxes=f32(1, 6, 1, 4, low=0.0, high=0.4) + np.array([0, 0, 0.5, 0.5], np.float32),
            scores=f32(1, 6, 2, low=0.0),
            max_output_size_per_class=np.int32(2),
            max_total_size=np.int32(3),
            iou_threshold=np.float32(0.5),
            score_threshold=np.float32(0.1),
        ),
        const=["max_output_size_per_class", "max_total_size"],
    ),
]
