"""Samples of shapes, slices, joining, padding and arranging."""

import numpy as np

from .base import Sample, boolean, c64, f32, f64, i32, i64, strings


def ints(*values):
    return np.array(values, np.int32)


def longs(*values):
    return np.array(values, np.int64)


def half(*shape, **kw):
    return f32(*shape, **kw).astype(np.float16)


WORDS = strings([["a", "bc", ""], ["def", "g", "hi"]])
NCHW = "TensorFlow's CPU kernel takes NHWC only"

SAMPLES = [
    # shapes
    Sample("Shape", dict(input=f32(2, 3))),
    Sample("Shape", dict(input=f32(2, 0, 3)), dict(out_type="int64")),
    Sample("Shape", dict(input=f32()), id="Shape_scalar"),
    Sample("ShapeN", dict(input=[f32(2, 3), f32(4)])),
    Sample("ShapeN", dict(input=[f32(2, 3)]), dict(out_type="int64")),
    Sample("Size", dict(input=f32(2, 3))),
    Sample("Size", dict(input=WORDS), dict(out_type="int64")),
    Sample("Rank", dict(input=f32(2, 3, 1))),
    # reshaping
    Sample("Reshape", dict(tensor=f32(2, 3), shape=ints(3, -1)), grad=["tensor"], const=["shape"]),
    Sample("Reshape", dict(tensor=f32(2, 3), shape=longs(6)), grad=["tensor"]),
    Sample("Reshape", dict(tensor=WORDS, shape=ints(-1)), id="Reshape_string"),
    Sample(
        "Reshape",
        dict(tensor=f32(1), shape=np.zeros(0, np.int32)),
        grad=["tensor"],
        id="Reshape_to_scalar",
    ),
    Sample("Reshape", dict(tensor=f32(0, 3), shape=ints(-1, 3)), id="Reshape_empty"),
    Sample("ExpandDims", dict(input=f32(2, 3), dim=ints(1)[0]), grad=["input"], const=["dim"]),
    Sample("ExpandDims", dict(input=f32(2, 3), dim=longs(-1)[0]), grad=["input"]),
    Sample("ExpandDims", dict(input=f32(), dim=ints(0)), grad=["input"], id="ExpandDims_scalar"),
    Sample("Squeeze", dict(input=f32(1, 3, 1)), grad=["input"]),
    Sample("Squeeze", dict(input=f32(1, 3, 1)), dict(squeeze_dims=[-1]), grad=["input"]),
    Sample("Squeeze", dict(input=i32(1, 1)), id="Squeeze_to_scalar"),
    Sample("Transpose", dict(x=f32(2, 3, 4), perm=ints(2, 0, 1)), grad=["x"], const=["perm"]),
    Sample("Transpose", dict(x=f32(2, 3, 4), perm=longs(1, 2, 0)), grad=["x"]),
    Sample("Transpose", dict(x=WORDS, perm=ints(1, 0)), id="Transpose_string"),
    Sample(
        "Transpose", dict(x=f32(), perm=np.zeros(0, np.int32)), grad=["x"], id="Transpose_scalar"
    ),
    Sample("ConjugateTranspose", dict(x=c64(2, 3), perm=ints(1, 0)), grad=["x"]),
    Sample("ConjugateTranspose", dict(x=f32(2, 3), perm=ints(1, 0)), grad=["x"], const=["perm"]),
    # broadcasting and filling
    Sample(
        "BroadcastTo", dict(input=f32(3, 1), shape=ints(2, 3, 4)), grad=["input"], const=["shape"]
    ),
    Sample("BroadcastTo", dict(input=f32(3, 1), shape=longs(2, 3, 4)), grad=["input"]),
    Sample(
        "BroadcastTo", dict(input=f32(), shape=ints(2)), grad=["input"], id="BroadcastTo_scalar"
    ),
    Sample(
        "BroadcastTo",
        dict(input=f32(2, 3), shape=ints(2, 3)),
        grad=["input"],
        const=["shape"],
        id="BroadcastTo_same",
    ),
    Sample("BroadcastArgs", dict(s0=ints(2, 1, 3), s1=ints(4, 1))),
    Sample("BroadcastArgs", dict(s0=longs(), s1=longs(4, 1))),
    Sample("Fill", dict(dims=ints(2, 3), value=f32()), grad=["value"], const=["dims"]),
    Sample("Fill", dict(dims=longs(0, 3), value=i32())),
    Sample("Fill", dict(dims=np.zeros(0, np.int32), value=f32()), grad=["value"], id="Fill_scalar"),
    Sample("Fill", dict(dims=ints(2), value=strings("ab")), id="Fill_string"),
    Sample("ZerosLike", dict(x=f32(2, 3))),
    Sample("ZerosLike", dict(x=WORDS), id="ZerosLike_string"),
    Sample("ZerosLike", dict(x=boolean(3)), id="ZerosLike_bool"),
    Sample("OnesLike", dict(x=f32(2, 3))),
    Sample("OnesLike", dict(x=c64(2)), id="OnesLike_complex"),
    Sample("EnsureShape", dict(input=f32(2, 3)), dict(shape=[None, 3]), grad=["input"]),
    Sample("GuaranteeConst", dict(input=f32(2, 3)), grad=["input"]),
    # slices
    Sample(
        "Slice",
        dict(input=f32(3, 4), begin=ints(1, 0), size=ints(2, -1)),
        grad=["input"],
        const=["begin", "size"],
    ),
    Sample("Slice", dict(input=f32(3, 4), begin=longs(0, 2), size=longs(1, 2)), grad=["input"]),
    Sample("Slice", dict(input=WORDS, begin=ints(0, 1), size=ints(2, 1)), id="Slice_string"),
    Sample(
        "StridedSlice",
        dict(input=f32(4, 5), begin=ints(1, 4), end=ints(4, 0), strides=ints(2, -1)),
        grad=["input"],
        const=["begin", "end", "strides"],
    ),
    Sample(
        "StridedSlice",
        dict(input=f32(4, 5, 2), begin=ints(0, 1), end=ints(0, 2), strides=ints(1, 1)),
        dict(ellipsis_mask=1, shrink_axis_mask=2),
        grad=["input"],
    ),
    Sample(
        "StridedSlice",
        dict(input=f32(4, 5), begin=longs(0, -2, 0), end=longs(0, -1, 3), strides=longs(1, 1, 1)),
        dict(new_axis_mask=1, shrink_axis_mask=2, begin_mask=4),
        grad=["input"],
    ),
    Sample(
        "StridedSlice",
        dict(input=f32(4), begin=ints(-1), end=ints(0), strides=ints(1)),
        dict(shrink_axis_mask=1),
        grad=["input"],
        id="StridedSlice_scalar",
    ),
    Sample(
        "StridedSlice",
        dict(input=f32(4), begin=ints(0), end=ints(0), strides=ints(-2)),
        dict(begin_mask=1, end_mask=1),
        grad=["input"],
        id="StridedSlice_reversed",
    ),
    Sample(
        "StridedSlice",
        dict(input=WORDS, begin=ints(0, 1), end=ints(1, 2), strides=ints(1, 1)),
        dict(shrink_axis_mask=3),
        id="StridedSlice_string",
    ),
    Sample(
        "StridedSlice",
        dict(input=f32(4, 5), begin=ints(3), end=ints(1), strides=ints(1)),
        grad=["input"],
        id="StridedSlice_empty",
    ),
    Sample(
        "StridedSliceGrad",
        dict(shape=ints(4, 5), begin=ints(1, 4), end=ints(4, 0), strides=ints(2, -1), dy=f32(2, 4)),
        grad=["dy"],
        const=["shape"],
    ),
    Sample(
        "StridedSliceGrad",
        dict(shape=longs(4, 5), begin=longs(1), end=longs(2), strides=longs(1), dy=f32(5)),
        dict(shrink_axis_mask=1),
        grad=["dy"],
    ),
    # joining
    Sample(
        "ConcatV2",
        dict(values=[f32(2, 3), f32(2, 1), f32(2, 2)], axis=ints(1)[0]),
        grad=["values"],
        const=["axis"],
    ),
    Sample(
        "ConcatV2",
        dict(values=[f32(2, 3), f32(2, 3, salt=1)], axis=ints(-2)[0]),
        grad=["values"],
        const=["axis"],
    ),
    Sample("ConcatV2", dict(values=[f32(2, 3), f32(0, 3)], axis=longs(0)[0]), grad=["values"]),
    Sample("ConcatV2", dict(values=[WORDS, WORDS], axis=ints(0)[0]), id="ConcatV2_string"),
    Sample("Concat", dict(concat_dim=ints(1)[0], values=[f32(2, 3), f32(2, 1)]), grad=["values"]),
    Sample("ConcatOffset", dict(concat_dim=ints(1)[0], shape=[ints(2, 3), ints(2, 4), ints(2, 0)])),
    Sample("Pack", dict(values=[f32(2, 3), f32(2, 3, salt=1)]), dict(axis=1), grad=["values"]),
    Sample("Pack", dict(values=[f32(), f32(salt=1)]), grad=["values"], id="Pack_scalars"),
    Sample("Pack", dict(values=[f32(2), f32(2, salt=1)]), dict(axis=-1), grad=["values"]),
    Sample("Pack", dict(values=[strings("a"), strings("bc")]), id="Pack_strings"),
    Sample("Unpack", dict(value=f32(2, 3)), dict(num=2), grad=["value"]),
    Sample("Unpack", dict(value=f32(2, 3)), dict(num=3, axis=-1), grad=["value"]),
    Sample("Unpack", dict(value=f32(1, 3)), dict(num=1), grad=["value"], id="Unpack_one"),
    Sample("Unpack", dict(value=f32(3)), dict(num=3), grad=["value"], id="Unpack_scalars"),
    Sample("Unpack", dict(value=WORDS), dict(num=2), id="Unpack_string"),
    Sample(
        "ParallelConcat",
        dict(values=[f32(1, 3), f32(1, 3, salt=1)]),
        dict(shape=[2, 3]),
        golden=False,
        why="TensorFlow rewrites it before it runs, but not when all inputs are fed",
        expect=np.concatenate([f32(1, 3), f32(1, 3, salt=1)]),
    ),
    Sample(
        "Split",
        dict(split_dim=ints(1)[0], value=f32(2, 6)),
        dict(num_split=3),
        grad=["value"],
        const=["split_dim"],
    ),
    Sample(
        "Split", dict(split_dim=ints(-2)[0], value=f32(4, 2)), dict(num_split=2), grad=["value"]
    ),
    Sample(
        "Split",
        dict(split_dim=ints(0)[0], value=f32(4, 2)),
        dict(num_split=1),
        grad=["value"],
        id="Split_one",
    ),
    Sample(
        "SplitV",
        dict(value=f32(2, 6), size_splits=ints(1, -1, 2), split_dim=ints(1)[0]),
        dict(num_split=3),
        grad=["value"],
        const=["size_splits", "split_dim"],
    ),
    Sample(
        "SplitV",
        dict(value=f32(4, 2), size_splits=longs(4, 0), split_dim=ints(0)[0]),
        dict(num_split=2),
        grad=["value"],
    ),
    Sample(
        "Tile", dict(input=f32(2, 3), multiples=ints(2, 1)), grad=["input"], const=["multiples"]
    ),
    Sample("Tile", dict(input=f32(2, 3), multiples=longs(1, 3)), grad=["input"]),
    Sample("Tile", dict(input=WORDS, multiples=ints(1, 2)), id="Tile_string"),
    Sample("Tile", dict(input=f32(2), multiples=ints(0)), id="Tile_zero"),
    Sample(
        "TileGrad",
        dict(input=f32(4, 3), multiples=ints(2, 1)),
        grad=["input"],
        golden=False,
        why="it has no CPU kernel in TensorFlow 1.15",
        expect=f32(4, 3).reshape(2, 2, 3).sum(0),
    ),
    # padding
    Sample(
        "Pad",
        dict(input=f32(2, 3), paddings=ints([1, 0], [2, 1])),
        grad=["input"],
        const=["paddings"],
    ),
    Sample("Pad", dict(input=f32(2, 3), paddings=longs([0, 0], [0, 2])), grad=["input"]),
    Sample("Pad", dict(input=i32(2), paddings=ints([1, 1])), id="Pad_int"),
    Sample(
        "PadV2",
        dict(input=f32(2, 3), paddings=ints([1, 0], [2, 1]), constant_values=f32()),
        grad=["input"],
        const=["paddings"],
    ),
    Sample(
        "PadV2",
        dict(input=f32(3), paddings=longs([1, 2]), constant_values=f32()),
        grad=["input"],
    ),
    Sample(
        "MirrorPad",
        dict(input=f32(3, 4), paddings=ints([2, 1], [0, 3])),
        dict(mode="REFLECT"),
        grad=["input"],
        const=["paddings"],
    ),
    Sample(
        "MirrorPad",
        dict(input=f32(3, 4), paddings=ints([3, 1], [2, 4])),
        dict(mode="SYMMETRIC"),
        grad=["input"],
    ),
    Sample(
        "MirrorPadGrad",
        dict(input=f32(6, 7), paddings=ints([2, 1], [0, 3])),
        dict(mode="REFLECT"),
        grad=["input"],
    ),
    Sample(
        "MirrorPadGrad",
        dict(input=f32(7, 10), paddings=ints([3, 1], [2, 4])),
        dict(mode="SYMMETRIC"),
        grad=["input"],
        const=["paddings"],
    ),
    # arranging
    Sample(
        "ReverseV2", dict(tensor=f32(2, 3, 4), axis=ints(0, -1)), grad=["tensor"], const=["axis"]
    ),
    Sample("ReverseV2", dict(tensor=WORDS, axis=longs(1)), id="ReverseV2_string"),
    Sample("Reverse", dict(tensor=f32(2, 3), dims=np.array([False, True])), grad=["tensor"]),
    Sample(
        "ReverseSequence",
        dict(input=f32(3, 4, 2), seq_lengths=longs(2, 0, 4)),
        dict(seq_dim=1),
        grad=["input"],
    ),
    Sample(
        "ReverseSequence",
        dict(input=f32(4, 3, 2), seq_lengths=ints(2, 1, 4)),
        dict(seq_dim=0, batch_dim=1),
        grad=["input"],
    ),
    Sample("Roll", dict(input=f32(3, 4), shift=ints(1)[0], axis=ints(1)[0]), grad=["input"]),
    Sample(
        "Roll",
        dict(input=f32(3, 4), shift=longs(1, -2), axis=ints(0, 1)),
        grad=["input"],
        const=["shift", "axis"],
    ),
    Sample(
        "SpaceToBatchND",
        dict(input=f32(1, 4, 5, 2), block_shape=ints(2, 3), paddings=ints([0, 0], [0, 1])),
        grad=["input"],
        const=["block_shape", "paddings"],
    ),
    Sample(
        "SpaceToBatchND",
        dict(input=f32(2, 4), block_shape=ints(2), paddings=ints([1, 1])),
        grad=["input"],
    ),
    Sample(
        "BatchToSpaceND",
        dict(input=f32(6, 2, 2, 1), block_shape=ints(2, 3), crops=ints([0, 0], [0, 1])),
        grad=["input"],
        const=["block_shape", "crops"],
    ),
    Sample(
        "BatchToSpaceND",
        dict(input=f32(4, 3), block_shape=ints(2), crops=ints([1, 1])),
        grad=["input"],
    ),
    Sample(
        "SpaceToBatch",
        dict(input=f32(1, 4, 2, 2), paddings=ints([0, 0], [1, 1])),
        dict(block_size=2),
        grad=["input"],
    ),
    Sample(
        "BatchToSpace",
        dict(input=f32(4, 2, 3, 1), crops=ints([0, 0], [1, 0])),
        dict(block_size=2),
        grad=["input"],
    ),
    Sample("SpaceToDepth", dict(input=f32(1, 4, 2, 3)), dict(block_size=2), grad=["input"]),
    Sample("DepthToSpace", dict(input=f32(1, 2, 2, 8)), dict(block_size=2), grad=["input"]),
    Sample(
        "SpaceToDepth",
        dict(input=f32(1, 3, 4, 2)),
        dict(block_size=2, data_format="NCHW"),
        grad=["input"],
        golden=False,
        why=NCHW,
        expect=f32(1, 3, 4, 2)
        .reshape(1, 3, 2, 2, 1, 2)
        .transpose(0, 3, 5, 1, 2, 4)
        .reshape(1, 12, 2, 1),
    ),
    Sample(
        "DepthToSpace",
        dict(input=f32(1, 8, 2, 3)),
        dict(block_size=2, data_format="NCHW"),
        grad=["input"],
        golden=False,
        why=NCHW,
        expect=f32(1, 8, 2, 3)
        .reshape(1, 2, 2, 2, 2, 3)
        .transpose(0, 3, 4, 1, 5, 2)
        .reshape(1, 2, 4, 6),
    ),
    Sample(
        "ExtractImagePatches",
        dict(images=f32(2, 5, 6, 2)),
        dict(ksizes=[1, 3, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 2, 1], padding="SAME"),
        grad=["images"],
    ),
    Sample(
        "ExtractImagePatches",
        dict(images=f32(1, 5, 6, 1)),
        dict(ksizes=[1, 2, 2, 1], strides=[1, 1, 3, 1], rates=[1, 1, 1, 1], padding="VALID"),
        grad=["images"],
    ),
    Sample("Reshape", dict(tensor=half(2, 3), shape=ints(6)), id="Reshape_half"),
    Sample("ConcatV2", dict(values=[half(2), half(3)], axis=ints(0)[0]), id="ConcatV2_half"),
    Sample("Pad", dict(input=f64(2), paddings=ints([1, 0])), id="Pad_double"),
    Sample("Roll", dict(input=i64(4), shift=ints(-1)[0], axis=ints(-1)[0]), id="Roll_int64"),
]
