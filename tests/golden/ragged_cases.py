"""Ragged tensors. Run on TF 1.15 and on Headrace."""


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.to_list() if hasattr(value, "to_list") else value


def _run(tf, fetches, feeds=None):
    with tf.Session() as sess:
        return _plain(sess.run(fetches, feeds))


def _rows(tf):
    return tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0], [], [5.0, 6.0, 7.0]]])


def made_from_parts(tf):
    R, v = tf.RaggedTensor, tf.constant([1, 2, 3, 4])
    made = [
        R.from_row_splits(v, [0, 2, 2, 4]),
        R.from_row_lengths(v, [1, 3, 0]),
        R.from_row_starts(v, [0, 1, 1]),
        R.from_row_limits(v, [1, 1, 4]),
        R.from_value_rowids(v, [0, 0, 2, 2]),
        R.from_value_rowids(v, [0, 0, 2, 2], nrows=5),
        R.from_nested_row_splits(v, [[0, 1, 3], [0, 2, 2, 4]]),
        R.from_nested_row_lengths(v, [[1, 2], [2, 0, 2]]),
        R.from_nested_value_rowids(v, [[0, 1, 1], [0, 0, 2, 2]]),
    ]
    return [_run(tf, made), [m.ragged_rank for m in made], [m.shape.ndims for m in made]]


def parts(tf):
    x = _rows(tf)
    found = [
        x.flat_values, x.nested_row_splits, x.row_splits, x.nrows(), x.row_starts(),
        x.row_limits(), x.row_lengths(), x.row_lengths(axis=2), x.value_rowids(),
        x.nested_row_lengths(), x.nested_value_rowids(), x.bounding_shape(),
        x.bounding_shape(axis=1), x.with_flat_values(x.flat_values * 2), tf.size(x), tf.rank(x),
    ]  # fmt: skip
    return [_run(tf, found), x.shape.as_list(), x.dtype.name, x.ragged_rank]


def dense_and_sparse(tf):
    R, x = tf.RaggedTensor, _rows(tf)
    flat = tf.constant([1.0, 2.0, 3.0])
    dense = R.from_row_lengths(flat, [2, 0, 1]).to_tensor(-1.0)
    grid = [[1, 2, 0], [0, 0, 0], [4, 0, 5]]
    found = [
        x.to_tensor(), x.to_tensor(9.0), dense,
        tf.convert_to_tensor(tf.gradients(dense**2, flat)[0]),
        x.to_sparse(), R.from_sparse(R.from_row_lengths(flat, [2, 0, 1]).to_sparse()),
        R.from_tensor(grid), R.from_tensor(grid, padding=0), R.from_tensor(grid, lengths=[1, 0, 2]),
        R.from_tensor([grid], ragged_rank=2),
        tf.ragged.constant([["a"], [], ["b", "c"]]).to_tensor(),
    ]  # fmt: skip
    return _run(tf, found)


def reductions(tf):
    x, b, found = _rows(tf), tf.ragged.constant([[True, False], [], [True]]), []
    for reduce in (tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_prod):
        found += [reduce(x, axis) for axis in (None, 0, 1, 2, -1)]
    found += [tf.reduce_mean(x, axis) for axis in (None, 0, 1)]
    found += [r(b, axis) for r in (tf.reduce_all, tf.reduce_any) for axis in (None, 0, 1)]
    return _run(tf, found)


def element_by_element(tf):
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])
    ids = tf.ragged.constant([[1, 2], [], [3]])
    words = tf.ragged.constant([["ab", "c"], [], ["d"]])
    found = [
        x + 1.0, 2.0 - x, x * x, -x, abs(x - 3.0), x / 2.0, x > 2.0, x**2.0, ids // 2, ids % 2,
        tf.add(x, tf.square(x)), tf.exp(x), tf.cast(x, tf.int32), tf.maximum(x, 2.5),
        tf.equal(ids, 2), tf.zeros_like(x), tf.clip_by_value(x, 2.0, 3.0),
        x + tf.constant([[10.0], [20.0], [30.0]]), _rows(tf) * 2.0, tf.strings.length(words),
        tf.ragged.map_flat_values(tf.one_hot, ids, 4),
        tf.convert_to_tensor(tf.gradients(tf.reduce_sum(x * x), x.flat_values)[0]),
    ]  # fmt: skip
    return _run(tf, found)


def joined_picked_and_sliced(tf):
    x, y = _rows(tf), tf.ragged.constant([[1, 2], [], [3]])
    z = tf.ragged.constant([[7], [8, 9], []])
    found = [
        tf.concat([y, z], 0), tf.concat([y, z], 1), tf.concat([y, z, y], axis=-1),
        tf.gather(x, [2, 0]), tf.gather(y, [[2, 0], [1, 1]]),
        tf.gather(tf.constant([5, 6, 7, 8]), y), x[0], x[-1], x[1:], x[::-1], x[::2], x[:, 1:],
        x[:, -1:], x[:, :-1], x[:, :, :1], x[0, 1], x[2, 1:, :2], x[..., :1], x[2, 2, 1],
    ]  # fmt: skip
    return _run(tf, found)


def fed(tf):
    p = tf.ragged.placeholder(tf.int32, 2, value_shape=())
    value = tf.ragged.constant_value([[[1], [2, 3]], []], dtype="int32", ragged_rank=2)
    given = [value.to_list(), value.ragged_rank, value.shape, str(value.dtype)]
    return given + _run(tf, [p, p + 1, tf.reduce_sum(p, 2)], {p: value})


