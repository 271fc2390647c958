"""Samples of gather, scatter, selection, uniqueness, sorting and searching."""

import numpy as np

from .base import Sample, boolean, c64, f32, i32, i64, strings


def ints(*values):
    return np.array(values, np.int32)


def longs(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


WORDS = strings(["b", "a", "b", "cc", "a", "b"])
ZERO = ints(0)[0]


def same_set(got, golden):
    """The same pairs of index and value in each row, in any order."""
    pairs = [
        [np.take_along_axis(part, np.argsort(outputs[1], -1), -1) for part in outputs]
        for outputs in (got, golden)
    ]
    np.testing.assert_array_equal(pairs[0][1], pairs[1][1])
    np.testing.assert_array_equal(pairs[0][0], pairs[1][0])


SAMPLES = [
    # gather
    Sample("Gather", dict(params=f32(4, 3), indices=ints([2, 0], [2, 3])), grad=["params"]),
    Sample(
        "Gather",
        dict(params=WORDS, indices=longs(3, 0)),
        dict(validate_indices=False),
        id="Gather_string",
    ),
    Sample(
        "GatherV2",
        dict(params=f32(4, 3), indices=ints(2, 0, 2), axis=ZERO),
        grad=["params"],
        const=["axis"],
    ),
    Sample(
        "GatherV2",
        dict(params=f32(4, 3), indices=longs([2, 0], [0, 1]), axis=ints(1)[0]),
        grad=["params"],
        const=["axis"],
    ),
    Sample(
        "GatherV2",
        dict(params=f32(2, 3, 4), indices=ints([2, 0], [0, 0]), axis=longs(-2)[0]),
        grad=["params"],
        const=["axis"],
    ),
    Sample(
        "GatherV2",
        dict(params=f32(4), indices=ints(1)[0], axis=ZERO),
        grad=["params"],
        const=["axis"],
        id="GatherV2_scalar",
    ),
    Sample("GatherV2", dict(params=WORDS, indices=ints(5, 1), axis=ZERO), id="GatherV2_string"),
    Sample(
        "GatherV2", dict(params=WORDS, indices=ints(5)[0], axis=ZERO), id="GatherV2_string_scalar"
    ),
    Sample(
        "GatherV2",
        dict(params=f32(4, 3), indices=np.zeros(0, np.int32), axis=ZERO),
        grad=["params"],
        const=["axis"],
        id="GatherV2_empty",
    ),
    Sample(
        "GatherV2",
        dict(params=f32(2, 3, 4), indices=ints([2, 0], [0, 0]), axis=ints(1)[0]),
        dict(batch_dims=1),
        grad=["params"],
        const=["axis"],
    ),
    Sample(
        "GatherV2",
        dict(params=f32(2, 3, 4), indices=ints([[2], [0], [3]], [[0], [0], [1]]), axis=ints(2)[0]),
        dict(batch_dims=2),
        grad=["params"],
        const=["axis"],
    ),
    Sample(
        "GatherV2",
        dict(params=f32(2, 3, 4), indices=ints([2, 0, 3], [0, 0, 1]), axis=ints(2)[0]),
        dict(batch_dims=1),
        grad=["params"],
        const=["axis"],
        id="GatherV2_batch_outer",
    ),
    Sample(
        "GatherNd", dict(params=f32(3, 4), indices=ints([0, 1], [2, 3], [0, 1])), grad=["params"]
    ),
    Sample("GatherNd", dict(params=f32(3, 4), indices=longs([[1], [0]])), grad=["params"]),
    Sample(
        "GatherNd",
        dict(params=f32(3, 4), indices=longs([1], [1])),
        grad=["params"],
        id="GatherNd_rows",
    ),
    Sample(
        "GatherNd",
        dict(params=f32(3, 4), indices=np.zeros((2, 0), np.int32)),
        grad=["params"],
        id="GatherNd_whole",
    ),
    # scatter
    Sample(
        "ScatterNd",
        dict(indices=ints([1], [3], [1]), updates=f32(3, 2), shape=ints(4, 2)),
        grad=["updates"],
        const=["shape"],
    ),
    Sample(
        "ScatterNd",
        dict(indices=longs([0, 1], [1, 0]), updates=f32(2), shape=longs(2, 2)),
        grad=["updates"],
    ),
    Sample(
        "ScatterNd", dict(indices=ints([0], [0]), updates=i32(2), shape=ints(2)), id="ScatterNd_int"
    ),
    Sample(
        "TensorScatterUpdate",
        dict(tensor=f32(4, 2), indices=ints([1], [3]), updates=f32(2, 2, salt=1)),
        grad=["tensor", "updates"],
    ),
    Sample(
        "TensorScatterAdd",
        dict(tensor=f32(4, 2), indices=ints([1], [1]), updates=f32(2, 2, salt=1)),
        grad=["tensor", "updates"],
    ),
    Sample(
        "TensorScatterSub",
        dict(tensor=f32(4, 2), indices=longs([1, 0], [1, 0]), updates=f32(2, salt=1)),
        grad=["tensor", "updates"],
    ),
    Sample(
        "ScatterNdNonAliasingAdd",
        dict(input=f32(4), indices=ints([1], [1]), updates=f32(2, salt=1)),
        grad=["input", "updates"],
    ),
    # partition and stitch
    Sample(
        "DynamicPartition",
        dict(data=f32(5, 2), partitions=ints(0, 2, 0, 1, 2)),
        dict(num_partitions=4),
        grad=["data"],
    ),
    Sample(
        "DynamicPartition",
        dict(data=f32(2, 2), partitions=ints([0, 1], [1, 0])),
        dict(num_partitions=2),
        grad=["data"],
    ),
    Sample(
        "DynamicPartition",
        dict(data=f32(3), partitions=ints(0, 0, 0)),
        dict(num_partitions=1),
        grad=["data"],
        id="DynamicPartition_one",
    ),
    Sample(
        "DynamicStitch",
        dict(
            indices=[ints(0, 2), ints(1)[0], ints([3, 4])], data=[f32(2, 2), f32(2), f32(1, 2, 2)]
        ),
        grad=["data"],
    ),
    Sample(
        "DynamicStitch",
        dict(indices=[ints(0, 1), ints(1, 2)], data=[i32(2), i32(2, salt=1)]),
        id="DynamicStitch_over",
    ),
    Sample(
        "ParallelDynamicStitch",
        dict(indices=[ints(0, 2), ints(1)], data=[f32(2, 2), f32(1, 2)]),
        grad=["data"],
    ),
    # one-hot and permutations
    Sample(
        "OneHot",
        dict(indices=longs(0, 2, -1, 5), depth=ints(3)[0], on_value=f32(), off_value=f32(salt=1)),
        const=["depth"],
    ),
    Sample(
        "OneHot",
        dict(indices=ints([0, 2], [1, 1]), depth=ints(3)[0], on_value=f32(), off_value=f32(salt=1)),
        dict(axis=0),
    ),
    Sample(
        "OneHot",
        dict(
            indices=ints([0, 2], [1, 1]),
            depth=ints(3)[0],
            on_value=ints(5)[0],
            off_value=ints(-1)[0],
        ),
        dict(axis=1),
    ),
    Sample(
        "OneHot",
        dict(
            indices=np.array(1, np.uint8),
            depth=ints(3)[0],
            on_value=np.array(True),
            off_value=np.array(False),
        ),
        id="OneHot_bool",
    ),
    Sample("InvertPermutation", dict(x=ints(2, 0, 1))),
    Sample("InvertPermutation", dict(x=longs(1, 0))),
    Sample("UnravelIndex", dict(indices=ints(2, 5, 7), dims=ints(3, 3))),
    Sample("UnravelIndex", dict(indices=longs(5)[0], dims=longs(3, 3))),
    # where
    Sample("Where", dict(input=boolean(2, 3))),
    Sample("Where", dict(input=f32(2, 2, 2))),
    Sample("Where", dict(input=np.zeros(3, np.bool_)), id="Where_none"),
    Sample(
        "Select", dict(condition=boolean(2, 3), t=f32(2, 3), e=f32(2, 3, salt=1)), grad=["t", "e"]
    ),
    Sample("Select", dict(condition=boolean(2), t=f32(2, 3), e=f32(2, 3, salt=1)), grad=["t", "e"]),
    Sample(
        "Select", dict(condition=np.array(True), t=f32(2, 3), e=f32(2, 3, salt=1)), grad=["t", "e"]
    ),
    Sample(
        "Select",
        dict(condition=np.array(False), t=f32(), e=f32(salt=1)),
        grad=["t", "e"],
        id="Select_scalars",
    ),
    Sample("Select", dict(condition=boolean(6), t=WORDS, e=WORDS[::-1].copy()), id="Select_string"),
    Sample(
        "Select",
        dict(condition=boolean(3), t=c64(3), e=c64(3, salt=1)),
        grad=["t", "e"],
        id="Select_complex",
    ),
    Sample(
        "SelectV2", dict(condition=boolean(2, 1), t=f32(3), e=f32(2, 3, salt=1)), grad=["t", "e"]
    ),
    Sample(
        "SelectV2", dict(condition=boolean(2, 3), t=f32(), e=f32(2, 3, salt=1)), grad=["t", "e"]
    ),
    # unique
    Sample("Unique", dict(x=ints(3, 1, 3, 2, 1))),
    Sample("Unique", dict(x=WORDS), dict(out_idx="int64")),
    Sample("Unique", dict(x=i64(200, low=0, high=50)), id="Unique_long"),
    Sample("Unique", dict(x=np.zeros(0, np.float32)), id="Unique_empty"),
    Sample("UniqueV2", dict(x=i32(4, 2, low=0, high=2), axis=longs(0))),
    Sample("UniqueV2", dict(x=ints(3, 1, 3), axis=np.zeros(0, np.int64)), id="UniqueV2_flat"),
    Sample("UniqueWithCounts", dict(x=ints(3, 1, 3, 2, 1)), dict(out_idx="int64")),
    Sample("UniqueWithCountsV2", dict(x=i32(2, 5, low=0, high=2), axis=ints(1))),
    Sample("ListDiff", dict(x=ints(1, 2, 3, 4, 5, 3), y=ints(2, 4))),
    Sample("ListDiff", dict(x=WORDS, y=strings(["a"])), dict(out_idx="int64")),
    # top
    Sample(
        "TopK",
        dict(input=f32(2, 5)),
        dict(k=3),
        grad=["input"],
    ),
    Sample("TopKV2", dict(input=f32(2, 5), k=ints(3)[0]), grad=["input"], const=["k"]),
    Sample("TopKV2", dict(input=i32(2, 8, low=0, high=4), k=ints(5)[0]), id="TopKV2_ties"),
    Sample(
        "TopKV2", dict(input=i32(3, 300, low=0, high=60), k=ints(7)[0]), id="TopKV2_partition_ties"
    ),
    Sample("TopKV2", dict(input=f32(3, 300), k=ints(7)[0]), id="TopKV2_partition"),
    Sample("TopKV2", dict(input=f32(4), k=ints(1)[0]), grad=["input"], id="TopKV2_one"),
    Sample(
        "TopKV2",
        dict(input=f32(2, 5), k=ints(3)[0]),
        dict(sorted=False),
        check=same_set,
        id="TopKV2_unsorted",
    ),
    Sample("NthElement", dict(input=f32(2, 5), n=ints(1)[0]), grad=["input"]),
    Sample("NthElement", dict(input=f32(2, 5), n=ints(1)[0]), dict(reverse=True), grad=["input"]),
    Sample("InTopK", dict(predictions=f32(4, 5), targets=ints(0, 3, 2, 4)), dict(k=2)),
    Sample("InTopKV2", dict(predictions=f32(4, 5), targets=longs(0, 3, 2, 4), k=longs(2)[0])),
    Sample(
        "InTopKV2",
        dict(
            predictions=floats([1, 1, 1], [np.inf, 0, 1], [3, 2, 1]),
            targets=ints(2, 0, 1),
            k=ints(1)[0],
        ),
        id="InTopKV2_ties",
    ),
    # searching
    Sample(
        "LowerBound",
        dict(
            sorted_inputs=floats([0, 3, 9, 9, 10], [1, 2, 3, 4, 5]),
            values=floats([2, 4, 9], [0, 2, 6]),
        ),
    ),
    Sample(
        "UpperBound",
        dict(
            sorted_inputs=ints([0, 3, 9, 9, 10], [1, 2, 3, 4, 5]), values=ints([2, 4, 9], [0, 2, 6])
        ),
        dict(out_type="int64"),
    ),
    Sample(
        "EditDistance",
        dict(
            hypothesis_indices=longs([0, 0, 0], [1, 0, 0]),
            hypothesis_values=strings(["a", "b"]),
            hypothesis_shape=longs(2, 1, 1),
            truth_indices=longs([0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]),
            truth_values=strings(["a", "b", "c", "a"]),
            truth_shape=longs(2, 2, 2),
        ),
    ),
    Sample(
        "EditDistance",
        dict(
            hypothesis_indices=longs([0, 0], [0, 1], [0, 2]),
            hypothesis_values=ints(1, 2, 3),
            hypothesis_shape=longs(1, 3),
            truth_indices=longs([0, 0], [0, 1]),
            truth_values=ints(1, 3),
            truth_shape=longs(1, 2),
        ),
        dict(normalize=False),
    ),
]
