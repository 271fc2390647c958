"""Calls of functions that make, arrange, join, slice, gather and scatter."""

from __future__ import annotations

import numpy as np

from tools.differential.cases import (
    EVERY,
    FLOATS,
    INTS,
    NUMBERS,
    Arguments,
    Source,
    Value,
    dtype,
    op,
    py,
)


def _list(items: list[Value]) -> Value:
    return {"k": "list", "v": items}


@op("shape", "size", "rank", "shape_n")
def shape_of(s: Source) -> Arguments:
    out: Arguments = [("input", s.value(s.of(EVERY), s.dims()))]
    return out if s.chance(0.6) else [*out, ("*out_type", dtype(s.one("int32", "int64")))]


@op("reshape", grad=True)
def reshape(s: Source) -> Arguments:
    shape = s.dims()
    flat = int(np.prod(shape))
    new = s.one([flat], [-1], [1, flat], [flat, 1, -1], list(reversed(shape)))
    return [
        ("tensor", s.value(s.of(EVERY), shape)),
        ("shape", s.ints(new, s.one("int32", "int64"))),
    ]


@op("expand_dims", grad=True)
def expand_dims(s: Source) -> Arguments:
    shape = s.dims(0, 3)
    return [
        ("input", s.value(s.of(EVERY), shape)),
        ("axis", s.ints(s.int(-len(shape) - 1, len(shape)))),
    ]


@op("squeeze", grad=True)
def squeeze(s: Source) -> Arguments:
    shape = [s.one(1, 1, 2) for _ in range(s.int(0, 4))]
    out: Arguments = [("input", s.value(s.of(EVERY), shape))]
    ones = [i for i, n in enumerate(shape) if n == 1]
    if ones and s.chance(0.6):
        out.append(("axis", py(s.one([s.of(ones)], s.of(ones), [s.of(ones) - len(shape)]))))
    return out


@op("transpose", grad=True)
def transpose(s: Source) -> Arguments:
    shape = s.dims()
    out: Arguments = [("a", s.value(s.of(EVERY), shape))]
    if s.chance(0.7):
        out.append(("perm", s.ints(s.rng.sample(range(len(shape)), len(shape)))))
    return out


@op("matrix_transpose", "linalg.adjoint", grad=True)
def matrix_transpose(s: Source) -> Arguments:
    return [("", s.value(s.of(NUMBERS), s.dims(2)))]


@op("fill")
def fill(s: Source) -> Arguments:
    return [("dims", s.ints(s.dims(1, 3))), ("value", s.value(s.of(EVERY), []))]


@op("zeros", "ones")
def zeros(s: Source) -> Arguments:
    return [("shape", s.ints(s.dims(1, 3))), ("dtype", dtype(s.of(EVERY)))]


@op("constant")
def constant(s: Source) -> Arguments:
    name = s.of(EVERY)
    value = s.one(
        py(s.one(1, 1.5, True, "a", [1, 2], [1.5, 2], [[1], [2]], [], 2**40, -1)),
        s.carried(s.array(name, s.dims()), name, ["np", "nested"]),
    )
    out: Arguments = [("value", value)]
    if s.chance(0.6):
        out.append(("dtype", dtype(s.of(EVERY))))
    if s.chance(0.3):
        out.append(("*shape", py(s.one([2], [2, 2], [1], []))))
    return out


@op("convert_to_tensor")
def convert(s: Source) -> Arguments:
    value = s.one(
        py(s.one(1, 1.5, True, "a", [1, 2.5], [True, False], [[1], [2, 3]], 300, -1)),
        s.value(s.of(EVERY), s.dims()),
    )
    return (
        [("value", value)] if s.chance(0.4) else [("value", value), ("dtype", dtype(s.of(EVERY)))]
    )


@op("eye")
def eye(s: Source) -> Arguments:
    out: Arguments = [("num_rows", py(s.int(0, 4)))]
    if s.chance(0.5):
        out.append(("num_columns", py(s.int(0, 4))))
    return out + ([("*dtype", dtype(s.of(NUMBERS)))] if s.chance(0.5) else [])


