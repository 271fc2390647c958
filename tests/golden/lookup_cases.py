"""Lookup tables. Run on TF 1.15 (make_cases.py) and on Headrace."""

import os
import tempfile

import numpy as np

_WORDS = "emerson\nlake\r\npalmer\n"
_COLUMNS = "a 1 x\nb 2 y\nc 3 z\n"


def _file(text):
    handle, path = tempfile.mkstemp(suffix=".txt")
    with os.fdopen(handle, "w", newline="") as f:
        f.write(text)
    return path


def _names(tf, table):
    graph = tf.get_default_graph()
    types = ("HashTable", "LookupTable", "InitializeTable", "MutableHash", "MutableDense")
    return {
        "name": table.name,
        "ops": [[o.name, o.type] for o in graph.get_operations() if o.type.startswith(types)],
        "tables": [o.name for o in tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)],
        "assets": [o.name for o in tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)],
        "types": [table.key_dtype.name, table.value_dtype.name],
    }


def _found(tf, table, *tensors):
    structure = _names(tf, table)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        return structure, [
            [t.shape.as_list() if hasattr(t, "shape") else None, sess.run(t)] for t in tensors
        ]


def hash_table_of_tensors(tf):
    lookup = tf.contrib.lookup
    init = lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string, tf.int64)
    table = lookup.HashTable(init, -7)
    keys = tf.constant([["a", "c"], ["b", "a"]])
    return _found(tf, table, table.lookup(keys), table.size(), table.lookup(tf.constant("b")))


def hash_table_numbers(tf):
    init = tf.lookup.KeyValueTensorInitializer(
        tf.constant([3, 5], tf.int64), tf.constant([0.5, 1.5])
    )
    table = tf.lookup.StaticHashTable(init, 9.0, name="numbers")
    keys = tf.constant([5, 4, 3], tf.int64)
    exported = table.export()
    with tf.Session() as sess:
        sess.run(table.initializer)
        pairs = sorted(zip(*sess.run(exported)))
    return _found(tf, table, table.lookup(keys)), pairs, [t.shape.as_list() for t in exported]


def hash_table_sparse_keys(tf):
    table = tf.contrib.lookup.index_table_from_tensor(tf.constant(["x", "y"]), default_value=7)
    keys = tf.SparseTensor([[0, 0], [1, 2]], ["y", "q"], [2, 3])
    found = table.lookup(keys)
    with tf.Session() as sess:
        tf.tables_initializer().run()
        return sess.run(found)


def index_from_tensor_with_buckets(tf):
    table = tf.contrib.lookup.index_table_from_tensor(
        ["emerson", "lake", "palmer"], num_oov_buckets=3
    )
    keys = tf.constant(["lake", "emerson", "who", "queen", ""])
    return _found(tf, table, table.lookup(keys), table.size())


def index_from_tensor_strong_hash_and_integers(tf):
    lookup = tf.contrib.lookup
    strong = lookup.index_table_from_tensor(
        ["a"], num_oov_buckets=50, hasher_spec=lookup.StrongHashSpec([7, 8])
    )
    numbers = lookup.index_table_from_tensor([42, 1, -1000], num_oov_buckets=5, dtype=tf.int32)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        return sess.run(
            [
                strong.lookup(tf.constant(["a", "b", "c"])),
                numbers.lookup(tf.constant([1, 42, 9, 8])),
            ]
        )


def index_from_file(tf):
    table = tf.contrib.lookup.index_table_from_file(_file(_WORDS), num_oov_buckets=1)
    keys = tf.constant(["palmer", "lake", "who"])
    return _found(tf, table, table.lookup(keys), table.size())


def index_from_file_part(tf):
    table = tf.contrib.lookup.index_table_from_file(_file(_WORDS), vocab_size=2, default_value=-9)
    return _found(tf, table, table.lookup(tf.constant(["palmer", "lake", "who"])), table.size())


def strings_from_file_and_tensor(tf):
    a = tf.contrib.lookup.index_to_string_table_from_file(_file(_WORDS))
    b = tf.contrib.lookup.index_to_string_table_from_tensor(["p", "q"], default_value="none")
    keys = tf.constant([0, 2, 7], tf.int64)
    return _found(tf, a, a.lookup(keys), b.lookup(keys))


