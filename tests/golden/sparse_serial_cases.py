"""Sparse tensors as strings, and batches of them. Run on TF 1.15 (make_cases.py) and here."""


def _sparse(tf, dtype="int32"):
    values = [b"a", b"bc", b""] if dtype == "string" else [1, 2, 3]
    return tf.SparseTensor([[0, 1], [2, 0], [2, 3]], tf.constant(values, dtype), [3, 4])


def _bytes(tf, tensor):
    value = tf.Session().run(tensor)
    return [tensor.name, tensor.shape.as_list(), [s.hex() for s in value.reshape(-1).tolist()]]


def _value(tf, sparse):
    found = tf.Session().run(sparse)
    return [
        [sparse.indices.name, sparse.indices.shape.as_list(), sparse.values.shape.as_list()],
        sparse.dense_shape.shape.as_list(),
        found.indices,
        found.values,
        found.dense_shape,
    ]


def _refused(tf, function):
    try:
        tf.Session().run(function())
    except Exception as e:
        return type(e).__name__
    return "accepted"


def serialized(tf):
    return [_bytes(tf, tf.serialize_sparse(_sparse(tf, t))) for t in ("int32", "string", "float64")]


def serialized_rows(tf):
    return [_bytes(tf, tf.serialize_many_sparse(_sparse(tf, t))) for t in ("int32", "string")]


def read_again(tf):
    sp = _sparse(tf)
    rows = tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(sp), tf.int32)
    words = tf.io.serialize_many_sparse(_sparse(tf, "string"))
    one = tf.io.serialize_sparse(sp)
    wider = tf.io.serialize_sparse(tf.SparseTensor([[5, 0]], [9], [6, 1]))
    both = tf.io.deserialize_many_sparse(tf.stack([one, wider]), tf.int32, rank=3)
    words = tf.io.deserialize_many_sparse(words, tf.string, rank=2)
    return _value(tf, rows), _value(tf, both), _value(tf, words)


def refused(tf):
    rows, read = tf.serialize_many_sparse(_sparse(tf)), tf.io.deserialize_many_sparse
    return [
        _refused(tf, lambda: read(rows, tf.float32)),
        _refused(tf, lambda: read(tf.serialize_sparse(_sparse(tf)), tf.int32)),
        _refused(tf, lambda: read(tf.constant([[b"x", b"y", b"z"]]), tf.int32)),
        _refused(tf, lambda: tf.serialize_many_sparse(tf.SparseTensor([[0]], [1], [2]))),
    ]


def _element(tf):
    i = tf.train.range_input_producer(6, shuffle=False).dequeue()
    odd = tf.mod(i, 2)
    places = tf.cast(tf.stack([[0], [2]])[: 1 + odd], tf.int64)
    return i, tf.SparseTensor(places, tf.stack([i, i * 10])[: 1 + odd], [4])


def _batches(tf, *fetches):
    with tf.train.MonitoredSession() as session:
        found = [session.run(fetches) for _ in range(3)]
    return [
        [[v.indices, v.values, v.dense_shape] if hasattr(v, "values") else v for v in values]
        for values in found
    ]


def batched(tf):
    i, sp = tf.train.batch(list(_element(tf)), 3)
    return [i.shape.as_list(), sp.indices.shape.as_list()], _batches(tf, i, sp)


def batched_by_name(tf):
    i, sp = _element(tf)
    made = tf.train.batch({"label": sp, "number": i}, 2)
    return sorted(made), _batches(tf, made["number"], made["label"])


def batched_rows(tf):
    i = tf.train.range_input_producer(4, shuffle=False).dequeue()
    sp = tf.SparseTensor([[0, 1], [1, 0]], tf.stack([i, i + 1]), [2, 3])
    return _batches(tf, tf.train.batch([sp], 4, enqueue_many=True))


def shuffled(tf):
    i, sp = tf.train.shuffle_batch(list(_element(tf)), 3, 20, 5, seed=3)
    found = _batches(tf, i, sp)
    return [len(v[0]) for v in found], [
        sorted(set(int(x) for x in values))
        == sorted(set(int(n) for n in numbers) | set(int(n) * 10 for n in numbers if n % 2))
        for numbers, (_, values, _) in found
    ]


def bucketed(tf):
    i, sp = _element(tf)
    which, (numbers, made) = tf.contrib.training.bucket([i, sp], tf.mod(i, 2), 2, 2)
    found = _batches(tf, which, numbers, made)
    return [
        [
            [n % 2 for n in numbers] == [kind] * 2,
            sorted(values) == sorted([*numbers, *[n * 10 for n in numbers if n % 2]]),
            dims,
        ]
        for kind, numbers, (_, values, dims) in found
    ]