@op("one_hot")
def one_hot(s: Source) -> Arguments:
    shape = s.dims(0, 3)
    out: Arguments = [
        ("indices", s.indices(shape, 4, s.one("int32", "int64", "uint8"))),
        ("depth", s.ints(s.int(0, 5))),
    ]
    if s.chance(0.4):
        out += [("on_value", py(5.0)), ("off_value", py(-1.0)), ("axis", py(s.int(-1, len(shape))))]
    if s.chance(0.4):
        out.append(("*dtype", dtype(s.of(EVERY))))
    return out


@op("tile", grad=True)
def tile(s: Source) -> Arguments:
    shape = s.dims()
    return [
        ("input", s.value(s.of(EVERY), shape)),
        ("multiples", s.ints([s.int(0, 3) for _ in shape], s.one("int32", "int64"))),
    ]


@op("pad", "mirror_pad", grad=True)
def pad(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    widths = [[s.int(0, 2), s.int(0, 2)] for _ in shape]
    out: Arguments = [
        ("tensor", s.value(s.of(EVERY), shape)),
        ("paddings", s.ints(widths, s.one("int32", "int64"))),
    ]
    mode = s.one("CONSTANT", "REFLECT", "SYMMETRIC", "constant", None)
    if mode is not None:
        out.append(("mode", py(mode)))
    return out


@op("broadcast_to", grad=True)
def broadcast_to(s: Source) -> Arguments:
    shape = s.dims()
    return [
        ("input", s.value(s.of(EVERY), s.broadcastable(shape))),
        ("shape", s.ints(shape, s.one("int32", "int64"))),
    ]


@op("broadcast_dynamic_shape", "broadcast_static_shape")
def broadcast_shape(s: Source) -> Arguments:
    shape = s.dims()
    return [("shape_x", s.ints(shape)), ("shape_y", s.ints(s.broadcastable(shape)))]


@op("concat", grad=True)
def concat(s: Source) -> Arguments:
    name, shape = s.of(EVERY), s.dims(1)
    axis = s.axis(len(shape))
    parts = []
    for _ in range(s.int(1, 3)):
        part = list(shape)
        part[axis] = s.size()
        parts.append(s.value(name, part))
    return [("values", _list(parts)), ("axis", s.ints(axis))]


@op("stack", "parallel_stack", grad=True)
def stack(s: Source) -> Arguments:
    name, shape = s.of(EVERY), s.dims(0, 3)
    out: Arguments = [("values", _list([s.value(name, shape) for _ in range(s.int(1, 3))]))]
    return [*out, ("axis", py(s.int(-len(shape) - 1, len(shape))))] if s.chance(0.6) else out


@op("unstack", grad=True)
def unstack(s: Source) -> Arguments:
    shape = s.dims(1)
    axis = s.axis(len(shape))
    return [
        ("value", s.value(s.of(EVERY), shape)),
        ("num", py(s.one(None, shape[axis]))),
        ("axis", py(axis)),
    ]


@op("split", grad=True)
def split(s: Source) -> Arguments:
    shape = s.dims(1)
    axis = s.axis(len(shape))
    n = s.int(1, 3)
    sizes = [s.int(0, 3) for _ in range(n)]
    shape[axis] = sum(sizes)
    how = s.one(s.ints(sizes), py([*sizes[:-1], -1]), py(n))
    if how == py(n):
        shape[axis] = n * s.int(0, 2)
    return [
        ("value", s.value(s.of(EVERY), shape)),
        ("num_or_size_splits", how),
        ("axis", s.ints(axis)),
    ]


@op("gather", grad=True)
def gather(s: Source) -> Arguments:
    shape = s.dims(1)
    axis = s.axis(len(shape)) if s.chance(0.5) else 0
    out: Arguments = [
        ("params", s.value(s.of(EVERY), shape)),
        ("indices", s.indices(s.dims(0, 2), shape[axis])),
    ]
    if axis:
        out.append(("*axis", s.ints(axis)))
    elif s.chance(0.2):
        out.append(("*batch_dims", py(s.one(0, 1, -1))))
    return out


@op("gather_nd", "batch_gather", grad=True)
def gather_nd(s: Source) -> Arguments:
    shape = [max(n, 1) for n in s.dims(1)]
    depth = s.int(1, len(shape))
    return [
        ("params", s.value(s.of(EVERY), shape)),
        ("indices", s.indices([*s.dims(0, 2), depth], min(shape[:depth]))),
    ]


@op("scatter_nd", grad=True)
def scatter_nd(s: Source) -> Arguments:
    shape = [max(n, 1) for n in s.dims(1, 3)]
    depth, outer = s.int(1, len(shape)), s.dims(1, 1)
    kind = s.one("int32", "int64")
    return [
        ("indices", s.indices([*outer, depth], min(shape[:depth]), kind)),
        ("updates", s.value(s.of(NUMBERS), [*outer, *shape[depth:]])),
        ("shape", s.ints(shape, kind)),
    ]


@op("tensor_scatter_update", "tensor_scatter_add", "tensor_scatter_sub", grad=True)
def tensor_scatter(s: Source) -> Arguments:
    shape = [max(n, 1) for n in s.dims(1, 3)]
    depth, outer, name = s.int(1, len(shape)), s.dims(1, 1), s.of(EVERY)
    return [
        ("tensor", s.value(name, shape)),
        ("indices", s.indices([*outer, depth], min(shape[:depth]))),
        ("updates", s.value(name, [*outer, *shape[depth:]])),
    ]


@op("slice", grad=True)
def slice_(s: Source) -> Arguments:
    shape = s.dims(1)
    begin = [s.int(0, n) for n in shape]
    size = [s.one(-1, s.int(0, n - b)) for n, b in zip(shape, begin)]
    kind = s.one("int32", "int64")
    return [
        ("input_", s.value(s.of(EVERY), shape)),
        ("begin", s.ints(begin, kind)),
        ("size", s.ints(size, kind)),
    ]


@op("strided_slice", grad=True)
def strided_slice(s: Source) -> Arguments:
    shape = s.dims(1)
    kind = s.one("int32", "int64")
    out: Arguments = [
        ("input_", s.value(s.of(EVERY), shape)),
        ("begin", s.ints([s.int(-n, n) for n in shape], kind)),
        ("end", s.ints([s.int(-n, n + 1) for n in shape], kind)),
    ]
    if s.chance(0.6):
        out.append(("strides", s.ints([s.one(1, 1, 2, -1) for _ in shape], kind)))
    for mask in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"):
        if s.chance(0.15):
            out.append(("*" + mask, py(s.one(1, 2, 3))))
    return out


@op("method:__getitem__", positional=2, grad=True)
def getitem(s: Source) -> Arguments:
    shape = s.dims(1)
    items: list[Value] = []
    for n in shape[: s.int(1, len(shape))]:
        bounds = [
            s.one(None, py(s.int(-n, n))),
            s.one(None, py(s.int(-n, n))),
            s.one(None, None, py(1), py(2), py(-1)),
        ]
        items.append(
            s.one(
                py(s.int(-n, max(n - 1, 0))),
                {"k": "slice", "v": bounds},
                {"k": "slice", "v": bounds},
            )
        )
    if s.chance(0.2):
        items.insert(s.int(0, len(items)), s.one({"k": "ellipsis"}, py(None)))
    name = s.of(EVERY)
    key = items[0] if len(items) == 1 and s.chance(0.5) else {"k": "tuple", "v": items}
    return [("", s.carried(s.array(name, shape), name, ["ph", "const"])), ("", key)]


@op("where")
def where(s: Source) -> Arguments:
    shape, name = s.dims(), s.of(EVERY)
    if s.chance(0.3):
        return [("condition", s.value(s.of(EVERY), shape, 0, 1))]
    condition = shape if s.chance(0.7) else shape[:1]
    return [
        ("condition", s.value("bool", condition)),
        ("x", s.value(name, shape)),
        ("y", s.value(name, shape)),
    ]


@op("where_v2", grad=True)
def where_v2(s: Source) -> Arguments:
    shape, name = s.dims(), s.of(EVERY)
    return [
        ("condition", s.value("bool", s.broadcastable(shape))),
        ("x", s.value(name, shape)),
        ("y", s.value(name, s.broadcastable(shape))),
    ]


@op("boolean_mask", grad=True)
def boolean_mask(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    k = s.int(1, len(shape))
    return [("tensor", s.value(s.of(EVERY), shape)), ("mask", s.value("bool", shape[:k]))]


@op("unique", "unique_with_counts")
def unique(s: Source) -> Arguments:
    out: Arguments = [("x", s.value(s.of(EVERY), s.dims(1, 1), 0, 3))]
    return out if s.chance(0.5) else [*out, ("out_idx", dtype(s.one("int32", "int64")))]


@op("setdiff1d")
def setdiff1d(s: Source) -> Arguments:
    name = s.of(EVERY)
    return [("x", s.value(name, s.dims(1, 1), 0, 5)), ("y", s.value(name, s.dims(1, 1), 0, 3))]


@op("reverse", grad=True)
def reverse(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("tensor", s.value(s.of(EVERY), shape)),
        ("axis", s.ints(s.rng.sample(range(len(shape)), s.int(0, len(shape))))),
    ]


@op("roll", grad=True)
def roll(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("input", s.value(s.of(EVERY), shape)),
        ("shift", s.ints(s.int(-4, 4))),
        ("axis", s.ints(s.axis(len(shape)))),
    ]


@op("reverse_sequence", grad=True)
def reverse_sequence(s: Source) -> Arguments:
    shape = s.dims(2)
    lengths = s.np.randint(0, shape[1] + 1, shape[0])
    return [
        ("input", s.value(s.of(EVERY), shape)),
        ("seq_lengths", s.carried(lengths.astype("int64"), "int64")),
        ("*seq_axis", py(1)),
        ("*batch_axis", py(0)),
    ]


@op("sequence_mask")
def sequence_mask(s: Source) -> Arguments:
    out: Arguments = [("lengths", s.indices(s.dims(0, 2), 5))]
    if s.chance(0.6):
        out.append(("maxlen", s.one(py(4), s.ints(3))))
    return out + ([("*dtype", dtype(s.of(EVERY)))] if s.chance(0.4) else [])


@op("searchsorted")
def searchsorted(s: Source) -> Arguments:
    name, rows = s.of(["float32", "float64", "int32", "int64", "float16", "int8"]), s.int(1, 3)
    ordered = np.sort(s.array(name, [rows, 4]), -1)
    return [
        ("sorted_sequence", s.carried(ordered, name)),
        ("values", s.value(name, [rows, 3])),
        ("side", py(s.one("left", "right"))),
    ]


@op("meshgrid")
def meshgrid(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    return [
        ("", s.value(name, s.dims(1, 1))),
        ("", s.value(name, s.dims(1, 1))),
        ("*indexing", py(s.one("xy", "ij"))),
    ]


@op("space_to_depth", "depth_to_space", grad=True)
def space_to_depth(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(FLOATS + INTS), [s.int(1, 2), 2 * s.int(1, 2), 2 * s.int(1, 2), 4])),
        ("block_size", py(2)),
    ]


@op("space_to_batch_nd", grad=True)
def space_to_batch(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(FLOATS), [2, 4, 4, 1])),
        ("block_shape", s.ints([2, 2])),
        ("paddings", s.ints([[0, s.one(0, 2)], [0, 0]])),
    ]


