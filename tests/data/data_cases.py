"""Datasets whose elements are compared with TensorFlow's: each case makes a dataset from a ``tf``
module.

Importable without Headrace, under Python 3.7: ``python tests/data/data_cases.py`` in an environment
with TensorFlow writes the golden file of that version (tests/golden/data_v1.json by TensorFlow 1.15
in graph mode, data_v2.json by TensorFlow 2 in eager mode).
"""

import collections
import json
import os
import sys
import tempfile

import numpy as np

CASES = {}
CASES_V2 = {}  # what TensorFlow 1.15 does not have
Pair = collections.namedtuple("Pair", ["left", "right"])


def case(make):
    CASES[make.__name__] = make
    return make


def case_v2(make):
    CASES_V2[make.__name__] = make
    return make


def plain(value):
    """An element as JSON."""
    if isinstance(value, dict):
        return {k: plain(value[k]) for k in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode("latin1")
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    return value


# sources


@case
def range_stop(tf):
    return tf.data.Dataset.range(5)


@case
def range_down(tf):
    return tf.data.Dataset.range(10, 2, -3)


@case
def slices_nested(tf):
    return tf.data.Dataset.from_tensor_slices(
        {"a": [1, 2, 3], "b": (np.arange(6).reshape(3, 2), ["x", "y", "z"])}
    )


@case
def tensors_named(tf):
    return tf.data.Dataset.from_tensors(Pair([1.5, 2.5], "text"))


@case
def generator(tf):
    def numbers(stop):
        for i in range(stop):
            yield i, [float(i)] * i

    return tf.data.Dataset.from_generator(numbers, (tf.int32, tf.float32), ((), (None,)), args=(4,))


@case
def zipped(tf):
    d = tf.data.Dataset
    return d.zip({"x": d.range(4), "y": (d.range(10, 13), d.from_tensors(7).repeat())})


# order


@case
def shuffle_fixed(tf):
    return tf.data.Dataset.range(40).shuffle(7, seed=11, reshuffle_each_iteration=False)


@case
def shuffle_large_buffer(tf):
    return tf.data.Dataset.range(25).shuffle(1000, seed=3)


@case
def shuffle_one(tf):
    return tf.data.Dataset.range(6).shuffle(1, seed=3)


@case
def shuffle_exact(tf):
    return tf.data.Dataset.range(10).shuffle(10, seed=5)


@case
def shuffle_repeat(tf):
    return tf.data.Dataset.range(20).shuffle(6, seed=2).repeat(3)


@case
def shuffle_repeat_large(tf):
    return tf.data.Dataset.range(7).shuffle(30, seed=2).repeat(4)


@case
def shuffle_repeat_batch(tf):
    return (
        tf.data.Dataset.from_tensor_slices(np.arange(24).reshape(12, 2))
        .shuffle(5, seed=9)
        .repeat(2)
        .batch(5)
    )


@case
def shuffle_fixed_repeat(tf):
    return tf.data.Dataset.range(9).shuffle(4, seed=2, reshuffle_each_iteration=False).repeat(2)


@case
def shuffle_mapped(tf):
    return tf.data.Dataset.range(30).map(lambda x: x * 10).shuffle(8, seed=4)


@case
def shuffle_mapped_repeat(tf):
    return tf.data.Dataset.range(11).map(lambda x: x * 10).shuffle(5, seed=4).repeat(3)


@case
def shuffle_twice(tf):
    return tf.data.Dataset.range(20).shuffle(4, seed=1).shuffle(3, seed=2).take(12)


@case
def repeat_shuffle(tf):
    return tf.data.Dataset.range(6).repeat(3).shuffle(4, seed=8)


@case
def shuffle_take_repeat(tf):
    return tf.data.Dataset.range(10).shuffle(10, seed=1).take(3).repeat(4)


@case
def sampled(tf):
    d = tf.data.Dataset
    return tf.data.experimental.sample_from_datasets(
        [d.range(8), d.range(100, 108)], [0.3, 0.7], seed=5
    )


@case
def chosen(tf):
    d = tf.data.Dataset
    parts = [d.from_tensors(c).repeat() for c in ("a", "b", "c")]
    return tf.data.experimental.choose_from_datasets(parts, d.range(3).repeat(2))


@case
def random_numbers(tf):
    return tf.data.experimental.RandomDataset(seed=4).take(5)


# number


@case
def take_skip_shard(tf):
    return tf.data.Dataset.range(30).skip(3).shard(4, 1).take(5)


@case
def take_all(tf):
    return tf.data.Dataset.range(3).take(-1)


@case
def skip_all(tf):
    return tf.data.Dataset.range(3).skip(-1)


@case
def concatenated(tf):
    return tf.data.Dataset.range(3).concatenate(tf.data.Dataset.range(7, 9)).repeat(2)


@case
def enumerated(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5)


@case
def repeat_empty(tf):
    return tf.data.Dataset.range(0).repeat()


@case
def unique(tf):
    return tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2]).apply(tf.data.experimental.unique())


