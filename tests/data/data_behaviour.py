"""What datasets do, family by family, in TensorFlow 2 and here: elements, specs, cardinalities,
classes of errors.

Importable without Headrace: ``python tests/data/data_behaviour.py`` in an environment with
TensorFlow 2 writes tests/golden/data_behaviour.json. Every case is a list of observations; where
one differs, the test names its number.
"""

import collections
import json
import os
import re
import sys
import tempfile

import numpy as np

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


class Seen:
    """Collects observations."""

    def __init__(self, tf):
        self.tf = tf
        self.found = []

    def __call__(self, *datasets):
        """Elements (with errors in their places), spec and cardinality of datasets."""
        for d in datasets:
            self.found.append([self.elements(d), spec(d), int(d.cardinality())])

    def elements(self, dataset, limit=60):
        out, iterator, failed = [], iter(dataset), 0
        while len(out) < limit and failed < 3:
            try:
                out.append(plain(self.tf, next(iterator)))
                failed = 0
            except StopIteration:
                return out
            except Exception as error:
                out.append("error " + type(error).__name__)
                failed += 1
        return [*out, "..."]

    def values(self, *values):
        self.found.append(plain(self.tf, values))

    def specs(self, *datasets):
        self.found += [spec(d) for d in datasets]

    def errors(self, *functions):
        for f in functions:
            try:
                f()
                self.found.append("no error")
            except Exception as error:
                self.found.append(type(error).__name__)


class Pairs(list):
    """An OrderedDict with the repr that it had before Python 3.12."""

    def __repr__(self):
        return f"OrderedDict({super().__repr__()})"


def with_pairs(structure):
    if isinstance(structure, collections.OrderedDict):
        return Pairs((k, with_pairs(v)) for k, v in structure.items())
    return tuple(map(with_pairs, structure)) if type(structure) is tuple else structure


def spec(dataset):
    text = repr(with_pairs(dataset.element_spec)).replace(", name=None", "")
    return re.sub(r"Dimension\((\w+)\)", r"\1", text)