@op("batch_to_space_nd", grad=True)
def batch_to_space(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(FLOATS), [4, 2, 3, 1])),
        ("block_shape", s.ints([2, 2])),
        ("crops", s.ints([[0, s.one(0, 1)], [0, 1]])),
    ]


@op("diag", "matrix_diag", "diag_part", "matrix_diag_part", "trace", grad=True)
def diagonal(s: Source) -> Arguments:
    n = s.int(1, 3)
    return [("", s.value(s.of(NUMBERS), s.one([n], [n, n], [2, n, n], [n, 2])))]


@op("matrix_set_diag", grad=True)
def matrix_set_diag(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS + ["bool"]), s.dims(2, 3)
    return [
        ("input", s.value(name, shape)),
        ("diagonal", s.value(name, [*shape[:-2], min(shape[-2:])])),
    ]


@op("matrix_band_part", grad=True)
def band_part(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(NUMBERS), s.dims(2, 3))),
        ("num_lower", s.ints(s.int(-1, 2), "int64")),
        ("num_upper", s.ints(s.int(-1, 2), "int64")),
    ]


@op("dynamic_partition", grad=True)
def dynamic_partition(s: Source) -> Arguments:
    shape = s.dims(1, 2)
    return [
        ("data", s.value(s.of(EVERY), shape)),
        ("partitions", s.indices(shape[:1], 2, "int32")),
        ("num_partitions", py(2)),
    ]