# batches


@case
def batch_rest(tf):
    return tf.data.Dataset.from_tensor_slices((np.arange(7), np.arange(14.0).reshape(7, 2))).batch(
        3
    )


@case
def batch_drop(tf):
    return tf.data.Dataset.range(7).map(lambda x: (x, x * x)).batch(3, drop_remainder=True)


@case
def batch_strings(tf):
    return (
        tf.data.Dataset.from_tensor_slices(["a", "bc", "d"])
        .map(lambda s: (s, tf.strings.length(s)))
        .batch(2)
    )


@case
def padded(tf):
    d = tf.data.Dataset.range(5).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return d.padded_batch(3, padded_shapes=[None])


@case
def padded_values(tf):
    d = tf.data.Dataset.range(1, 5).map(
        lambda x: (tf.fill([tf.cast(x, tf.int32)], x), tf.strings.as_string(x))
    )
    return d.padded_batch(2, padded_shapes=([6], []), padding_values=(np.int64(-1), "none"))


@case
def unbatched(tf):
    return tf.data.Dataset.range(7).batch(3).map(lambda x: (x, x + 1)).unbatch()


@case
def windows(tf):
    d = tf.data.Dataset.range(8).window(3, shift=2, stride=2)
    return d.flat_map(lambda w: w.batch(3))


@case
def windows_drop(tf):
    d = tf.data.Dataset.range(10).window(4, shift=1, drop_remainder=True)
    return d.flat_map(lambda w: w.batch(4))


@case
def windows_far(tf):
    return tf.data.Dataset.range(10).window(2, shift=5).flat_map(lambda w: w.batch(2))


@case
def windows_of_pairs(tf):
    d = tf.data.Dataset.zip((tf.data.Dataset.range(4), tf.data.Dataset.range(10, 14))).window(2)
    return d.flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(2), b.batch(2))))


@case
def sparse_batches(tf):
    d = tf.data.Dataset.range(4).map(
        lambda x: tf.SparseTensor([[0, 0], [1, 1]], tf.stack([x, x + 10]), [2, 3])
    )
    return d.batch(3).map(lambda s: (s.indices, s.values, s.dense_shape))


@case
def sparse_slices(tf):
    s = tf.SparseTensor([[0, 1], [0, 2], [2, 0]], [1.0, 2.0, 3.0], [3, 4])
    return tf.data.Dataset.from_tensor_slices(s).map(tf.sparse.to_dense)


@case
def dense_to_sparse(tf):
    d = tf.data.Dataset.range(1, 4).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    d = d.apply(tf.data.experimental.dense_to_sparse_batch(2, [4]))
    return d.map(lambda s: (s.indices, s.values, s.dense_shape))


# functions


@case
def mapped_dict(tf):
    return tf.data.Dataset.range(3).map(lambda x: {"twice": 2 * x, "as": Pair(x, [x, x])})


@case
def mapped_list(tf):
    return tf.data.Dataset.range(2).map(lambda x: [x, x + 1])


@case
def mapped_branch(tf):
    def odd_or_even(x):
        if tf.equal(x % 2, 0):
            return x
        else:
            return -x

    return tf.data.Dataset.range(5).map(odd_or_even)


@case
def mapped_parallel(tf):
    return tf.data.Dataset.range(50).map(lambda x: x * x, num_parallel_calls=3)


@case
def mapped_py_func(tf):
    return tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(lambda v: v + 1, [x], tf.int64))


@case
def filtered(tf):
    return tf.data.Dataset.range(10).filter(lambda x: tf.equal(x % 3, 1))


@case
def flat_mapped(tf):
    return tf.data.Dataset.range(4).flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(x))


@case
def interleaved(tf):
    d = tf.data.Dataset.range(1, 6)
    return d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4
    )


@case
def interleaved_uneven(tf):
    d = tf.data.Dataset.from_tensor_slices([4, 1, 3, 0, 2, 5])
    return d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(tf.cast(x, tf.int64)), cycle_length=3
    )


@case
def interleaved_parallel(tf):
    d = tf.data.Dataset.from_tensor_slices([4, 1, 3, 0, 2, 5])
    return d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(tf.cast(x, tf.int64)),
        cycle_length=3,
        block_length=2,
        num_parallel_calls=2,
    )