def plain(tf, value):
    """An element as JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(tf, v) for v in value]
    if isinstance(value, dict):
        return {k: plain(tf, value[k]) for k in sorted(value)}
    if isinstance(value, tf.data.Dataset):
        return [plain(tf, v) for v in value]
    if isinstance(value, tf.sparse.SparseTensor):
        return plain(tf, (value.indices, value.values, value.dense_shape))
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return plain(tf, value)
    return value.decode("utf-8") if isinstance(value, bytes) else value


def every(dataset):
    return lambda: list(dataset())


def lengths(tf, n):
    return tf.data.Dataset.range(1, n).map(lambda x: tf.fill([x], x))


def failing_at(tf, dataset, n):
    """An error for the element n."""
    return dataset.map(
        lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x - n, tf.float32), "bad")
    )


@case
def batching(tf, seen):
    D = tf.data.Dataset
    for n, size, drop in (
        (5, 2, False),
        (5, 2, True),
        (4, 4, True),
        (3, 7, False),
        (3, 7, True),
        (0, 2, False),
    ):
        seen(D.range(n).batch(size, drop_remainder=drop))
    seen(D.range(4).batch(2).batch(2), D.from_tensor_slices(["a", "b", "c"]).batch(2))
    seen(D.from_tensors(np.zeros((0, 3))).batch(2), lengths(tf, 4).batch(2))
    seen(D.range(4).map(lambda x: tf.sparse.SparseTensor([[0]], [x], [1])).batch(3))
    seen(
        D.range(7).batch(3, num_parallel_calls=2), D.range(7).batch(3, True, num_parallel_calls=-1)
    )
    seen.specs(D.from_tensors(({"a": [1, 2]}, "x")).batch(3))
    seen.errors(every(lambda: D.range(3).batch(0)), every(lambda: D.range(3).batch(-1)))
    seen(
        D.from_tensor_slices([[1, 2], [3, 4]]).unbatch(),
        D.from_tensor_slices((["a", "b"], [[1], [2]])).batch(2).unbatch(),
    )
    seen.errors(lambda: D.range(3).unbatch())


@case
def padded_batches(tf, seen):
    D, ds = tf.data.Dataset, lengths(tf, 6)
    both = D.zip((ds, ds.map(tf.as_string)))
    seen(
        ds.padded_batch(2),
        ds.padded_batch(2, [7]),
        ds.padded_batch(2, [7], drop_remainder=True),
        ds.padded_batch(2, [3]),
    )
    seen(ds.padded_batch(2, [None], padding_values=tf.constant(-1, tf.int64)))
    seen(both.padded_batch(3, ([None], [None])))
    seen(both.padded_batch(3, ([None], [None]), (tf.constant(9, tf.int64), "z")))
    seen(both.map(lambda a, b: {"x": a, "y": b}).padded_batch(3, {"x": [5], "y": [-1]}))
    seen(
        D.from_tensors(np.zeros((0, 2), np.float32)).padded_batch(1, [2, 2]),
        D.range(3).padded_batch(2, []),
    )
    seen.errors(
        lambda: ds.padded_batch(2, [3, 3]),
        lambda: ds.padded_batch(2, padding_values="a"),
        lambda: ds.padded_batch(2, ([3], [3])),
        every(lambda: ds.padded_batch(-1)),
    )


@case
def order_and_number(tf, seen):
    D = tf.data.Dataset
    for count in (None, -1, 0, 1, 3):
        seen(D.range(2).repeat(count).take(7))
        seen.values(D.range(2).repeat(count).cardinality())
    seen(D.range(0).repeat().take(3), D.range(3).repeat(2).skip(4), D.range(3).enumerate(start=5))
    for count in (-1, 0, 2, 9):
        seen(D.range(4).take(count), D.range(4).skip(count))
    seen(*[D.range(7).shard(3, i) for i in range(3)])
    seen.errors(
        lambda: D.range(3).shard(0, 0),
        lambda: D.range(3).shard(2, 2),
        lambda: D.range(3).shard(2, -1),
    )
    seen(
        *[D.range(*a) for a in ((5,), (2, 5), (2, 9, 3), (5, 2, -1), (5, 2), (0,))],
        D.range(3, output_type=tf.int32),
    )
    seen.errors(every(lambda: D.range(0, 5, 0)))
    seen(
        D.from_tensor_slices([1, 2, 1, 3, 2]).unique(),
        D.from_tensor_slices(["a", "b", "a"]).unique(),
    )
    seen(D.range(5).prefetch(0), D.range(5).prefetch(3))
    seen.errors(every(lambda: D.range(5).prefetch(-7)))


@case
def shuffling(tf, seen):
    D = tf.data.Dataset
    tf.random.set_seed(3)
    for again in (True, False):
        ds = D.range(9).shuffle(5, seed=7, reshuffle_each_iteration=again)
        seen(ds, ds, D.range(5).shuffle(3, seed=1, reshuffle_each_iteration=again).repeat(3))
    seen(D.range(5).shuffle(1, seed=1), D.range(6).shuffle(3, seed=2).batch(2).repeat(2))
    seen(
        D.range(6).repeat(2).shuffle(20, seed=2),
        D.range(6).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=2),
    )
    seen.errors(lambda: D.range(5).shuffle(0))


@case
def several_datasets(tf, seen):
    D = tf.data.Dataset
    a, b = D.range(3), D.range(10, 15)
    seen(D.zip((a, b)), D.zip({"x": a, "y": (b, a)}), D.zip(a), D.zip((a,)), a.concatenate(b))
    seen.errors(lambda: D.zip([a, b]), lambda: D.zip((a, 1)), lambda: D.zip())
    seen.specs(D.from_tensors([1, 2]).concatenate(D.from_tensors([1, 2, 3])))
    seen.specs(D.from_tensors([1, 2]).concatenate(D.from_tensors([[1, 2, 3]])))
    seen.errors(
        lambda: a.concatenate(D.from_tensors("x")),
        lambda: a.concatenate(D.zip((a, b))),
        lambda: D.from_tensors({"a": 1}).concatenate(D.from_tensors({"b": 1})),
    )
    parts = [D.from_tensors(i).repeat(n) for i, n in ((0, 2), (1, 4), (2, 3))]
    order = D.from_tensor_slices(np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 1], np.int64))
    seen(
        D.choose_from_datasets(parts, order),
        D.choose_from_datasets(parts, order, stop_on_empty_dataset=False),
    )
    seen(tf.data.experimental.choose_from_datasets(parts, order))
    seen(D.choose_from_datasets(parts, D.from_tensor_slices(np.array([0, 5], np.int64))))
    tf.random.set_seed(1)
    seen(D.sample_from_datasets(parts, [0.2, 0.5, 0.3], seed=3))
    seen(D.sample_from_datasets(parts, [0.0, 1.0, 0.0], seed=3, stop_on_empty_dataset=True))
    seen.errors(
        lambda: D.choose_from_datasets([], order),
        lambda: D.choose_from_datasets(parts, D.from_tensors(1.0)),
        lambda: D.sample_from_datasets([]),
        lambda: D.sample_from_datasets(parts, [0.5, 0.5]),
    )


@case
def tensors(tf, seen):
    D = tf.data.Dataset
    seen(
        D.from_tensor_slices({"a": [1, 2], "b": [[1.0, 2.0], [3.0, 4.0]]}),
        D.from_tensors((1, (2.0, "x"))),
    )
    seen(D.from_tensor_slices(tf.sparse.SparseTensor([[0, 0], [1, 2]], [5, 6], [3, 4])))
    seen.errors(
        lambda: D.from_tensor_slices(3),
        lambda: D.from_tensor_slices(()),
        lambda: D.from_tensor_slices(([1, 2], [1, 2, 3])),
    )


@case
def functions(tf, seen):
    D = tf.data.Dataset

    def raising(error):
        def f(x):
            raise error

        return lambda x: tf.numpy_function(f, [x], tf.int64)

    seen(
        D.range(2).map(lambda x: (x, {"a": x})),
        D.range(2).map(lambda x: [x, x]),
        D.range(2).map(lambda x: 5),
    )
    seen(
        failing_at(tf, D.range(6), 3),
        failing_at(tf, D.range(6), 3).ignore_errors(),
        failing_at(tf, D.range(6), 3).batch(2),
    )
    seen(
        failing_at(tf, D.range(6), 3).batch(2).ignore_errors(),
        failing_at(tf, D.range(6).prefetch(2), 3).prefetch(2),
    )
    seen(D.range(9).filter(lambda x: x % 3 == 0), D.range(10).take_while(lambda x: x < 4))
    seen(
        D.range(4).flat_map(lambda x: D.from_tensors(x).repeat(x)),
        D.from_tensors((1, 2)).map(lambda x, y: x + y),
    )
    seen(D.range(5).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x)))
    seen(
        D.range(7).map(lambda x: x * 2, num_parallel_calls=2),
        D.range(7).map(lambda x: x * 2, 2, deterministic=True),
    )
    seen.errors(
        lambda: D.range(3).map(lambda x: object()),
        lambda: D.range(3).map(lambda x, y: x),
        lambda: D.range(3).filter(lambda x: x),
        every(lambda: D.range(3).map(lambda x: x, num_parallel_calls=0)),
        every(lambda: D.range(3).map(lambda x: x, num_parallel_calls=-5)),
        lambda: D.range(5).scan(tf.constant(0, tf.int64), lambda s, x: s),
        lambda: D.range(5).scan(0, lambda s, x: (s + 1.5, x)),
        every(lambda: D.range(2).map(raising(ValueError("no")))),
        every(lambda: D.range(2).map(raising(StopIteration("no")))),
        every(lambda: D.range(2).map(raising(KeyError("no")))),
        every(lambda: D.range(2).map(raising(NotImplementedError("no")))),
        lambda: D.range(3).apply(lambda d: 3),
    )


@case
def interleaving(tf, seen):
    D = tf.data.Dataset
    f = lambda x: D.from_tensors(x).repeat(x)
    ds = D.from_tensor_slices(np.array([4, 5, 6, 2, 3], np.int64)).repeat(2)
    for cycle, block in ((1, 1), (2, 1), (2, 3), (3, 2), (7, 1), (5, 5)):
        seen(ds.interleave(f, cycle, block))
        seen(ds.interleave(f, cycle, block, num_parallel_calls=min(2, cycle), deterministic=True))
        sloppy = ds.interleave(
            f, cycle, block, num_parallel_calls=min(2, cycle), deterministic=False
        )
        seen.values(sorted(int(x) for x in sloppy))
    seen(D.range(4).interleave(lambda x: failing_at(tf, D.range(x, x + 3), 2), cycle_length=2))
    seen.errors(
        every(lambda: D.range(3).interleave(f, cycle_length=0)),
        every(lambda: D.range(3).interleave(f, cycle_length=2, block_length=0)),
    )


@case
def windows(tf, seen):
    D = tf.data.Dataset
    for a in (
        (3, None, 1, False),
        (3, 1, 1, True),
        (3, 2, 2, False),
        (2, 5, 1, False),
        (10, None, 1, False),
        (10, None, 1, True),
        (3, 2, 2, True),
    ):
        ds = D.range(8).window(*a)
        seen.values(seen.elements(ds), ds.cardinality())
    seen(D.range(6).window(3, 1, 1, True).flat_map(lambda w: w.batch(3)))
    seen.values(seen.elements(D.range(4).map(lambda x: {"a": x, "b": (x, x)}).window(2)))
    seen.errors(
        *[every(lambda a=a: D.range(3).window(*a)) for a in ((0, 1, 1), (1, 0, 1), (1, 1, 0))]
    )


@case
def caching(tf, seen):
    D, folder = tf.data.Dataset, tempfile.mkdtemp()
    ds = D.range(5).map(lambda x: x + 0).cache()
    seen(ds.take(2), ds)
    unread = D.range(5).cache(folder + "/unread")
    iterator = iter(unread)
    next(iterator)
    seen.errors(every(lambda: unread))  # the lock file of the other iterator is there
    del iterator
    whole = D.range(5).cache(folder + "/whole")
    seen(whole, whole)
    seen.values(seen.elements(D.range(9).cache(folder + "/whole")))
    texts = D.from_tensor_slices((["a", "bb"], [1.5, 2.5])).cache(folder + "/texts")
    seen(texts, texts)
    seen.errors(every(lambda: D.range(3).cache(folder + "/nothing/there")))


@case
def grouping(tf, seen):
    D, ds = tf.data.Dataset, lengths(tf, 12)
    size = lambda x: tf.shape(x)[0]
    seen(D.range(10).group_by_window(lambda x: x % 3, lambda k, g: g.batch(2), 2))
    seen(
        D.range(10).group_by_window(
            lambda x: x % 2, lambda k, g: g.batch(3), window_size_func=lambda k: k + 2
        )
    )
    seen(D.range(10).group_by_window(lambda x: x % 2, lambda k, g: D.range(0), 3))
    seen(ds.bucket_by_sequence_length(size, [4, 8], [2, 2, 2]))
    seen(ds.take(7).bucket_by_sequence_length(size, [4, 9], [2, 2, 2], pad_to_bucket_boundary=True))
    seen(ds.bucket_by_sequence_length(size, [4, 8], [2, 2, 2], drop_remainder=True))
    seen.errors(
        every(lambda: D.range(10).group_by_window(lambda x: x % 2, lambda k, g: g.batch(3), 0)),
        lambda: D.range(10).group_by_window(
            lambda x: tf.cast(x, tf.int32), lambda k, g: g.batch(3), 2
        ),
        lambda: D.range(10).group_by_window(lambda x: x, lambda k, g: k, 2),
        lambda: D.range(10).group_by_window(
            lambda x: x, lambda k, g: g, 2, window_size_func=lambda k: k
        ),
        lambda: ds.bucket_by_sequence_length(size, [4, 8], [2, 2]),
    )


@case
def reducing(tf, seen):
    D = tf.data.Dataset
    seen.values(
        D.range(5).reduce(np.int64(0), lambda s, x: s + x),
        D.range(0).reduce(np.int64(7), lambda s, x: s + x),
    )
    seen.values(D.range(5).reduce((np.int64(0), 0.0), lambda s, x: (s[0] + x, s[1] + 1.0)))
    seen.values(D.range(3).reduce(tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0)))
    seen.values(D.range(1).get_single_element())
    seen.errors(
        lambda: D.range(5).reduce(0, lambda s, x: 1.5),
        lambda: D.range(5).get_single_element(),
        lambda: D.range(0).get_single_element(),
    )


def yielding(*values):
    def generator():
        for value in values:
            if isinstance(value, Exception):
                raise value
            yield value

    return generator


@case
def generators(tf, seen):
    D, S, g = tf.data.Dataset, tf.TensorSpec, yielding
    one = lambda *values, dtype=tf.int64, shape=(): D.from_generator(
        g(*values), output_signature=S(shape, dtype)
    )
    seen(one(1, 2), one(1, ValueError("x"), 3), one(1, 2.5, 3, dtype=tf.int32), one(1, "a", 3))
    seen(
        one([1, 2], [1], [3, 4], shape=(2,)),
        one(1, 2, 3, 4, 5).batch(2),
        one(True, False, dtype=tf.bool).batch(5),
    )
    seen(
        one(1, 2.5, dtype=tf.float32).batch(5),
        one([1, 2], [1], [3, 4], [5, 6], shape=(None,)).batch(2),
    )
    seen(one(np.float64(1), np.arange(2), 3, shape=None).batch(2), one(1, 2, "a", 4, 5, 6).batch(2))
    seen(D.from_generator(g((1, 2), (3,)), output_signature=(S((), tf.int64), S((), tf.int64))))
    seen(
        D.from_generator(g([1, 2], [1], [3, 4]), tf.int64),
        D.from_generator(lambda n: range(n), tf.int64, args=(3,)),
    )
    seen(
        D.from_generator(g("a", b"b", "ü"), tf.string),
        D.from_generator(g("a", "b"), tf.string, []).batch(2),
    )
    seen(
        D.from_generator(
            g({"a": 1, "b": "x"}), output_signature={"a": S((), tf.int64), "b": S((), tf.string)}
        )
    )
    seen.specs(D.from_generator(g(1), (tf.int32, tf.string), ([], [None])))
    seen.errors(lambda: D.from_generator([1], tf.int64), lambda: D.from_generator(g(1)))


@case
def cardinalities(tf, seen):
    D, E = tf.data.Dataset, tf.data.experimental
    some = lambda n: D.range(n).filter(lambda x: True)
    seen.values(
        *[
            E.cardinality(d)
            for d in (
                D.range(3),
                D.range(3).repeat(),
                some(3),
                D.range(3).map(lambda x: x),
                D.range(3).flat_map(lambda x: D.range(x)),
                D.range(3).interleave(lambda x: D.range(x), 2),
                D.range(5).cache(),
                D.range(5).shuffle(2),
                D.range(5).padded_batch(2, []),
                some(3).apply(E.assert_cardinality(42)),
            )
        ]
    )
    seen(some(3).apply(E.assert_cardinality(3)), some(2).apply(E.assert_cardinality(3)))
    seen.values(seen.elements(some(5).apply(E.assert_cardinality(3)))[:4])
    seen.values(len(D.range(3)))
    seen.errors(lambda: len(some(3)), lambda: len(D.range(3).repeat()))


@case
def csv_files(tf, seen):
    E, folder = tf.data.experimental, tempfile.mkdtemp()

    def file(rows, end="\n"):
        name = f"{folder}/{len(os.listdir(folder))}.csv"
        with open(name, "wb") as f:
            f.write(end.join(rows).encode())
        return name

    def read(rows, defaults, end="\n", **options):
        seen(E.CsvDataset(file(rows, end), defaults, **options))

    for end in ("\n", "\r\n", "\r"):
        read(['1,"a\nb"', '2,"c,d"', ""], [[0], [""]], end)
    read(["1,2,3,4", "5,6,7,8"], [[0]] * 4)
    read([",,,", "1,1,1,", ",2,2,2"], [[0]] * 4)
    for rows in (['1,2"3,4', "5,6,7"], ['"a"b","c","d"', "e,f,g"], ['"a","b","c', "d"]):
        read(rows, [[""]] * 3)
    read(['1,2"3,4'], [[""]] * 3, use_quote_delim=False)
    for rows in (["0,"], ["0,1,2"], ["1,2", "0", "3,4"]):
        read(rows, [[]] * 2)
    read(["a,b", "1,2"], [[0]] * 2, header=True)
    read([], [[0]] * 2, header=True)
    for rows in (["", "1,2"], [""]):
        read(rows, [[""]] * 2)
    read(["0", "", "2"], [["NA"]])
    read(["1.0,2.0", "3,4"], [tf.float32, [0.0]])
    read(["1,NA", "NA,2"], [[7]] * 2, na_value="NA")
    read(["1,2,3,4", '"5","6","7","8"'], [[""]] * 2, select_cols=[1, 2])
    read(["1,2"], [[""]] * 2, select_cols=[1, 4])
    read(["1,2,3", "5,6,7"], [[""]], exclude_cols=[1, 2])
    read(["x,2", "3,4", "99999999999,5", "6,7"], [[0]] * 2)
    read(["1:2"], [[0]] * 2, field_delim=":")
    read(['a,b,"""c""\n0","d\ne"', "f,g,h,i"], [[""]] * 4)
    seen(E.CsvDataset(file(["1,2", "3,4", "x,5", "6,7", "8,9", "10,11"]), [[0]] * 2).batch(2))
    name = file(["a,b,c", "1,2.5,x", "2,3.5,y", "3,,z"])
    once = {"num_epochs": 1, "shuffle": False}
    seen(
        E.make_csv_dataset(name, 2, **once),
        E.make_csv_dataset(name, 2, label_name="b", select_columns=["a", "b"], **once),
    )
    defaults = [tf.string, tf.float32, [""]]
    seen(
        E.make_csv_dataset(name, 2, column_names=["p", "q", "r"], column_defaults=defaults, **once)
    )
    seen.specs(E.make_csv_dataset(name, 2, shuffle=False))
    seen.errors(
        lambda: E.make_csv_dataset(name, 2, label_name="zz"),
        lambda: E.make_csv_dataset(folder + "/nothing*", 2),
        lambda: E.make_csv_dataset(name, 2, select_columns=["nope"]),
    )


