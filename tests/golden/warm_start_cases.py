"""Variables from checkpoints: warm_start with vocabularies, load_and_remap_matrix,
init_from_checkpoint, list_variables, load_variable, load_checkpoint, one row each.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import os
import shutil
import tempfile

import numpy as np


def _rows(tf, table):
    """{name: what its function gives, or the error's class}, each in a graph and folder."""
    found = {}
    for name, run in sorted(table.items()):
        folder = tempfile.mkdtemp()
        try:
            with tf.Graph().as_default():
                tf.set_random_seed(1)
                found[name] = run(folder)
        except Exception as error:  # the error is what is compared
            found[name] = type(error).__name__
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def _file(folder, name, words):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write("\n".join(words) + "\n")
    return path


def _saved(tf, folder, parts=1, name="w", columns=2):
    """A checkpoint with a matrix of 4 words, a vector and a step."""
    value = np.arange(4 * columns, dtype=np.float32).reshape(4, columns) + 1
    with tf.Graph().as_default(), tf.Session() as sess:
        partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
        with tf.variable_scope("", partitioner=partitioner):
            tf.get_variable(name, [4, columns], initializer=tf.constant_initializer(value))
        tf.get_variable("b", initializer=np.float32([7.0, 8.0]))
        tf.get_variable("scope/v", initializer=np.float32(9.0))
        tf.get_variable("scope/deep/u", initializer=np.float32(10.0))
        tf.train.get_or_create_global_step()
        sess.run(tf.global_variables_initializer())
        return tf.train.Saver().save(sess, os.path.join(folder, "m"))


def _values(tf):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return {v.name: sess.run(v).tolist() for v in tf.global_variables()}


OLD, NEW = ["a", "b", "c", "d"], ["c", "new", "a", "b", "other"]


def vocabularies(tf):
    """warm_start with VocabInfo."""

    def started(rows=5, oov=0, old_size=-1, axis=0, parts=1, saved_parts=1, new_size=None,
                old_name=None, wanted=".*", name="w", backup=True, resource=False):  # fmt: skip
        def run(folder):
            path = _saved(tf, folder, saved_parts, old_name or "w", 4 if axis else 2)
            size = rows if new_size is None else new_size
            shape = [4, size + oov] if axis else [size + oov, 2]
            partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
            with tf.variable_scope("", partitioner=partitioner, use_resource=resource):
                tf.get_variable("w", shape, initializer=tf.constant_initializer(-5.0))
            tf.get_variable("b", initializer=np.float32([0.0, 0.0]))
            info = tf.train.VocabInfo(
                new_vocab=_file(folder, "new", NEW), new_vocab_size=size, num_oov_buckets=oov,
                old_vocab=_file(folder, "old", OLD), old_vocab_size=old_size, axis=axis,
                backup_initializer=tf.ones_initializer() if backup else None,
            )  # fmt: skip
            earlier = {name: old_name} if old_name else None
            tf.train.warm_start(path, wanted, {name: info}, earlier)
            return _values(tf)

        return run

    return _rows(tf, {
        "rows": started(), "rows, folder zeros": started(backup=False), "fewer": started(rows=3),
        "buckets": started(oov=2), "old size": started(old_size=2), "columns": started(axis=1),
        "columns and buckets": started(axis=1, oov=1), "parts": started(parts=3),
        "parts and buckets": started(parts=2, oov=3), "parts of columns": started(axis=1, parts=2),
        "saved in parts": started(saved_parts=2), "both in parts": started(parts=2, saved_parts=3),
        "renamed": started(old_name="other"), "none but vocabularies": started(wanted=None),
        "too many words": started(new_size=9), "axis 2": started(axis=2),
        "missing variable": started(name="x"), "resource": started(resource=True),
        "list": started(wanted=["w"]),
    })  # fmt: skip


def starts(tf):
    """warm_start without vocabularies."""

    def started(make, *args, **kinds):
        def run(folder):
            path = _saved(tf, folder)
            variables = make()
            given = [a(variables) if callable(a) else a for a in args]
            tf.train.warm_start(kinds.pop("path", lambda p: p)(path), *given, **kinds)
            return _values(tf)

        return run

    def both():
        return [tf.get_variable("b", initializer=np.float32([0.0, 0.0])),
                tf.get_variable("scope/v", initializer=np.float32(0.0)),
                tf.get_variable("fixed", initializer=np.float32(0.5), trainable=False)]  # fmt: skip

    def shaped():
        return [tf.get_variable("b", initializer=np.float32([0.0, 0.0, 0.0]))]

    def other():
        return [tf.get_variable("none", initializer=np.float32([0.0, 0.0]))]

    return _rows(tf, {
        "all": started(both), "regular expression": started(both, ".*v"),
        "names": started(both, ["scope", "b"]), "variables": started(both, lambda v: v[:1]),
        "none": started(both, None), "number": started(both, 3), "mixed": started(both, ["b", 3]),
        "other name": started(other, ".*", None, {"none": "b"}),
        "unused name": started(both, ".*", None, {"x": "b"}),
        "folder": started(both, path=os.path.dirname), "other shape": started(shaped),
        "missing": started(other), "no checkpoint": started(both, path=lambda p: p + "x"),
    })  # fmt: skip


def initial_values(tf):
    """init_from_checkpoint."""

    def started(make, mapping, path=lambda p: p):
        def run(folder):
            saved = _saved(tf, folder)
            variables = make()
            tf.train.init_from_checkpoint(
                path(saved), mapping(variables) if callable(mapping) else mapping
            )
            return _values(tf)

        return run

    def make(scope="scope", resource=False, parts=None):
        def run():
            with tf.variable_scope("", use_resource=resource):
                found = [tf.get_variable("b", initializer=np.float32([0.0, 0.0]))]
                with tf.variable_scope(scope):
                    found.append(tf.get_variable("v", initializer=np.float32(0.0)))
                    found.append(tf.get_variable("deep/u", initializer=np.float32(0.0)))
                with tf.variable_scope("p", partitioner=parts):
                    found.append(tf.get_variable("w", [4, 2]))
            return found

        return run

    halves = tf.fixed_size_partitioner(2)
    return _rows(tf, {
        "variable": started(make(), lambda v: {"b": v[0]}),
        "name": started(make(), {"b": "b"}),
        "scope": started(make(), {"scope/": "scope/"}),
        "other scope": started(make("new"), {"scope/": "new/"}),
        "scope without a slash": started(make(), {"scope": "scope/"}),
        "scope to a name": started(make(), {"scope/": "scope"}),
        "root": started(make(), {"scope/deep/": "scope/deep/"}),
        "parts": started(make(parts=halves), lambda v: {"w": list(v[3])}),
        "partitioned by name": started(make(parts=halves), {"w": "p/w"}),
        "resource": started(make(resource=True), {"b": "b", "scope/": "scope/"}),
        "missing tensor": started(make(), {"none": "b"}),
        "missing variable": started(make(), {"b": "none"}),
        "other shape": started(make(), {"w": "b"}),
        "wrong value": started(make(), {"b": 3}),
        "folder": started(make(), {"b": "b"}, os.path.dirname),
        "no checkpoint": started(make(), {"b": "b"}, lambda p: p + "x"),
        "empty": started(make(), {}),
    })  # fmt: skip


def readers(tf):
    """list_variables, load_variable, load_checkpoint, NewCheckpointReader."""

    def read(call):
        return lambda folder: call(_saved(tf, folder, parts=2))

    def reader(call, make=tf.train.load_checkpoint):
        return read(lambda path: call(make(path)))

    return _rows(tf, {
        "list": read(tf.train.list_variables),
        "list of a folder": read(lambda p: tf.train.list_variables(os.path.dirname(p))),
        "list of nothing": read(lambda p: tf.train.list_variables(p + "x")),
        "load": read(lambda p: tf.train.load_variable(p, "b")),
        "load with a port": read(lambda p: tf.train.load_variable(p, "b:0")),
        "load parts": read(lambda p: tf.train.load_variable(p, "w")),
        "load nothing": read(lambda p: tf.train.load_variable(p, "none")),
        "load bytes": read(lambda p: tf.train.load_variable(p, b"b")),
        "shapes": reader(lambda r: r.get_variable_to_shape_map()),
        "types": reader(lambda r: {k: v.name for k, v in r.get_variable_to_dtype_map().items()}),
        "has": reader(lambda r: [r.has_tensor("b"), r.has_tensor("none")]),
        "tensor": reader(lambda r: r.get_tensor("scope/v").dtype.name),
        "missing": reader(lambda r: r.get_tensor("none")),
        "new reader": reader(lambda r: r.get_tensor("b"), tf.train.NewCheckpointReader),
        "reader of nothing": lambda folder: tf.train.NewCheckpointReader(folder + "/none"),
        "debug text": reader(lambda r: r.debug_string().decode().split("\n")),
    })  # fmt: skip


def remapped(tf):
    """The initializers of tf.contrib.framework that follow vocabularies."""
    framework = tf.contrib.framework

    def variable(make, shape, name="w", parts=None):
        def run(folder):
            path = _saved(tf, folder)
            old, new = _file(folder, "old", OLD), _file(folder, "new", NEW)
            with tf.variable_scope("", partitioner=parts and tf.fixed_size_partitioner(parts)):
                tf.get_variable(name, shape, initializer=make(path, old, new))
            return _values(tf)

        return run

    def counting(shape, dtype=tf.float32, partition_info=None):
        return tf.reshape(tf.to_float(tf.range(tf.reduce_prod(shape))) + 100, shape)

    def matrix(rows=5, columns=2, **kinds):
        def make(path, old, new):
            files = {"old_row_vocab_file": old, "new_row_vocab_file": new}
            files.update(initializer=counting)
            files.update(kinds)
            return framework.load_and_remap_matrix_initializer(path, "w", rows, columns, **files)

        return make

    def with_columns(**kinds):
        def make(path, old, new):
            folder = os.path.dirname(old)
            return matrix(
                columns=3, old_col_vocab_file=_file(folder, "two", ["x", "y"]),
                new_col_vocab_file=_file(folder, "three", ["y", "z", "x"]), **kinds
            )(path, old, new)  # fmt: skip

        return make

    rowless = {"old_row_vocab_file": None, "new_row_vocab_file": None}
    return _rows(tf, {
        "rows": variable(matrix(), [5, 2]),
        "parts": variable(matrix(), [5, 2], parts=2),
        "parts and buckets": variable(matrix(num_row_oov_buckets=4), [9, 2], parts=3),
        "buckets": variable(matrix(num_row_oov_buckets=2, num_col_oov_buckets=1), [7, 3]),
        "columns": variable(with_columns(), [5, 3]),
        "columns and buckets": variable(with_columns(num_col_oov_buckets=2), [5, 5]),
        "columns alone": variable(with_columns(rows=4, **rowless), [4, 3]),
        "nothing": variable(matrix(**rowless), [5, 2]),
        "one of two": variable(matrix(old_row_vocab_file=None), [5, 2]),
        "negative": variable(matrix(num_row_oov_buckets=-1), [4, 2]),
        "in pieces": variable(matrix(max_rows_in_memory=1), [5, 2]),
        "old size": variable(matrix(old_row_vocab_size=1), [5, 2]),
        "zeros": variable(matrix(initializer=None), [5, 2]),
        "other columns": variable(matrix(), [5, 3]),
        "more rows": variable(matrix(), [7, 2]),
        "a vector": variable(matrix(), [5]),
        "no function": variable(matrix(initializer=3), [5, 2]),
        "missing words": variable(matrix(rows=9), [9, 2]),
        "missing file": variable(matrix(new_row_vocab_file="/none"), [5, 2]),
        "embedding": variable(lambda p, o, n: framework.load_embedding_initializer(
            p, "w", 5, 2, o, n, num_oov_buckets=1, initializer=counting), [6, 2]),
    })  # fmt: skip