@case
def interleaved_legacy(tf):
    d = tf.data.Dataset.range(5)
    return d.apply(
        tf.data.experimental.parallel_interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
        )
    )


@case
def map_and_batch(tf):
    return tf.data.Dataset.range(10).apply(
        tf.data.experimental.map_and_batch(lambda x: (x, x * 2), 4, drop_remainder=False)
    )


@case
def scanned(tf):
    return tf.data.Dataset.range(6).apply(
        tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s * 10 + x))
    )


@case
def taken_while(tf):
    return tf.data.Dataset.range(9).apply(tf.data.experimental.take_while(lambda x: x < 4))


@case
def grouped(tf):
    d = tf.data.Dataset.range(11)
    return d.apply(
        tf.data.experimental.group_by_window(
            lambda x: x % 3, lambda key, group: group.batch(4), window_size=4
        )
    ).map(lambda x: x)


@case
def bucketed(tf):
    def numbers():
        for n in (1, 5, 2, 7, 3, 3, 9, 4):
            yield [n] * n

    d = tf.data.Dataset.from_generator(numbers, tf.int32, [None])
    return d.apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], padded_shapes=[None]
        )
    )


@case
def grouped_reduced(tf):
    reducer = tf.data.experimental.Reducer(
        init_func=lambda key: np.int64(0), reduce_func=lambda s, x: s + x, finalize_func=lambda s: s
    )
    return tf.data.Dataset.range(10).apply(
        tf.data.experimental.group_by_reducer(lambda x: x % 3, reducer)
    )


@case
def ignored_errors(tf):
    d = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "bad")
    )
    return d.apply(tf.data.experimental.ignore_errors())


@case
def cached(tf):
    return tf.data.Dataset.range(5).map(lambda x: x + 1).cache().repeat(2)


@case
def prefetched(tf):
    return tf.data.Dataset.range(7).batch(2).prefetch(2)


@case
def resampled_pipeline(tf):
    x = np.arange(40.0, dtype=np.float32).reshape(20, 2)
    y = np.arange(20)
    d = (
        tf.data.Dataset.from_tensor_slices((x, y))
        .shuffle(20, seed=1)
        .map(lambda a, b: (a * 2.0, b))
    )
    return d.batch(6).prefetch(1)


# TensorFlow 2 only


@case_v2
def ordered_parallel_map(tf):
    return tf.data.Dataset.range(20).map(lambda x: x * x, num_parallel_calls=3, deterministic=True)


@case_v2
def ordered_parallel_interleave(tf):
    return tf.data.Dataset.range(4).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(3),
        cycle_length=2,
        block_length=2,
        num_parallel_calls=2,
        deterministic=True,
    )


@case_v2
def parallel_batches(tf):
    return tf.data.Dataset.range(7).batch(3, num_parallel_calls=2)


@case_v2
def asserted_cardinality(tf):
    return tf.data.Dataset.range(5).apply(tf.data.experimental.assert_cardinality(5))


@case_v2
def snapshot_written(tf):
    return tf.data.Dataset.range(6).apply(tf.data.experimental.snapshot(tempfile.mkdtemp()))


@case_v2
def saved_and_loaded(tf):
    folder = tempfile.mkdtemp()
    tf.data.Dataset.range(6).map(lambda x: x + 1).save(folder)
    return tf.data.Dataset.load(folder)


def elements(tf, make, limit=200):
    """All elements of a case, as JSON values."""
    if getattr(tf, "executing_eagerly", lambda: False)():
        return [plain(_numpy(e)) for e in make(tf).take(limit)]
    with tf.Graph().as_default():
        iterator = tf.compat.v1.data.make_initializable_iterator(make(tf))
        element = iterator.get_next()
        out = []
        with tf.compat.v1.Session() as session:
            session.run(iterator.initializer)
            try:
                while len(out) < limit:
                    out.append(plain(session.run(element)))
            except tf.errors.OutOfRangeError:
                pass
        return out


def _numpy(value):
    if isinstance(value, dict):
        return {k: _numpy(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_numpy(v) for v in value]
    return value.numpy()


if __name__ == "__main__":
    import tensorflow as tf

    eager = tf.executing_eagerly()
    cases = dict(CASES, **CASES_V2) if eager else CASES
    golden = {name: elements(tf, make) for name, make in cases.items()}
    where = os.path.join(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        "golden",
        "data_v2.json" if eager else "data_v1.json",
    )
    with open(where, "w") as f:
        f.write(
            "{\n"
            + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in golden.items())
            + "\n}\n"
        )
    sys.stdout.write(f"{len(golden)} cases written to {where}\n")
