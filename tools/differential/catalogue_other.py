"""Calls on strings, sparse tensors, random numbers, variables, checks and functional loops."""

from __future__ import annotations

import numpy as np

from tools.differential.cases import (
    EVERY,
    FLOATS,
    NUMBERS,
    REALS,
    Arguments,
    Source,
    Value,
    dtype,
    op,
    py,
)


@op("strings.length", "strings.strip", "strings.lower", "strings.upper", "encode_base64")
def text(s: Source) -> Arguments:
    return [("", s.value("string", s.dims(0, 2)))]


@op("strings.join", "string_join")
def string_join(s: Source) -> Arguments:
    shape = s.dims(0, 2)
    return [
        (
            "inputs",
            {"k": "list", "v": [s.value("string", s.one(shape, [])) for _ in range(s.int(1, 3))]},
        ),
        ("separator", py(s.one("", "-"))),
    ]


@op("string_split", "strings.split")
def string_split(s: Source) -> Arguments:
    return (
        [("", s.value("string", s.dims(1, 1)))]
        if s.chance(0.5)
        else [("", s.value("string", [2])), ("*sep" if s.chance(0.5) else "*delimiter", py(","))]
    )


@op("substr", "strings.substr")
def substr(s: Source) -> Arguments:
    shape = s.dims(0, 2)
    kind = s.one("int32", "int64")
    return [
        ("input", s.carried(np.full(shape, b"hello world", object), "string")),
        ("pos", s.indices(s.one([], shape), 5, kind)),
        ("len", s.indices(s.one([], shape), 5, kind)),
    ]


@op("string_to_number", "strings.to_number")
def string_to_number(s: Source) -> Arguments:
    words = np.array(
        [
            s.one(b"1", b"-2", b"3.5", b" 4 ", b"1e3", b"x", b"", b"inf", b"0x10")
            for _ in range(s.int(0, 3))
        ],
        object,
    )
    return [
        ("string_tensor" if s.chance(0.5) else "", s.carried(words, "string")),
        ("out_type", dtype(s.one("float32", "float64", "int32", "int64"))),
    ]


@op("as_string")
def as_string(s: Source) -> Arguments:
    out: Arguments = [("input", s.value(s.of(EVERY), s.dims(0, 2)))]
    if s.chance(0.5):
        out += [
            ("*precision", py(s.one(-1, 2))),
            ("*width", py(s.one(-1, 6))),
            ("*fill", py(s.one("", "0", " "))),
        ]
    return out


@op("regex_replace")
def regex_replace(s: Source) -> Arguments:
    return [
        ("input", s.value("string", s.dims(0, 2))),
        ("pattern", py(s.one("[a-h]", "l+", "(h)(e)"))),
        ("rewrite", py(s.one("X", ""))),
        ("replace_global", py(s.chance(0.5))),
    ]


@op("strings.regex_full_match")
def regex_full_match(s: Source) -> Arguments:
    return [("input", s.value("string", s.dims(0, 2))), ("pattern", py(s.one("[a-z]+", ".*", "a")))]


@op("string_to_hash_bucket_fast", "string_to_hash_bucket", "strings.to_hash_bucket_fast")
def hash_bucket(s: Source) -> Arguments:
    return [
        ("input" if s.chance(0) else "", s.value("string", s.dims(0, 2))),
        ("num_buckets", py(s.int(1, 9))),
    ]


@op("decode_raw")
def decode_raw(s: Source) -> Arguments:
    rows = np.array(
        [bytes(s.np.randint(0, 256, 8).astype("uint8")) for _ in range(s.int(1, 2))], object
    )
    return [
        ("bytes" if s.chance(0) else "", s.carried(rows, "string")),
        ("out_type", dtype(s.of(EVERY))),
    ]


@op("decode_base64")
def decode_base64(s: Source) -> Arguments:
    return [("input", s.carried(np.array([b"aGVsbG8", b"YQ"], object), "string"))]


@op("strings.unicode_script", "unicode_script")
def unicode_script(s: Source) -> Arguments:
    return [("input", s.value("int32", s.dims(0, 1), 60, 2000))]


@op("strings.bytes_split")
def bytes_split(s: Source) -> Arguments:
    return [("input", s.value("string", s.dims(1, 1)))]


# sparse -------------------------------------------------------------------------------------------