def columns_of_files(tf):
    lookup = tf.contrib.lookup
    path = _file(_COLUMNS)
    first = lookup.HashTable(
        lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1, delimiter=" "), -1
    )
    second = lookup.HashTable(
        lookup.TextFileInitializer(path, tf.int64, 1, tf.string, 2, delimiter=" "), "?"
    )
    third = lookup.index_table_from_file(path, key_column_index=2, delimiter=" ")
    keys = tf.constant(["b", "z", "y"])
    return _found(
        tf,
        first,
        first.lookup(keys),
        second.lookup(tf.constant([3, 9], tf.int64)),
        third.lookup(keys),
    )


def old_functions(tf):
    words = tf.constant(["hello", "there"])
    a = tf.contrib.lookup.index_to_string(tf.constant([1, 5], tf.int64), words, default_value="U")
    b = tf.contrib.lookup.string_to_index(tf.constant(["there", "x"]), words)
    with tf.Session() as sess:
        tf.initialize_all_tables().run()
        return sess.run([a, b])


def vocabulary_table(tf):
    init = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    table = tf.lookup.StaticVocabularyTable(init, num_oov_buckets=4)
    none = tf.lookup.StaticVocabularyTable(None, num_oov_buckets=4, name="only")
    keys = tf.constant(["b", "zz", "yy"])
    return _found(tf, table, table.lookup(keys), table.size(), none.lookup(keys), none.size())


def mutable_table(tf):
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    vectors = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0], name="vectors")
    keys = tf.constant(["a", "b", "c"])
    numbers = tf.constant([1, 2], tf.int64)
    found = [_names(tf, table)]
    with tf.Session() as sess:
        sess.run(table.insert(keys, tf.constant([5, 6, 7], tf.int64)))
        sess.run(table.insert(keys[:1], tf.constant([9], tf.int64)))
        found.append(sess.run([table.lookup(tf.constant(["c", "a", "z"])), table.size()]))
        sess.run(table.remove(tf.constant(["b", "q"])))
        found.append(sorted(zip(*sess.run(table.export()))))
        sess.run(vectors.insert(numbers, [[1.0, 2.0], [3.0, 4.0]]))
        found.append(sess.run(vectors.lookup([[2, 8]])))
        found.append(sorted(sess.run(vectors.export())[0].tolist()))
    with tf.Session() as sess:
        found.append(sess.run(table.size()))
    return found


def dense_table(tf):
    table = tf.contrib.lookup.MutableDenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-2
    )
    pairs = tf.contrib.lookup.MutableDenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=[0, 0], deleted_key=[-1, -1]
    )
    one = tf.constant([11, 12], tf.int64)
    found = [_names(tf, table)]
    with tf.Session() as sess:
        sess.run(table.insert(one, one + 1))
        found.append(sess.run([table.lookup(tf.constant([12, 99], tf.int64)), table.size()]))
        sess.run(pairs.insert(tf.constant([[1, 2], [3, 4]], tf.int64), one))
        found.append(sess.run(pairs.lookup(tf.constant([[3, 4], [5, 6]], tf.int64))))
        try:
            sess.run(table.lookup(tf.constant([0], tf.int64)))
        except tf.errors.InvalidArgumentError:
            found.append("refused")
    return found


def dense_buckets(tf):
    """Exports have a row for each bucket, with entries where TensorFlow's hash looks for them."""
    given = {
        "numbers": (tf.int64, -100, -101, [1, 2, 9, 17, -3, 2**40 + 1], 16),
        "small": (tf.int32, -100, -101, [1, 2, 9, 17, -3], 8),
        "words": (tf.string, "", "x", ["a", "hello", "bc", "a longer word"], 8),
        "pairs_of_words": (tf.string, ["", ""], ["x", "x"], [["a", "b"], ["hello", "c"]], 8),
        "pairs": (tf.int64, [-1, -1], [-2, -2], [[1, 2], [3, 4], [5, -6]], 8),
        "triples": (tf.int32, [-1, -1, 0], [-2, -2, 0], [[1, 2, 7], [3, 4, 7], [5, -6, 7]], 8),
    }
    found = {}
    with tf.Session() as sess:
        for name, (kind, empty, deleted, keys, buckets) in given.items():
            for width, default in (("one", 0.5), ("two", [0.5, 1.5])):
                table = tf.contrib.lookup.MutableDenseHashTable(
                    kind, tf.float32, default, empty, deleted, initial_num_buckets=buckets
                )
                shape = [len(keys)] + ([2] if width == "two" else [])
                values = np.arange(np.prod(shape)).astype(np.float32).reshape(shape) + 1
                all_keys = tf.constant(keys, kind)
                sess.run(table.insert(all_keys, tf.constant(values)))
                exported = sess.run(table.export())
                saver = tf.train.Saver()
                path = saver.save(sess, os.path.join(tempfile.mkdtemp(), "m"))
                sess.run(table.insert(all_keys, tf.zeros(shape)))
                saver.restore(sess, path)
                found[name + "_" + width] = [
                    [list(part.shape) for part in exported],
                    exported,
                    sess.run(table.lookup(all_keys)),
                ]
    return found