@op("dynamic_stitch", grad=True)
def dynamic_stitch(s: Source) -> Arguments:
    name = s.of(EVERY)
    a, b = s.int(0, 3), s.int(1, 3)
    order = s.np.permutation(a + b).astype("int32")
    return [
        ("indices", _list([s.carried(order[:a], "int32"), s.carried(order[a:], "int32")])),
        ("data", _list([s.value(name, [a, 2]), s.value(name, [b, 2])])),
    ]


@op("ensure_shape")
def ensure_shape(s: Source) -> Arguments:
    shape = s.dims()
    return [("x", s.value(s.of(EVERY), shape)), ("shape", py([s.one(None, n) for n in shape]))]


@op("sort", "argsort")
def sort(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("values", s.value(s.of(FLOATS + INTS), shape)),
        ("axis", py(s.axis(len(shape)))),
        ("direction", py(s.one("ASCENDING", "DESCENDING"))),
    ]


@op("nn.top_k", grad=True)
def top_k(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("input", s.value(s.of(FLOATS + INTS), shape)),
        ("k", s.ints(s.int(0, shape[-1]))),
        ("sorted", py(True)),
    ]


@op("math.in_top_k", "nn.in_top_k")
def in_top_k(s: Source) -> Arguments:
    n, c = s.int(1, 3), s.int(1, 4)
    return [
        ("predictions", s.value("float32", [n, c])),
        ("targets", s.indices([n], c)),
        ("k", s.ints(s.int(0, 3))),
    ]