@case
def files_and_saving(tf, seen):
    D, E, folder = tf.data.Dataset, tf.data.experimental, tempfile.mkdtemp()
    for name in "cab":
        open(f"{folder}/{name}.txt", "w").close()
    base = lambda ds: [os.path.basename(x).decode() for x in ds.as_numpy_iterator()]
    seen.values(base(D.list_files(folder + "/*.txt", shuffle=False)))
    seen.values(base(D.list_files([folder + "/a*", folder + "/*.txt"], shuffle=False)))
    tf.random.set_seed(5)
    seen.values(*[base(D.list_files(folder + "/*.txt", seed=3).repeat(2)) for _ in range(2)])
    seen.errors(lambda: D.list_files(folder + "/zz*"))
    ds = D.range(4).map(lambda x: (x, tf.strings.as_string(x)))
    ds.save(folder + "/saved")
    seen.values(seen.elements(D.load(folder + "/saved")))
    seen.specs(D.load(folder + "/saved"))
    kept = D.range(4).snapshot(folder + "/kept")
    seen.values(seen.elements(kept), seen.elements(kept))
    E.TFRecordWriter(folder + "/w.tfrecord").write(D.from_tensor_slices(["a", "bc"]))
    seen.values(seen.elements(tf.data.TFRecordDataset(folder + "/w.tfrecord")))
    seen.errors(lambda: E.TFRecordWriter(folder + "/w.tfrecord").write(D.range(3)))


