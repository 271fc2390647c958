"""Samples of sparse tensors, strings, printing and assertions."""

import numpy as np

from .base import Sample, c64, f32, i32, strings


def ints(*values):
    return np.array(values, np.int32)


def longs(*values):
    return np.array(values, np.int64)


IX = longs([0, 1], [0, 3], [1, 0], [2, 2])
JX = longs([0, 1], [1, 3], [2, 2])
DIMS = longs(3, 4)
MIXED = longs([2, 2], [0, 3], [1, 0], [0, 1])
TEXT = strings(["Hello World", "a,b,,c", "", "x  y "])
NUMBERS = strings(["1.5", "-2", "1e3"])


DENSE = np.zeros((3, 4), np.complex64)
DENSE[tuple(IX.T)] = c64(4)


def sp(**more):
    out = dict(input_indices=IX, input_values=f32(4), input_shape=DIMS)
    out.update(more)
    return out


SAMPLES = [
    # sparse and dense
    Sample(
        "SparseToDense",
        dict(sparse_indices=IX, output_shape=DIMS, sparse_values=f32(4), default_value=f32()),
        grad=["sparse_values", "default_value"],
        const=["output_shape"],
    ),
    Sample(
        "SparseToDense",
        dict(
            sparse_indices=ints(0, 3),
            output_shape=ints(5),
            sparse_values=f32(),
            default_value=f32(),
        ),
        id="SparseToDense_vector",
    ),
    Sample(
        "SparseToDense",
        dict(
            sparse_indices=IX,
            output_shape=DIMS,
            sparse_values=strings(["a", "b", "c", "d"]),
            default_value=strings("-"),
        ),
        dict(validate_indices=False),
        id="SparseToDense_string",
    ),
    Sample(
        "SparseTensorDenseMatMul",
        dict(a_indices=IX, a_values=f32(4), a_shape=DIMS, b=f32(4, 2)),
        grad=["a_values", "b"],
        const=["a_shape"],
    ),
    Sample(
        "SparseTensorDenseMatMul",
        dict(a_indices=IX.astype(np.int32), a_values=f32(4), a_shape=DIMS, b=f32(2, 3)),
        dict(adjoint_a=True, adjoint_b=True),
        grad=["a_values", "b"],
    ),
    Sample(
        "SparseTensorDenseMatMul",
        dict(a_indices=IX, a_values=c64(4), a_shape=DIMS, b=c64(2, 4)),
        dict(adjoint_b=True),
        grad=["a_values", "b"],
        id="SparseTensorDenseMatMul_complex",
    ),
    Sample(
        "SparseTensorDenseMatMul",
        dict(a_indices=IX, a_values=c64(4), a_shape=DIMS, b=c64(3, 2)),
        dict(adjoint_a=True),
        grad=["a_values", "b"],
        id="SparseTensorDenseMatMul_complex_adjoint",
        golden=False,
        why="TensorFlow 1.15 transposes here without conjugating, against its documentation",
        expect=np.conj(DENSE.T).dot(c64(3, 2)),
    ),
    Sample(
        "SparseReorder",
        dict(input_indices=MIXED, input_values=f32(4), input_shape=DIMS),
        grad=["input_values"],
    ),
    Sample("SparseReshape", dict(input_indices=IX, input_shape=DIMS, new_shape=longs(2, -1))),
    Sample(
        "SparseReshape",
        dict(input_indices=np.zeros((0, 2), np.int64), input_shape=DIMS, new_shape=longs(12)),
        id="SparseReshape_empty",
    ),
    Sample(
        "SparseSlice",
        dict(indices=IX, values=f32(4), shape=DIMS, start=longs(0, 1), size=longs(2, 9)),
        grad=["values"],
    ),
    Sample(
        "SparseSliceGrad",
        dict(
            backprop_val_grad=f32(2),
            input_indices=IX,
            input_start=longs(0, 1),
            output_indices=longs([0, 0], [0, 2]),
        ),
    ),
    Sample(
        "SparseAdd",
        dict(
            a_indices=IX,
            a_values=f32(4),
            a_shape=DIMS,
            b_indices=JX,
            b_values=f32(3),
            b_shape=DIMS,
            thresh=np.float32(0),
        ),
        grad=["a_values", "b_values"],
    ),
    Sample(
        "SparseAdd",
        dict(
            a_indices=IX,
            a_values=i32(4),
            a_shape=DIMS,
            b_indices=JX,
            b_values=i32(3),
            b_shape=DIMS,
            thresh=np.int32(7),
        ),
    ),
    Sample(
        "SparseAddGrad",
        dict(
            backprop_val_grad=f32(5),
            a_indices=IX,
            b_indices=JX,
            sum_indices=longs([0, 1], [0, 3], [1, 0], [1, 3], [2, 2]),
        ),
    ),
    Sample(
        "SparseTensorDenseAdd",
        dict(a_indices=IX, a_values=f32(4), a_shape=DIMS, b=f32(3, 4)),
        grad=["a_values", "b"],
    ),
    Sample("SparseReduceSum", sp(reduction_axes=ints(1)), grad=["input_values"]),
    Sample(
        "SparseReduceSum",
        sp(reduction_axes=ints(0)[0]),
        dict(keep_dims=True),
        grad=["input_values"],
        const=["input_shape"],
    ),
    Sample(
        "SparseReduceSum",
        sp(reduction_axes=ints(-1, 0)),
        grad=["input_values"],
        id="SparseReduceSum_all",
    ),
    Sample("SparseReduceSumSparse", sp(reduction_axes=ints(0))),
    Sample("SparseReduceMax", sp(reduction_axes=ints(1))),
    Sample("SparseReduceMaxSparse", sp(reduction_axes=ints(1)), dict(keep_dims=True)),
    Sample(
        "SparseSoftmax", dict(sp_indices=IX, sp_values=f32(4), sp_shape=DIMS), grad=["sp_values"]
    ),
    Sample(
        "SparseDenseCwiseAdd",
        dict(sp_indices=IX, sp_values=f32(4), sp_shape=DIMS, dense=f32(3, 1)),
        grad=["sp_values", "dense"],
    ),
    Sample(
        "SparseDenseCwiseMul",
        dict(sp_indices=IX, sp_values=f32(4), sp_shape=DIMS, dense=f32(3, 4)),
        grad=["sp_values", "dense"],
    ),
    Sample(
        "SparseDenseCwiseMul",
        dict(sp_indices=IX, sp_values=f32(4), sp_shape=DIMS, dense=f32(4)),
        grad=["sp_values", "dense"],
        id="SparseDenseCwiseMul_broadcast",
    ),
    Sample(
        "SparseDenseCwiseDiv",
        dict(sp_indices=IX, sp_values=f32(4), sp_shape=DIMS, dense=f32(3, 4, low=1, high=2)),
        grad=["sp_values", "dense"],
    ),
    Sample(
        "SparseDenseCwiseDiv",
        dict(sp_indices=IX, sp_values=ints(-7, 7, -9, 4), sp_shape=DIMS, dense=ints(2, 2, 2, 3)),
        id="SparseDenseCwiseDiv_int",
    ),
    Sample(
        "SparseSparseMaximum",
        dict(
            a_indices=IX, a_values=f32(4), a_shape=DIMS, b_indices=JX, b_values=f32(3), b_shape=DIMS
        ),
    ),
    Sample(
        "SparseSparseMinimum",
        dict(
            a_indices=IX, a_values=f32(4), a_shape=DIMS, b_indices=JX, b_values=f32(3), b_shape=DIMS
        ),
    ),
    Sample(
        "SparseConcat",
        dict(indices=[IX, JX], values=[f32(4), f32(3)], shapes=[DIMS, longs(3, 5)]),
        dict(concat_dim=1),
    ),
    Sample(
        "SparseConcat",
        dict(indices=[IX, JX], values=[f32(4), f32(3)], shapes=[DIMS, DIMS]),
        dict(concat_dim=-2),
    ),
    Sample(
        "SparseSplit",
        dict(split_dim=longs(1)[0], indices=IX, values=f32(4), shape=DIMS),
        dict(num_split=3),
    ),
    Sample(
        "SparseFillEmptyRows",
        dict(
            indices=longs([0, 1], [3, 0]),
            values=f32(2),
            dense_shape=longs(5, 6),
            default_value=f32(),
        ),
        grad=["values", "default_value"],
    ),
    Sample("SparseFillEmptyRowsGrad", dict(reverse_index_map=longs(0, 3), grad_values=f32(5))),
    # rows of different lengths
    Sample("RaggedRange", dict(starts=ints(0, 5, 8), limits=ints(3, 5, 2), deltas=ints(1, 1, -2))),
    Sample(
        "RaggedRange",
        dict(starts=f32(3), limits=np.float32(4.5), deltas=np.float32(0.5)),
        dict(Tsplits="int32"),
        id="RaggedRange_float",
    ),
    Sample(
        "RaggedTensorToSparse",
        dict(rt_nested_splits=[longs(0, 2, 2, 3), longs(0, 1, 1, 4)], rt_dense_values=f32(4)),
        grad=["rt_dense_values"],
    ),
    Sample(
        "RaggedTensorToSparse",
        dict(rt_nested_splits=[longs(0, 2, 2, 3)], rt_dense_values=f32(3, 2)),
        grad=["rt_dense_values"],
        id="RaggedTensorToSparse_inner",
    ),
    # strings
    Sample("StringJoin", dict(inputs=[TEXT, strings("-"), TEXT]), dict(separator="/")),
    Sample("StringJoin", dict(inputs=[strings("a"), strings("b")]), id="StringJoin_scalars"),
    Sample("StringSplit", dict(input=TEXT, delimiter=strings(" ,"))),
    Sample("StringSplit", dict(input=TEXT, delimiter=strings(",")), dict(skip_empty=False)),
    Sample("StringSplit", dict(input=TEXT, delimiter=strings("")), id="StringSplit_bytes"),
    Sample("StringSplitV2", dict(input=TEXT, sep=strings(""))),
    Sample("StringSplitV2", dict(input=TEXT, sep=strings(",")), dict(maxsplit=1)),
    Sample(
        "ReduceJoin",
        dict(inputs=strings([["a", "b"], ["c", "d"]]), reduction_indices=ints(0)),
        dict(separator="-"),
    ),
    Sample(
        "ReduceJoin",
        dict(inputs=strings([["a", "b"], ["c", "d"]]), reduction_indices=ints(0, 1)),
        dict(keep_dims=True),
    ),
    Sample(
        "ReduceJoin", dict(inputs=strings([["a", "b"], ["c", "d"]]), reduction_indices=ints(1, 0))
    ),
    Sample(
        "ReduceJoin",
        dict(inputs=strings([["a", "b"], ["c", "d"]]), reduction_indices=ints(-2)[0]),
        id="ReduceJoin_neg",
    ),
    Sample("AsString", dict(input=f32(3))),
    Sample("AsString", dict(input=f32(3)), dict(precision=2, width=8, fill="0")),
    Sample("AsString", dict(input=f32(3)), dict(scientific=True)),
    Sample("AsString", dict(input=f32(3)), dict(shortest=True)),
    Sample("AsString", dict(input=i32(3, low=-5)), dict(width=4)),
    Sample("AsString", dict(input=np.array([True, False])), id="AsString_bool"),
    Sample("AsString", dict(input=c64(2)), id="AsString_complex"),
    Sample("StringToNumber", dict(string_tensor=NUMBERS)),
    Sample("StringToNumber", dict(string_tensor=strings(["12", "-7"])), dict(out_type="int64")),
    Sample(
        "DecodeRaw",
        dict(bytes=strings([b"\x01\x00\x02\x00", b"\x03\x01\x04\x00"])),
        dict(out_type="int16"),
    ),
    Sample(
        "DecodeRaw",
        dict(bytes=strings(b"\x01\x00\x02\x00")),
        dict(out_type="int16", little_endian=False),
    ),
    Sample("DecodeRaw", dict(bytes=strings([b"abc"])), dict(out_type="uint8")),
    Sample("Substr", dict(input=strings(["Hello", "World"]), pos=ints(1)[0], len=ints(3)[0])),
    Sample("Substr", dict(input=strings(["Hello", "World"]), pos=longs(1, -2), len=longs(9, 1))),
    Sample(
        "Substr",
        dict(input=strings(["h\u00e9llo".encode("utf-8")]), pos=ints(1)[0], len=ints(2)[0]),
        dict(unit="UTF8_CHAR"),
    ),
    Sample("StringLength", dict(input=TEXT)),
    Sample(
        "StringLength", dict(input=strings(["h\u00e9llo".encode("utf-8")])), dict(unit="UTF8_CHAR")
    ),
    Sample("StringLower", dict(input=TEXT)),
    Sample(
        "StringLower", dict(input=strings(["H\u00c9llo".encode("utf-8")])), dict(encoding="utf-8")
    ),
    Sample("StringUpper", dict(input=TEXT)),
    Sample("StringStrip", dict(input=strings(["  a b \n", "\t"]))),
    Sample(
        "RegexReplace", dict(input=TEXT, pattern=strings("([a-z])o"), rewrite=strings(r"<\1>\0"))
    ),
    Sample(
        "RegexReplace",
        dict(input=TEXT, pattern=strings("o"), rewrite=strings("0")),
        dict(replace_global=False),
    ),
    Sample("StaticRegexReplace", dict(input=TEXT), dict(pattern="[, ]", rewrite="_")),
    Sample("RegexFullMatch", dict(input=TEXT, pattern=strings("[a-z, ]*"))),
    Sample("StaticRegexFullMatch", dict(input=TEXT), dict(pattern="H.*d")),
    Sample("StringToHashBucketFast", dict(input=TEXT), dict(num_buckets=1000)),
    Sample("StringToHashBucket", dict(string_tensor=TEXT), dict(num_buckets=1000)),
    Sample("StringToHashBucketStrong", dict(input=TEXT), dict(num_buckets=1000, key=[1, 2])),
    Sample("EncodeBase64", dict(input=TEXT)),
    Sample("EncodeBase64", dict(input=strings([b"\xff\xfe\xfd\xfc"])), dict(pad=True)),
    Sample("DecodeBase64", dict(input=strings(["SGVsbG8", "__79_A==", ""]))),
    # text and assertions
    Sample(
        "StringFormat",
        dict(inputs=[f32(2, 3), ints(1, 2, 3, 4, 5, 6, 7, 8), strings('a"b')]),
        dict(template="x %s y %s z %s"),
    ),
    Sample(
        "StringFormat",
        dict(inputs=[i32(2, 2, 8)]),
        dict(template="{}", placeholder="{}", summarize=2),
    ),
    Sample("StringFormat", dict(inputs=[i32(7)]), dict(summarize=-1)),
    Sample(
        "Print",
        dict(input=f32(2), data=[f32(2, 3), i32(3)]),
        dict(message="samples: "),
        grad=["input"],
    ),
    Sample("PrintV2", dict(input=strings("a line from the samples"))),
    Sample("Assert", dict(condition=np.array(True), data=[f32(2), strings("fine")])),
]
