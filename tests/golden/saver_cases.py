"""Every argument and method of ``tf.train.Saver``, one row each.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import os
import re
import shutil
import tempfile
import time

import numpy as np

from tests.golden.inner_paths import inner


def _said(error, folder):
    """Class and first line of an error, without what differs from run to run."""
    text = str(error).strip().split("\n")[0].replace(folder, "FOLDER")
    text = re.sub(r"0x[0-9a-f]+|_temp_[0-9a-f]+", "N", text)
    # NumPy says it in its own words, and a KeyError within a message is quoted or not
    told = isinstance(error, (ValueError, TypeError)) and not re.search("arrays can|Fetch", text)
    return [type(error).__name__, text if told else ""]


def _rows(tf, table):
    """{name: what its function gives, or the error it raises}, each in a graph and folder."""
    found = {}
    for name, run in sorted(table.items()):
        folder = tempfile.mkdtemp()
        try:
            with tf.Graph().as_default():
                tf.set_random_seed(1)
                found[name] = run(folder)
        except Exception as error:  # the error is what is compared
            found[name] = _said(error, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def _two(tf):
    a = tf.get_variable("a", initializer=np.float32([1.0, 2.0]))
    b = tf.get_variable("b", initializer=np.int64(7), use_resource=True)
    return a, b


def _files(folder):
    return sorted(
        re.sub("_temp_[0-9a-f]+", "_temp", os.path.relpath(os.path.join(at, f), folder))
        for at, _, names in os.walk(folder)
        for f in names
    )


def _stored(tf, path):
    return [[n, list(s)] for n, s in tf.train.list_variables(path)]


def _saved(tf, folder, listed, save=None, **options):
    """What a saver of ``listed`` writes."""
    saver = tf.train.Saver(listed, **options)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, os.path.join(folder, "m"), **(save or {}))
    return [os.path.relpath(path, folder), _stored(tf, path), _files(folder)]


def var_lists(tf):
    def forms(make):
        def run(folder):
            return _saved(tf, folder, make(*_two(tf)))

        return run

    def parts(make):
        def run(folder):
            p = tf.get_variable(
                "p", [4, 2], partitioner=tf.fixed_size_partitioner(2),
                initializer=tf.ones_initializer(),
            )  # fmt: skip
            return _saved(tf, folder, make(p))

        return run

    def table(make):
        def run(folder):
            t = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1, name="t")
            v = tf.get_variable("v", initializer=1.0)
            return _saved(tf, folder, make(t, v))

        return run

    return _rows(tf, {
        "none": forms(lambda a, b: None),
        "list": forms(lambda a, b: [a, b]),
        "tuple": forms(lambda a, b: (a, b)),
        "set": forms(lambda a, b: {a, b}),
        "one variable": forms(lambda a, b: a),
        "generator": forms(lambda a, b: (v for v in [a, b])),
        "empty list": forms(lambda a, b: []),
        "empty dict": forms(lambda a, b: {}),
        "dict": forms(lambda a, b: {"x": a, "y/z": b}),
        "dict of lists": forms(lambda a, b: {"x": [a]}),
        "dict with numbers": forms(lambda a, b: {1: a}),
        "dict of reads": forms(lambda a, b: {"x": a.value()}),
        "same twice": forms(lambda a, b: [a, a]),
        "dict, same twice": forms(lambda a, b: {"x": a, "y": a}),
        "resource twice": forms(lambda a, b: [b, b]),
        "tensor": forms(lambda a, b: [a + 1.0]),
        "text": forms(lambda a, b: ["a"]),
        "number": forms(lambda a, b: 3),
        "none in a list": forms(lambda a, b: [a, None]),
        "partitioned": parts(lambda p: [p]),
        "partitions": parts(lambda p: list(p)),
        "partitions by name": parts(lambda p: {"q": list(p)}),
        "partitioned by name": parts(lambda p: {"q": p}),
        "half of the partitions": parts(lambda p: [next(iter(p))]),
        "by default partitioned": parts(lambda p: None),
        "table and variable": table(lambda t, v: None),
        "table alone": table(lambda t, v: [t]),
        "saveable": table(lambda t, v: [t.saveable if hasattr(t, "saveable") else t, v]),
    })  # fmt: skip


def options(tf):
    """What ``save`` writes with each argument of the constructor and of ``save``."""

    def saved(save=None, **kinds):
        def run(folder):
            return _saved(tf, folder, list(_two(tf)), save, **kinds)

        return run

    def under(sub, **save):
        def run(folder):
            a, _ = _two(tf)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                path = tf.train.Saver([a]).save(sess, os.path.join(folder, sub), **save)
            return [path and os.path.relpath(path, folder), _files(folder)]

        return run

    def stepped(step):
        def run(folder):
            got = []
            a, b = _two(tf)
            saver = tf.train.Saver([a])
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                got.append(saver.save(sess, os.path.join(folder, "m"), global_step=step(b)))
            return os.path.relpath(got[0], folder)

        return run

    return _rows(tf, {
        "padded": saved({"global_step": 12}, pad_step_number=True),
        "sharded": saved(sharded=True),
        "sharded, step": saved({"global_step": 3}, sharded=True),
        "V1": saved(write_version=tf.train.SaverDef.V1),
        "V1 sharded": saved(write_version=tf.train.SaverDef.V1, sharded=True),
        "suffix": saved({"meta_graph_suffix": "mm"}),
        "no meta": saved({"write_meta_graph": False}),
        "no state": saved({"write_state": False}),
        "latest name": saved({"latest_filename": "newest"}),
        "latest with a folder": saved({"latest_filename": "x/newest"}),
        "latest collides": saved({"latest_filename": "m"}),
        "latest collides, sharded": saved({"latest_filename": "m"}, sharded=True),
        "latest collides, step": saved({"latest_filename": "m", "global_step": 1}),
        "strip": saved({"strip_default_attrs": True}),
        "file name": saved(filename="other"),
        "name": saved(name="keep"),
        "reshape": saved(reshape=True),
        "sequential": saved(restore_sequentially=True),
        "keep 0": saved(max_to_keep=0),
        "keep none": saved(max_to_keep=None),
        "keep -1": saved(max_to_keep=-1),
        "missing folder": under("no/where/m"),
        "a folder": under("m/"),
        "step 0": under("m", global_step=0),
        "negative step": under("m", global_step=-3),
        "text step": under("m", global_step="x"),
        "float step": under("m", global_step=2.0),
        "numpy step": under("m", global_step=np.int64(5)),
        "array step": under("m", global_step=np.array(5)),
        "step variable": stepped(lambda b: b),
        "step tensor": stepped(lambda b: b + 2),
        "step of float": stepped(lambda b: tf.constant(2.5)),
        "step of a vector": stepped(lambda b: tf.constant([2, 3])),
    })  # fmt: skip


def _definition(saver):
    d = saver.as_saver_def()
    return [
        d.filename_tensor_name, d.save_tensor_name, d.restore_op_name, d.max_to_keep, d.sharded,
        d.keep_checkpoint_every_n_hours, d.version,
    ]  # fmt: skip


def definitions(tf):
    """The SaverDef and the operations of each form."""

    def made(listed=None, **kinds):
        def run(folder):
            a, b = _two(tf)
            before = len(tf.get_default_graph().get_operations())
            saver = tf.train.Saver([a, b] if listed is None else listed(a, b), **kinds)
            ops = tf.get_default_graph().get_operations()[before:]
            rows = [[o.name, o.type, [i.name for i in o.inputs],
                     sorted(c.name for c in o.control_inputs), o.device] for o in ops]  # fmt: skip
            return [_definition(saver), rows]

        return run

    def devices(**kinds):
        def run(folder):
            with tf.device("/job:ps/task:0"):
                a = tf.get_variable("a", initializer=1.0)
            with tf.device("/job:ps/task:1"):
                b = tf.get_variable("b", initializer=2.0)
            before = len(tf.get_default_graph().get_operations())
            saver = tf.train.Saver([a, b], **kinds)
            ops = tf.get_default_graph().get_operations()[before:]
            return [_definition(saver), [[o.name, o.type, o.device] for o in ops]]

        return run

    def scoped(folder):
        a, _ = _two(tf)
        with tf.name_scope("outer"):
            saver = tf.train.Saver([a])
        inside = saver.to_proto("outer")
        return [_definition(saver), inside.save_tensor_name, saver.to_proto("none") is None]

    def twice(folder):
        a, b = _two(tf)
        return [_definition(tf.train.Saver([a])), _definition(tf.train.Saver([b]))]

    return _rows(tf, {
        "plain": made(),
        "name": made(name="keep"),
        "reshape": made(reshape=True),
        "sequential": made(restore_sequentially=True),
        "sharded": made(sharded=True),
        "V1": made(write_version=1),
        "V1 sharded": made(write_version=1, sharded=True),
        "file name": made(filename="f"),
        "hours": made(keep_checkpoint_every_n_hours=0.5, max_to_keep=3),
        "devices": devices(),
        "devices sharded": devices(sharded=True),
        "devices V1 sharded": devices(sharded=True, write_version=1),
        "in a scope": scoped,
        "twice": twice,
    })  # fmt: skip


def building(tf):
    """defer_build, allow_empty, saver_def, builder."""
    definition = tf.train.SaverDef

    def deferred(folder):
        saver = tf.train.Saver(defer_build=True)
        _two(tf)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            got = []
            save = lambda: saver.save(sess, os.path.join(folder, "m"))
            for call in (save, saver.build, saver.build, save):
                try:
                    found = call()
                    got.append(found and os.path.basename(found))
                except Exception as error:
                    got.append(_said(error, folder))
        return [got, _definition(saver)]

    def deferred_list(folder):
        return tf.train.Saver(list(_two(tf)), defer_build=True)

    def empty(folder):
        return tf.train.Saver()

    def allowed(folder):
        saver = tf.train.Saver(allow_empty=True)
        with tf.Session() as sess:
            path = saver.save(sess, os.path.join(folder, "m"))
            again = saver.restore(sess, os.path.join(folder, "none"))
        return [path, again, saver.as_saver_def() is None, _files(folder)]

    def of_definition(folder):
        a, b = _two(tf)
        first = tf.train.Saver([a, b], max_to_keep=2)
        saver = tf.train.Saver(saver_def=first.as_saver_def())
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            path = saver.save(sess, os.path.join(folder, "m"))
            sess.run(a.assign([5.0, 5.0]))
            saver.restore(sess, path)
            return [_definition(saver), sess.run(a), _definition(tf.train.Saver.from_proto(
                first.to_proto()))]  # fmt: skip

    def definition_and_name(folder):
        a, b = _two(tf)
        d = tf.train.Saver([a, b]).as_saver_def()
        return _definition(tf.train.Saver(saver_def=d, name="scope"))

    def wrong(make):
        def run(folder):
            _two(tf)
            return _definition(tf.train.Saver(saver_def=make()))

        return run

    def builder(folder):
        base = inner(tf, "python.training.saver", "BaseSaverBuilder")
        bulk = inner(tf, "python.training.saver", "BulkSaverBuilder")
        a, b = _two(tf)
        got = []
        for made in (base(), bulk(), base(write_version=1)):
            saver = tf.train.Saver([a, b], builder=made)
            got.append(_definition(saver))
        kinds = [o.type for o in tf.get_default_graph().get_operations() if "/RestoreV2" in o.name]
        return [got, sorted(kinds)]

    def own_builder(folder):
        base = inner(tf, "python.training.saver", "BaseSaverBuilder")
        calls = []

        class Own(base):
            def restore_op(self, filename_tensor, saveable, preferred_shard):
                calls.append([saveable.name, preferred_shard])
                return base.restore_op(self, filename_tensor, saveable, preferred_shard)

            def save_op(self, filename_tensor, saveables):
                calls.append([s.name for s in saveables])
                return base.save_op(self, filename_tensor, saveables)

        a, b = _two(tf)
        tf.train.Saver([a, b], builder=Own())
        tf.train.Saver([a, b], builder=Own(), sharded=True)
        return calls

    return _rows(tf, {
        "deferred": deferred,
        "deferred with a list": deferred_list,
        "no variables": empty,
        "no variables, allowed": allowed,
        "of a definition": of_definition,
        "definition and name": definition_and_name,
        "definition of nothing": wrong(lambda: definition()),
        "definition without restore": wrong(lambda: definition(save_tensor_name="x")),
        "definition is text": wrong(lambda: "x"),
        "definition is a dict": wrong(lambda: {"save_tensor_name": "x"}),
        "builder": builder,
        "own builder": own_builder,
    })  # fmt: skip


def restoring(tf):
    """Other shapes, other names, parts, missing keys, other types."""

    def written(folder, make):
        with tf.Graph().as_default(), tf.Session() as sess:
            make()
            sess.run(tf.global_variables_initializer())
            return tf.train.Saver().save(sess, os.path.join(folder, "m"))

    def both():
        tf.get_variable("a", initializer=np.float32([1.0, 2.0]))
        tf.get_variable("b", initializer=np.int64(7))

    def read(make, listed=None, change=None, **kinds):
        def run(folder):
            path = written(folder, both)
            variables = make()
            saver = tf.train.Saver(listed and listed(variables), **kinds)
            with tf.Session() as sess:
                saver.restore(sess, change(folder, path) if change else path)
                return sess.run(variables)

        return run

    def var(name, value, **kinds):
        return tf.get_variable(name, initializer=np.asarray(value), **kinds)

    one = np.float32([0.0, 0.0])

    def moved(folder, path):
        os.mkdir(os.path.join(folder, "there"))
        for name in os.listdir(folder):
            if name.startswith("m."):
                shutil.move(os.path.join(folder, name), os.path.join(folder, "there", name))
        return os.path.join(folder, "there", "m")

    def without(ending):
        def change(folder, path):
            os.remove(path + ending)
            return path

        return change

    def relative(folder, path):
        return os.path.relpath(path)

    def partly(folder):
        path = written(folder, both)
        a = var("a", one)
        new = var("new", np.float32(9.0))
        saver = tf.train.Saver([a])
        with tf.Session() as sess:
            sess.run(new.initializer)
            saver.restore(sess, path)
            return sess.run([a, new, tf.report_uninitialized_variables()])

    def pieces(folder):
        with tf.Graph().as_default(), tf.Session() as sess:
            p = tf.get_variable("p", initializer=np.arange(12, dtype=np.float32).reshape(6, 2),
                                partitioner=None)  # fmt: skip
            sess.run(tf.global_variables_initializer())
            path = tf.train.Saver([p]).save(sess, os.path.join(folder, "m"))
        got = []
        for count in (2, 3, 4):
            with tf.Graph().as_default(), tf.Session() as sess:
                p = tf.get_variable("p", [6, 2], partitioner=tf.fixed_size_partitioner(count))
                tf.train.Saver([p]).restore(sess, path)
                got.append([sess.run(list(p)), sess.run(tf.convert_to_tensor(p))])
        return got

    return _rows(tf, {
        "same": read(lambda: [var("a", one), var("b", np.int64(0))]),
        "part": read(lambda: [var("a", one)]),
        "new variable": read(lambda: [var("a", one), var("c", one)]),
        "renamed": read(lambda: [var("c", one)], lambda v: {"a": v[0]}),
        "resource": read(lambda: [var("a", one, use_resource=True)]),
        "other shape": read(lambda: [var("a", np.float32([0.0]))]),
        "other shape, reshape": read(
            lambda: [var("a", np.zeros((2, 1), np.float32))], reshape=True),
        "reshape resource": read(
            lambda: [var("a", np.zeros((2, 1), np.float32), use_resource=True)], reshape=True),
        "other size, reshape": read(lambda: [var("a", np.zeros(3, np.float32))], reshape=True),
        "other type": read(lambda: [var("a", np.zeros(2, np.float64))]),
        "sequential": read(
            lambda: [var("a", one), var("b", np.int64(0))], restore_sequentially=True),
        "partly": partly,
        "partitions": pieces,
        "no path": read(lambda: [var("a", one)], change=lambda f, p: None),
        "empty path": read(lambda: [var("a", one)], change=lambda f, p: ""),
        "number": read(lambda: [var("a", one)], change=lambda f, p: 3),
        "bytes": read(lambda: [var("a", one)], change=lambda f, p: p.encode()),
        "the index": read(lambda: [var("a", one)], change=lambda f, p: p + ".index"),
        "the data": read(lambda: [var("a", one)], change=lambda f, p: p + ".data-00000-of-00001"),
        "the folder": read(lambda: [var("a", one)], change=lambda f, p: f),
        "moved": read(lambda: [var("a", one)], change=moved),
        "relative": read(lambda: [var("a", one)], change=relative),
        "no index": read(lambda: [var("a", one)], change=without(".index")),
        "no data": read(lambda: [var("a", one)], change=without(".data-00000-of-00001")),
        "no meta": read(lambda: [var("a", one)], change=without(".meta")),
    })  # fmt: skip


def keeping(tf):
    """Which checkpoints stay: max_to_keep, hours, last_checkpoints and recovery."""

    def kept(count, hours=10000.0, wait=0.0, prepare=None, saves=5, **save):
        def run(folder):
            a, _ = _two(tf)
            saver = tf.train.Saver([a], max_to_keep=count, keep_checkpoint_every_n_hours=hours)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                if prepare:
                    prepare(saver, sess, folder)
                for step in range(saves):
                    saver.save(sess, os.path.join(folder, "m"), global_step=step, **save)
                    time.sleep(wait)
            state = tf.train.get_checkpoint_state(folder)
            listed = state and [os.path.basename(p) for p in state.all_model_checkpoint_paths]
            last = [os.path.basename(p) for p in saver.last_checkpoints]
            return [_files(folder), listed, last]

        return run

    def before(call):
        def prepare(saver, sess, folder):
            other = tf.train.Saver([tf.global_variables()[0]])
            paths = [other.save(sess, os.path.join(folder, "old"), global_step=i) for i in (7, 8)]
            call(saver, paths)

        return prepare

    def same_path(folder):
        a, _ = _two(tf)
        saver = tf.train.Saver([a], max_to_keep=2)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for step in (1, 2, 1, 3):
                saver.save(sess, os.path.join(folder, "m"), global_step=step)
        return [_files(folder), [os.path.basename(p) for p in saver.last_checkpoints]]

    def two_savers(folder):
        a, b = _two(tf)
        first, second = tf.train.Saver([a], max_to_keep=1), tf.train.Saver([b])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for step in (1, 2):
                first.save(sess, os.path.join(folder, "a"), global_step=step)
                second.save(sess, os.path.join(folder, "b"), global_step=step,
                            latest_filename="other")  # fmt: skip
        return [_files(folder), os.path.basename(tf.train.latest_checkpoint(folder)),
                os.path.basename(tf.train.latest_checkpoint(folder, "other"))]  # fmt: skip

    def relative(folder):
        a, _ = _two(tf)
        saver = tf.train.Saver([a], save_relative_paths=True, max_to_keep=2)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(3):
                saver.save(sess, os.path.join(folder, "m"), global_step=step)
        with open(os.path.join(folder, "checkpoint")) as f:
            text = [x for x in f.read().split("\n") if "timestamp" not in x]
        state = tf.train.get_checkpoint_state(folder)
        return [text, [os.path.relpath(p, folder) for p in state.all_model_checkpoint_paths],
                os.path.relpath(tf.train.latest_checkpoint(folder), folder)]  # fmt: skip

    def gone(saver, paths):
        for name in os.listdir(os.path.dirname(paths[0])):
            if name.startswith("old-7"):
                os.remove(os.path.join(os.path.dirname(paths[0]), name))
        saver.recover_last_checkpoints(paths)

    return _rows(tf, {
        "keep 2": kept(2),
        "keep 1": kept(1),
        "keep 0": kept(0),
        "keep none": kept(None),
        "keep -1": kept(-1),
        "every hour": kept(1, 0.03 / 3600, 0.05, saves=3),
        "keep 2, suffix": kept(2, meta_graph_suffix="mm"),
        "keep 2, no state": kept(2, write_state=False),
        "recovered": kept(3, prepare=before(lambda s, p: s.recover_last_checkpoints(p))),
        "recovered, one gone": kept(3, saves=2, prepare=before(gone)),
        "with times": kept(3, saves=2, prepare=before(
            lambda s, p: s.set_last_checkpoints_with_time([(x, 1.0) for x in p]))),
        "set last": kept(3, saves=2, prepare=before(lambda s, p: s.set_last_checkpoints(p))),
        "set last, a tuple": kept(3, prepare=before(lambda s, p: s.set_last_checkpoints(tuple(p)))),
        "with times, a tuple": kept(
            3, prepare=before(lambda s, p: s.set_last_checkpoints_with_time(()))),
        "same path": same_path,
        "two savers": two_savers,
        "relative": relative,
    })  # fmt: skip


def _meta(message):
    nodes = [[n.name, n.op, n.device, sorted(n.attr)] for n in message.graph_def.node]
    saver = message.saver_def
    return [
        nodes, sorted(message.collection_def), message.meta_info_def.stripped_default_attrs,
        [saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name],
        [o.name for o in message.meta_info_def.stripped_op_list.op],
    ]  # fmt: skip


def meta_graphs(tf):
    def program():
        with tf.device("/cpu:0"):
            a, b = _two(tf)
        with tf.name_scope("inside"):
            tf.identity(a, name="y")
        tf.add_to_collection("mine", a)
        tf.add_to_collection("numbers", 3)
        return tf.train.Saver([a, b])

    def exported(**kinds):
        def run(folder):
            return _meta(program().export_meta_graph(**kinds))

        return run

    def function(**kinds):
        def run(folder):
            program()
            return _meta(tf.train.export_meta_graph(**kinds))

        return run

    def text(folder):
        path = os.path.join(folder, "g.meta")
        program().export_meta_graph(path, as_text=True)
        with open(path) as f:
            first = f.read(20)
        saver = tf.train.import_meta_graph(path, import_scope="again")
        return [first, _definition(saver)]

    def extraneous(flag):
        def run(folder):
            saver = program()
            tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
            other = tf.train.Saver([tf.global_variables()[0]], name="other")
            tf.add_to_collection(tf.GraphKeys.SAVERS, other)
            made = saver.export_meta_graph(clear_extraneous_savers=flag)
            names = [n.name for n in made.graph_def.node if "/" in n.name]
            return [names, len(made.collection_def["savers"].bytes_list.value)]

        return run

    def imported(change=None, **kinds):
        def run(folder):
            made = program().export_meta_graph(clear_devices=False)
            if change:
                change(made)
            with tf.Graph().as_default() as graph:
                saver = tf.train.import_meta_graph(made, **kinds)
                ops = [[o.name, o.device] for o in graph.get_operations()]
                return [saver and _definition(saver), ops, [v.name for v in tf.global_variables()],
                        sorted(map(str, graph.get_all_collection_keys()))]  # fmt: skip

        return run

    def no_saver(message):
        message.ClearField("saver_def")

    def no_variables(message):
        message.ClearField("saver_def")
        message.collection_def.clear()

    def debug_info(folder):
        path = os.path.join(folder, "g.meta")
        program().export_meta_graph(path, save_debug_info=True)
        return _files(folder)

    def scope_and_back(folder):
        with tf.variable_scope("deep"):
            v = tf.get_variable("v", initializer=1.0)
            tf.multiply(v, 2.0, name="y")
        made = tf.train.export_meta_graph(export_scope="deep")
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            saver = tf.train.import_meta_graph(made, import_scope="new")
            sess.run(tf.global_variables_initializer())
            return [_definition(saver), [o.name for o in graph.get_operations()][:6],
                    sess.run("new/y:0")]  # fmt: skip

    return _rows(tf, {
        "method": exported(),
        "method, devices": exported(clear_devices=True),
        "method, strip": exported(strip_default_attrs=True),
        "method, collections": exported(collection_list=["mine"]),
        "method, scope": exported(export_scope="inside"),
        "function": function(),
        "function, devices": function(clear_devices=True),
        "function, strip": function(strip_default_attrs=True),
        "function, collections": function(collection_list=["mine", "none"]),
        "function, scope": function(export_scope="inside"),
        "function, missing scope": function(export_scope="nowhere"),
        "text": text,
        "extraneous": extraneous(False),
        "extraneous cleared": extraneous(True),
        "import": imported(),
        "import, devices": imported(clear_devices=True),
        "import, scope": imported(import_scope="s"),
        "import, scope with a slash": imported(import_scope="s/"),
        "import, no saver": imported(no_saver),
        "import, no variables": imported(no_variables),
        "import, missing": lambda f: tf.train.import_meta_graph(os.path.join(f, "none.meta")),
        "import, number": lambda f: tf.train.import_meta_graph(3),
        "import, unknown": imported(input_maps={}),
        "debug info": debug_info,
        "a scope": scope_and_back,
    })  # fmt: skip