def sparse(s: Source, name: str, shape: list[int]) -> Value:
    """A sparse tensor with indices in order."""
    cells = int(np.prod(shape))
    n = s.int(0, min(cells, 4))
    flat = np.sort(s.np.choice(cells, n, replace=False)) if n else np.zeros(0, "int64")
    idx = (
        np.stack(np.unravel_index(flat, shape), -1).reshape(n, len(shape)).astype("int64")
        if cells
        else np.zeros((0, len(shape)), "int64")
    )
    return {
        "k": "sparse",
        "indices": s.carried(idx, "int64", ["const", "ph", "np"]),
        "values": s.carried(s.array(name, [n]), name, ["const", "ph"]),
        "shape": s.carried(np.array(shape, "int64"), "int64", ["const", "np", "ph"]),
    }


@op("sparse.to_dense", grad=True)
def to_dense(s: Source) -> Arguments:
    return [("sp_input", sparse(s, s.of(EVERY), [max(n, 1) for n in s.dims(1, 3)]))]


@op("sparse.reorder")
def reorder(s: Source) -> Arguments:
    return [("sp_input", sparse(s, s.of(EVERY), [max(n, 1) for n in s.dims(1, 3)]))]


@op("sparse.transpose")
def sparse_transpose(s: Source) -> Arguments:
    return [("sp_input", sparse(s, s.of(NUMBERS), [2, 3])), ("perm", s.one(py(None), py([1, 0])))]


@op("sparse.reduce_sum", "sparse.reduce_max", "sparse.reduce_sum_sparse")
def sparse_reduce(s: Source) -> Arguments:
    return [
        ("sp_input", sparse(s, s.of(REALS), [2, 3])),
        ("axis", py(s.one(None, 0, 1, -1, [0], [0, 1], []))),
        *([("keepdims", py(True))] if s.chance(0.2) else []),
    ]