@case
def iterators_and_options(tf, seen):
    D, E = tf.data.Dataset, tf.data.experimental
    some, none = E.get_next_as_optional(iter(D.range(1))), E.get_next_as_optional(iter(D.range(0)))
    seen.values(some.has_value(), some.get_value(), none.has_value())
    iterator = iter(D.range(1))
    next(iterator)
    seen.errors(none.get_value, lambda: next(iterator), iterator.get_next, lambda: next(iterator))
    options = tf.data.Options()
    options.deterministic = False
    ds = D.range(3).with_options(options)
    seen.values(
        ds.options().deterministic,
        ds.map(lambda x: x).options().deterministic,
        D.range(1).options().deterministic,
    )
    seen.errors(lambda: setattr(options, "nothing", 3))
    seen.values(list(D.range(3).as_numpy_iterator()), bool(D.range(0)))
    seen(E.dense_to_sparse_batch(2, [4])(lengths(tf, 5)))
    tf.random.set_seed(9)
    for again in (True, False):
        ds = D.random(seed=4, rerandomize_each_iteration=again).take(3)
        seen.values(seen.elements(ds) == seen.elements(ds))


@case
def elements_that_fail_within_windows(tf, seen):
    """An error counts for the windows that take its element; the next window goes on."""
    numbers = np.float32([1, np.nan, 2, np.nan, 3, 4, np.nan, 5])

    def windows(*sizes, drop=False):
        checked = tf.data.Dataset.from_tensor_slices(numbers).map(
            lambda x: tf.debugging.check_numerics(x, "x")
        )
        return checked.window(*sizes, drop_remainder=drop).flat_map(lambda w: w.batch(4))

    seen(windows(2, 2, 2, drop=True), windows(2, 2, 2), windows(1), windows(2), windows(2, 1))
    seen(windows(3, 2, 1), windows(2, 3, 2, drop=True))


