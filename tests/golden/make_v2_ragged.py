"""Ragged tensors, sets and queues of TF 2 with eager execution:
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