@op("sparse.add", grad=True)
def sparse_add(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    return [
        ("a", sparse(s, name, [2, 3])),
        ("b", s.one(sparse(s, name, [2, 3]), s.value(name, [2, 3]))),
    ]


@op("sparse.matmul", "sparse_tensor_dense_matmul", grad=True)
def sparse_matmul(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    return [("sp_a", sparse(s, name, [2, 3])), ("b", s.value(name, [3, 2]))]


@op("sparse.concat")
def sparse_concat(s: Source) -> Arguments:
    name = s.of(EVERY)
    return [
        ("axis", py(s.one(0, 1, -1))),
        ("sp_inputs", {"k": "list", "v": [sparse(s, name, [2, 3]) for _ in range(s.int(1, 3))]}),
    ]


@op("sparse.slice")
def sparse_slice(s: Source) -> Arguments:
    return [
        ("sp_input", sparse(s, s.of(EVERY), [3, 4])),
        ("start", py([s.int(0, 2), s.int(0, 2)])),
        ("size", py([s.int(0, 3), s.int(1, 3)])),
    ]


@op("sparse.reshape")
def sparse_reshape(s: Source) -> Arguments:
    return [
        ("sp_input", sparse(s, s.of(EVERY), [2, 6])),
        ("shape", s.one(py([3, 4]), py([-1]), py([4, -1]))),
    ]


@op("sparse.fill_empty_rows")
def fill_empty_rows(s: Source) -> Arguments:
    name = s.of(EVERY)
    return [("sp_input", sparse(s, name, [3, 2])), ("default_value", s.value(name, []))]


@op("sparse.split")
def sparse_split(s: Source) -> Arguments:
    return [
        ("*sp_input", sparse(s, s.of(NUMBERS), [4, 3])),
        ("*num_split", py(2)),
        ("*axis", py(s.one(0, 1))),
    ]


@op("sparse.softmax")
def sparse_softmax(s: Source) -> Arguments:
    return [("sp_input", sparse(s, s.of(FLOATS), s.one([2, 3], [2, 2, 2])))]


@op("sparse_to_dense")
def sparse_to_dense(s: Source) -> Arguments:
    name, n = s.of(EVERY), s.int(0, 3)
    order = np.sort(s.np.choice(5, n, replace=False)).astype("int32")
    return [
        ("sparse_indices", s.carried(order, "int32")),
        ("output_shape", s.ints([5])),
        ("sparse_values", s.one(s.value(name, [n]), s.value(name, []))),
        ("default_value", s.value(name, [])),
    ]


@op("sparse.from_dense")
def from_dense(s: Source) -> Arguments:
    return [("tensor", s.value(s.of(NUMBERS), s.dims(1, 3), 0, 1))]


@op("sparse.maximum", "sparse.minimum")
def sparse_maximum(s: Source) -> Arguments:
    name = s.of(REALS)
    return [("sp_a", sparse(s, name, [2, 3])), ("sp_b", sparse(s, name, [2, 3]))]


@op("nn.embedding_lookup_sparse")
def lookup_sparse(s: Source) -> Arguments:
    n = s.int(1, 3)
    idx = np.stack([np.arange(n), np.zeros(n)], 1).astype("int64")
    ids: Value = {
        "k": "sparse",
        "indices": s.carried(idx, "int64", ["const"]),
        "values": s.indices([n], 4, "int64"),
        "shape": py([n, 1]),
    }
    return [
        ("params", s.value("float32", [4, 2])),
        ("sp_ids", ids),
        ("sp_weights", py(None)),
        ("*combiner", py(s.one("mean", "sum", "sqrtn"))),
    ]


# random -------------------------------------------------------------------------------------------


@op("random.uniform", "random_uniform", seeded=True)
def uniform(s: Source) -> Arguments:
    name = s.of([*FLOATS, "int32", "int64"])
    low, high = (0, 10) if name.startswith("int") else s.one((0.0, 1.0), (-2.0, 3.0))
    return [
        ("shape", s.ints(s.dims(1, 3))),
        ("minval", py(low)),
        ("maxval", py(high)),
        ("dtype", dtype(name)),
        ("seed", py(s.one(None, 5))),
    ]


@op("random.normal", "random.truncated_normal", seeded=True)
def normal(s: Source) -> Arguments:
    return [
        ("shape", s.ints(s.dims(1, 3))),
        ("mean", py(1.0)),
        ("stddev", py(2.0)),
        ("dtype", dtype(s.of(FLOATS))),
        ("seed", py(s.one(None, 5))),
    ]


@op("random.shuffle", seeded=True)
def shuffle(s: Source) -> Arguments:
    return [("value", s.value(s.of(EVERY), s.dims(1, 2))), ("seed", py(s.one(None, 5)))]


@op("random.gamma", "random.poisson", seeded=True, compare=False)
def gamma(s: Source) -> Arguments:
    return [
        ("", s.ints([s.int(0, 3)])),
        ("", s.value(s.of(FLOATS), s.dims(0, 2), 0.5, 3)),
        ("*seed", py(5)),
    ]


@op("random.multinomial", "multinomial", seeded=True, compare=False)
def multinomial(s: Source) -> Arguments:
    return [
        ("logits", s.value(s.of(FLOATS), [s.int(1, 2), 3])),
        ("num_samples", s.ints(s.int(0, 4))),
        ("seed", py(5)),
    ]


@op("random.stateless_uniform", "random.stateless_normal", "random.stateless_truncated_normal")
def stateless(s: Source) -> Arguments:
    return [
        ("shape", s.ints(s.dims(1, 3))),
        ("seed", s.ints([3, 4], s.one("int32", "int64"))),
        ("*dtype", dtype(s.of(FLOATS))),
    ]


@op("random_crop", seeded=True)
def random_crop(s: Source) -> Arguments:
    return [
        ("value", s.value(s.of(REALS), [4, 5, 2])),
        ("size", s.ints([2, 3, 2])),
        ("seed", py(5)),
    ]


@op("random.log_uniform_candidate_sampler", "random.uniform_candidate_sampler", seeded=True)
def sampler(s: Source) -> Arguments:
    return [
        ("true_classes", s.indices([2, 1], 9, "int64")),
        ("num_true", py(1)),
        ("num_sampled", py(3)),
        ("unique", py(True)),
        ("range_max", py(10)),
        ("seed", py(5)),
    ]


# state --------------------------------------------------------------------------------------------


@op("assign", "assign_add", "assign_sub")
def assign(s: Source) -> Arguments:
    name, shape = s.of(EVERY), s.dims()
    return [("ref", s.variable(name, shape)), ("value", s.value(name, shape))]


@op("method:assign", "method:assign_add", "method:assign_sub", positional=2)
def assign_method(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), s.dims()
    return [("", s.variable(name, shape)), ("", s.value(name, shape))]


@op(
    "scatter_add",
    "scatter_update",
    "scatter_sub",
    "scatter_mul",
    "scatter_div",
    "scatter_max",
    "scatter_min",
)
def scatter(s: Source) -> Arguments:
    name, shape, outer = s.of(NUMBERS), [s.int(1, 4), *s.dims(0, 2)], s.dims(0, 2)
    return [
        ("ref", s.variable(name, shape, 1, 4)),
        ("indices", s.indices(outer, shape[0])),
        ("updates", s.one(s.value(name, [*outer, *shape[1:]], 1, 3), s.value(name, [], 1, 3))),
    ]


@op("scatter_nd_add", "scatter_nd_update", "scatter_nd_sub")
def scatter_nd(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), [s.int(1, 4), s.int(1, 3)]
    depth, n = s.int(1, 2), s.int(0, 3)
    return [
        ("ref", s.variable(name, shape)),
        ("indices", s.indices([n, depth], min(shape[:depth]))),
        ("updates", s.value(name, [n, *shape[depth:]])),
    ]


@op("count_up_to", "method:count_up_to", positional=2)
def count_up_to(s: Source) -> Arguments:
    return [("ref", s.variable(s.one("int32", "int64"), [], 0, 2)), ("limit", py(s.int(1, 4)))]


@op(
    "is_variable_initialized",
    "method:initialized_value",
    "method:read_value",
    "method:value",
    positional=1,
)
def variable_reads(s: Source) -> Arguments:
    return [("", s.variable(s.of(EVERY), s.dims()))]


# checks, functional -------------------------------------------------------------------------------


@op("debugging.check_numerics", "check_numerics")
def check_numerics(s: Source) -> Arguments:
    return [("tensor", s.value(s.of(FLOATS), s.dims())), ("message", py("bad"))]


@op("assert_equal", "assert_less", "assert_greater_equal", "assert_none_equal")
def assert_pair(s: Source) -> Arguments:
    name, shape = s.of(REALS), s.dims()
    return [("x", s.value(name, shape, 0, 2)), ("y", s.value(name, s.broadcastable(shape), 0, 2))]


@op("assert_positive", "assert_non_negative", "assert_negative", "assert_non_positive")
def assert_sign(s: Source) -> Arguments:
    return [("x", s.value(s.of(REALS), s.dims(), 0, 2))]


@op("assert_rank", "assert_rank_at_least")
def assert_rank(s: Source) -> Arguments:
    shape = s.dims()
    return [("x", s.value(s.of(EVERY), shape)), ("rank", s.ints(len(shape) + s.one(0, 0, -1, 1)))]


@op("assert_type")
def assert_type(s: Source) -> Arguments:
    name = s.of(EVERY)
    return [("tensor", s.value(name, [])), ("tf_type", dtype(name))]


@op("is_non_decreasing", "is_strictly_increasing")
def monotone(s: Source) -> Arguments:
    return [("x", s.value(s.of(REALS), s.dims()))]


@op("stop_gradient", "identity", "debugging.is_numeric_tensor", "is_numeric_tensor")
def passing(s: Source) -> Arguments:
    return [("", s.value(s.of(EVERY), s.dims()))]


@op("tuple", "group", "identity_n")
def together(s: Source) -> Arguments:
    return [("", {"k": "list", "v": [s.value(s.of(EVERY), s.dims()) for _ in range(s.int(1, 3))]})]


@op("train.exponential_decay", "train.polynomial_decay", "train.inverse_time_decay")
def decay(s: Source) -> Arguments:
    return [
        ("learning_rate", py(0.1)),
        ("global_step", s.indices([], 9)),
        ("decay_steps", py(4)),
        ("", py(0.5)),
    ]


@op("placeholder_with_default")
def with_default(s: Source) -> Arguments:
    shape = s.dims()
    return [("input", s.value(s.of(EVERY), shape)), ("shape", py([s.one(None, n) for n in shape]))]


@op("nn.zero_fraction")
def zero_fraction(s: Source) -> Arguments:
    return [("value", s.value(s.of(NUMBERS), s.dims(), 0, 1))]


@op("metrics.mean", "metrics.accuracy")
def metric(s: Source) -> Arguments:
    n = s.size()
    return [("", s.value("float32", [n])), ("", s.value("float32", [n]))]