def ranges_and_ids(tf):
    g = tf.ragged
    found = [
        g.range([3, 5, 2]), g.range([0, 5], [3, 1], [1, -2]), g.range(4),
        g.row_splits_to_segment_ids([0, 3, 3, 5]), g.segment_ids_to_row_splits([0, 0, 2]),
        g.segment_ids_to_row_splits([0, 2], num_segments=5),
    ]  # fmt: skip
    return _run(tf, found)


def masked_and_stacked(tf):
    g, mask = tf.ragged, tf.ragged.constant([[True, False], [], [True]])
    y = g.constant([[1, 2], [], [3]])
    x, grid = _rows(tf), tf.constant([[1, 2, 3], [4, 5, 6]])
    found = [
        g.boolean_mask(y, mask), g.boolean_mask(y, [True, False, True]),
        g.boolean_mask(x, [False, True, True]),
        g.boolean_mask(x, g.constant([[True, False], [], [False, True, True]])),
        g.boolean_mask(grid, [[True, False, True], [False, False, True]]),
        g.boolean_mask(grid, [True, False]),
        g.stack([y, y]), g.stack([y, y + 1], axis=1),
        g.stack([tf.constant([[1]]), y], axis=0),
        g.stack_dynamic_partitions(["a", "b", "c", "d"], [2, 0, 2, 0], 4),
    ]  # fmt: skip
    return _run(tf, found)


def split_strings(tf):
    s = tf.strings
    words = tf.constant(["a b", "", " c  d e "])
    found = [
        s.split(words), s.split(words, result_type="RaggedTensor"),
        s.split(words, sep=" ", result_type="RaggedTensor"),
        s.split(words, sep=" ", maxsplit=1, result_type="RaggedTensor"),
        s.split(tf.constant([["a b", "c"], ["d", "e f g"]]), result_type="RaggedTensor"),
        s.split("x,y,z", sep=",", result_type="RaggedTensor"),
        s.split(tf.ragged.constant([["a b", "c"], []]), result_type="RaggedTensor"),
        tf.string_split(words, result_type="RaggedTensor"),
        tf.string_split(["a,b,", ",c"], ",", skip_empty=False, result_type="RaggedTensor"),
        s.bytes_split("abc"), s.bytes_split(["ab", "", "c"]),
        s.bytes_split(tf.ragged.constant([["ab"], [], ["c", "de"]])),
    ]  # fmt: skip
    return _run(tf, found)


def more_of_shapes(tf):
    y = tf.ragged.constant([[1, 2], [], [3]])
    found = [
        tf.expand_dims(y, 0), tf.expand_dims(y, 1), tf.expand_dims(y, -1),
        tf.tile(y, [2, 1]), tf.tile(y, [1, 3]),
        tf.where(tf.ragged.constant([[True, False], [], [True]])),
        tf.where(tf.ragged.constant([[True, False], [], [True]]), y, y * 10),
        tf.where([True, False, True], y, y * 10),
        tf.gather_nd(y, [[0, 1], [2, 0]]), tf.gather_nd(y, [[2], [0]]),
        tf.stack([y, y]), tf.add_n([y, y, y]),
    ]  # fmt: skip
    return _run(tf, found)


def split_of_unknown_rank(tf):
    """Strings whose rank is not known are taken for a vector."""
    p = tf.placeholder(tf.string)
    found = [tf.strings.split(p), tf.strings.split(p, ",")]
    strings = [b"a b,c", b"", b"d"]
    return _run(tf, [[f.indices, f.values] for f in found], {p: strings})


def refused(tf):
    def error(call):
        try:
            _run(tf, call())
        except Exception as e:
            return type(e).__name__
        return None

    R, x = tf.RaggedTensor, tf.ragged.constant([[1, 2], [], [3]])
    return [
        error(lambda: R(x.values, x.row_splits)),
        error(lambda: R.from_row_splits([1, 2], [0, 1, 5])),
        error(lambda: R.from_row_splits([1, 2], [0, 2, 1, 2])),
        error(lambda: tf.ragged.constant([1, [2]])),
        error(lambda: tf.ragged.constant([[1], 2])),
        error(lambda: x[:, 0]),
        error(lambda: tf.convert_to_tensor(x)),
        error(lambda: R.from_tensor([[1]], lengths=[1], padding=0)),
    ]


def constants_of_empty_lists(tf):
    """Ranks, shapes and values of lists that hold no value; None where TensorFlow refuses."""
    given = [
        ([], {}),
        ([], {"ragged_rank": 1}),
        ([], {"ragged_rank": 2}),
        ([[], []], {}),
        ([[], []], {"ragged_rank": 1}),
        ([[], []], {"ragged_rank": 2}),
        ([[[]], []], {}),
        ([], {"ragged_rank": 1, "inner_shape": (100, 20)}),
        ([], {"ragged_rank": 2, "inner_shape": (100, 20)}),
        ([], {"inner_shape": (0,)}),
        ([], {"inner_shape": (3,)}),
        ([[], []], {"inner_shape": (2,)}),
        ([[], []], {"ragged_rank": 0}),
        ([], {"ragged_rank": 0}),
        ([[], [[]]], {}),
        ([[[1, 2]]], {"inner_shape": (2,)}),
    ]
    found = []
    for pylist, how in given:
        for make in (tf.ragged.constant, tf.ragged.constant_value):
            try:
                made = make(pylist, **how)
            except (TypeError, ValueError):
                found.append(None)
                continue
            shape = made.shape.as_list() if hasattr(made.shape, "as_list") else list(made.shape)
            value = _run(tf, made) if make is tf.ragged.constant else _plain(made)
            found.append([shape, value, getattr(made, "ragged_rank", 0)])
    return found
