"""Ragged tensors, sets, queues and diagonals of TF 2 with eager execution:
``<python of TF 2.21> make_v2_ragged.py`` writes v2_ragged.json.
"""

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "to_list"):
        return plain(value.to_list())
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value.decode() if isinstance(value, bytes) else value


def cases(tf):
    x = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
    deep = tf.ragged.constant([[[1.0], [2.0, 3.0]], [], [[4.0]]])
    even = tf.ragged.constant([[1, 2], [3, 4]])
    yield "numpy", lambda: [x.numpy().dtype == object, [plain(r) for r in x.numpy()]]
    yield "numpy of equal rows", lambda: [even.numpy().shape, even]
    yield "numpy of no rows", lambda: tf.ragged.constant([], "int32", 1).numpy().shape
    yield "rows", lambda: [plain(r) for r in x]
    yield "rows of rows", lambda: [plain(r) for r in deep]
    yield "texts", lambda: [repr(x), str(x), repr(deep)]
    yield "arithmetic", lambda: [x + 1, x * x, -x, x - tf.constant([[1], [2], [3]])]
    yield "where", lambda: tf.where(x > 2, x, x * 0)
    yield "places", lambda: tf.where(x > 2)
    yield "sums", lambda: [tf.reduce_sum(x, axis=1), tf.reduce_max(x, 1), tf.reduce_sum(x)]
    yield "slices", lambda: [x[0], x[2, 1], x[:, :1], x[1:], deep[0, 1]]
    yield "joined", lambda: [tf.concat([x, x], 1), tf.stack([x, x]), tf.tile(x, [1, 2])]
    yield "dense", lambda: [x.to_tensor(), x.to_tensor(9), x.to_sparse().indices]
    yield "function", lambda: tf.function(lambda r: r * 2)(x)
    yield "compared", lambda: [x == 2, x != x, (x == None) is False]  # noqa: E711
    yield "mapped", lambda: [
        tf.map_fn(lambda r: r + 1, x),
        tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.int32),
        tf.map_fn(
            tf.range, tf.constant([2, 0, 1]),
            fn_output_signature=tf.RaggedTensorSpec([None], tf.int32, 0),
        ),
        tf.map_fn(lambda r: r * 2.0, deep),
        tf.map_fn(lambda a: a[0] + a[1], (x, tf.constant([10, 20, 30])),
                  fn_output_signature=tf.RaggedTensorSpec([None], tf.int32, 0)),
        tf.map_fn(lambda r: r, tf.ragged.constant([], "int32", 1)),
    ]  # fmt: skip
    flat = tf.cast(x, tf.float32) - 3.0
    yield "activations", lambda: [
        f(flat) for f in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.softplus,
                          tf.nn.softsign, tf.nn.leaky_relu, tf.nn.sigmoid, tf.nn.tanh, tf.nn.silu)
    ]  # fmt: skip
    yield "softmax", lambda: [tf.nn.softmax(flat), tf.nn.softmax(deep)]
    yield "dropout", lambda: [tf.nn.dropout(flat, 0.0), tf.nn.dropout(flat, 0.5).row_lengths()]
    yield (
        "segments",
        lambda: [
            tf.math.unsorted_segment_sum(x, [1, 0, 1], 2),
            tf.math.unsorted_segment_max(x, [1, 0, 1], 2),
            tf.math.unsorted_segment_mean(flat, [1, 0, 1], 2),
        ],
    )
    yield "squeezed", lambda: [
        tf.squeeze(tf.ragged.constant([[[1], [2]], [[3]]]), [2]), tf.squeeze(x[:1], 0)
    ]  # fmt: skip
    yield "one_hot", lambda: tf.one_hot(x, 3)
    yield (
        "strings",
        lambda: [
            tf.strings.reduce_join(tf.ragged.constant([["a", "b"], ["c"]]), axis=1, separator="-"),
            tf.strings.join([tf.ragged.constant([["a", "b"], ["c"]])] * 2, "+"),
            tf.strings.length(tf.ragged.constant([["a", "bc"], ["c"]])),
            tf.strings.substr(tf.ragged.constant([["abc"], ["def"]]), 1, 2),
        ],
    )
    yield "bits", lambda: [tf.bitwise.bitwise_and(x, x + 1), tf.bitwise.invert(x)]
    yield "partitions", lambda: tf.dynamic_partition(x, [1, 0, 1], 2)
    square, band = tf.reshape(tf.range(12), [3, 4]), tf.constant([[1, 2], [3, 4], [5, 6]])
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        yield (
            "diagonals " + align,
            lambda align=align: [
                tf.linalg.diag_part(square, k=(-2, 2), padding_value=-1, align=align),
                tf.linalg.diag(band, k=(-1, 1), padding_value=9, align=align),
                tf.linalg.set_diag(tf.zeros([2, 2], tf.int32), band, k=(-1, 1), align=align),
                tf.linalg.diag([1, 2], k=-1, num_cols=4, align=align),
            ],
        )
    data = tf.data.Dataset
    lengths = data.range(5).map(tf.range)
    yield "datasets", lambda: [
        list(data.from_tensor_slices(x).batch(2)),
        list(lengths.apply(tf.data.experimental.dense_to_ragged_batch(2))),
        list(lengths.apply(tf.data.experimental.dense_to_ragged_batch(2, True))),
        list(data.from_tensors(deep).map(lambda r: r * 2.0)),
        [list(p) for p in data.zip((lengths, data.range(5))).map(
            lambda r, i: {"r": tf.stack([r, r]), "i": i}
        ).apply(tf.data.experimental.dense_to_ragged_batch(3)).map(lambda d: (d["r"], d["i"]))],
    ]  # fmt: skip
    yield (
        "made",
        lambda: [
            tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 3]),
            tf.RaggedTensor.from_tensor([[1, 2], [3, 0]], padding=0),
            tf.ragged.range([2, 3]),
            tf.strings.split(["a b", "c"]),
        ],
    )
    yield (
        "sets",
        lambda: [
            tf.sets.size(tf.sets.intersection([[1, 2]], [[2, 3]])),
            tf.sets.union([[1, 2]], [[2, 3]]).values,
            tf.sets.difference([[1, 2]], [[2, 3]]).values,
        ],
    )

    def queue():
        q = tf.queue.FIFOQueue(3, [tf.int32], [[]])
        q.enqueue_many([[5, 6, 7]])
        return [q.dequeue(), q.size(), q.dequeue_many(2)]

    yield "queue", queue


if __name__ == "__main__":
    import tensorflow as tf

    found = {name: plain(make()) for name, make in cases(tf)}
    with open(os.path.join(HERE, "v2_ragged.json"), "w") as file:
        json.dump(found, file, indent=0)
        file.write("\n")