@case
def csv_defaults_and_keys(tf, seen):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.csv")
        with open(path, "w") as file:
            file.write("1,2\n3,4\n")
        read = tf.data.experimental.CsvDataset
        seen.errors(
            every(lambda: read(path, [np.zeros((1, 1), np.int64)] * 2)),
            every(lambda: read(path, [np.zeros(2, np.int64)] * 2)),
            every(lambda: read(path, [np.int64(0)] * 2)),
            every(lambda: read(path, [tf.int64] * 2, buffer_size=0)),
            every(lambda: read(path, [tf.int64] * 2, buffer_size=-1)),
            every(lambda: read(path, [tf.int64] * 2, buffer_size=1)),
        )
    numbers = tf.data.Dataset.range(4)
    sums = tf.data.experimental.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)

    def by_key(key):
        return every(lambda: numbers.apply(tf.data.experimental.group_by_reducer(key, sums)))

    seen.errors(by_key(lambda _: "a"), by_key(lambda _: 0.5))
    seen.errors(by_key(lambda _: np.int64(1)), by_key(lambda x: x % 2))


def observations(tf, name):
    seen = Seen(tf)
    CASES[name](tf, seen)
    return seen.found


if __name__ == "__main__":
    import tensorflow as tf

    golden = {name: observations(tf, name) for name in CASES}
    where = os.path.join(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "data_behaviour.json"
    )
    with open(where, "w") as f:
        f.write(
            "{\n"
            + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in golden.items())
            + "\n}\n"
        )
    sys.stdout.write(f"{sum(map(len, golden.values()))} observations written to {where}\n")