@op("repeat", grad=True)
def repeat(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    axis = s.axis(len(shape))
    return [
        ("input", s.value(s.of(EVERY), shape)),
        ("repeats", s.one(py(2), s.indices([shape[axis]], 3, "int32"))),
        ("axis", py(axis)),
    ]


@op("unravel_index")
def unravel_index(s: Source) -> Arguments:
    kind = s.one("int32", "int64")
    return [
        ("indices", s.indices(s.dims(0, 1), 12, kind)),
        ("dims", s.carried(np.array([3, 4], kind), kind)),
    ]


@op("extract_image_patches", "image.extract_patches", grad=True)
def patches(s: Source) -> Arguments:
    return [
        ("images", s.value(s.of(FLOATS + INTS), [1, s.int(2, 5), s.int(2, 5), 2])),
        ("sizes", py([1, 2, 2, 1])),
        ("strides", py([1, s.int(1, 2), 1, 1])),
        ("rates", py([1, 1, s.int(1, 2), 1])),
        ("padding", py(s.one("SAME", "VALID"))),
    ]


@op("edit_distance")
def edit_distance(s: Source) -> Arguments:
    def row() -> Value:
        n = s.int(1, 3)
        idx = np.stack([np.zeros(n), np.arange(n)], 1).astype("int64")
        return {
            "k": "sparse",
            "indices": s.carried(idx, "int64", ["const"]),
            "values": s.value("int32", [n], 0, 2),
            "shape": py([1, 4]),
        }

    return [("hypothesis", row()), ("truth", row()), ("normalize", py(s.chance(0.5)))]