def table_errors(tf):
    lookup = tf.contrib.lookup
    found = []

    def attempt(build):
        with tf.Graph().as_default(), tf.Session() as sess:
            try:
                sess.run(build())
                found.append("ran")
            except Exception as error:
                found.append(type(error).__name__)

    def made(keys, values, default=-1, **kwargs):
        init = lookup.KeyValueTensorInitializer(keys, values, **kwargs)
        return lookup.HashTable(init, default)

    strings = tf.string
    attempt(lambda: made(["a"], tf.constant([1], tf.int64)).lookup(tf.constant(["a"])))
    attempt(lambda: made(["a", "a"], tf.constant([1, 2], tf.int64)).init)
    attempt(lambda: made(["a", "a"], tf.constant([1, 1], tf.int64)).init)
    attempt(lambda: made(["a"], tf.constant([1], tf.int64)).lookup(tf.constant([1])))
    attempt(lambda: made(["a"], tf.constant([1], tf.int64), default="no"))
    attempt(lambda: lookup.index_table_from_file("/no/such/file").initializer)
    attempt(lambda: lookup.index_table_from_file(_file(_WORDS), vocab_size=7).initializer)
    attempt(lambda: lookup.index_table_from_file(""))
    attempt(lambda: lookup.index_table_from_file("x", num_oov_buckets=-1))
    attempt(lambda: lookup.index_table_from_file("x", vocab_size=0))
    attempt(lambda: lookup.index_table_from_tensor([1.0]))
    attempt(lambda: lookup.TextFileInitializer("x", strings, -1, strings, 0))
    attempt(lambda: lookup.TextFileInitializer("x", strings, -3, strings, 0))
    attempt(lambda: lookup.StrongHashSpec([1]))
    attempt(lambda: tf.lookup.StaticVocabularyTable(None, 0))
    wide = _file(_WORDS)
    attempt(
        lambda: lookup.HashTable(lookup.TextFileInitializer(wide, strings, 5, tf.int64, -1), 0).init
    )
    return found


def table_in_dataset(tf):
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b"], default_value=9)
    dataset = tf.data.Dataset.from_tensor_slices(["b", "c", "a"]).map(table.lookup)
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    with tf.Session() as sess:
        sess.run([tf.tables_initializer()])
        sess.run(iterator.initializer)
        return [sess.run(element) for _ in range(3)]


def table_in_cond_and_loop(tf):
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b"], default_value=9)
    flag = tf.placeholder(tf.bool, [])
    x = tf.cond(flag, lambda: table.lookup(tf.constant(["b"])), lambda: tf.constant([5], tf.int64))
    mapped = tf.map_fn(table.lookup, tf.constant(["b", "a", "q"]), dtype=tf.int64)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        return [sess.run(x, {flag: v}) for v in (True, False)], sess.run(mapped)


def table_twice_initialized(tf):
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b"])
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        sess.run(tf.tables_initializer())
        first = sess.run(table.lookup(tf.constant(np.array(["a", "z"]))))
    with tf.Session() as sess:
        try:
            sess.run(table.size())
            return first, sess.run(table.lookup(tf.constant(["a"])))
        except tf.errors.FailedPreconditionError:
            return first, "not initialized"


def table_by_raw_ops(tf):
    raw = tf.raw_ops
    handle = raw.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="raw")
    keys = tf.constant([4, 6], tf.int64)
    fill = raw.InitializeTableV2(table_handle=handle, keys=keys, values=["four", "six"])
    found = raw.LookupTableFindV2(table_handle=handle, keys=keys + 2, default_value="none")
    with tf.Session() as sess:
        sess.run(fill)
        return sess.run([found, raw.LookupTableSizeV2(table_handle=handle)])
