"""tf.train.Checkpoint, CheckpointManager, statuses, PythonState and loss scales, one row each.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import io
import os
import re
import shutil
import tempfile

import numpy as np

from tests.golden.inner_paths import inner


def _said(error):
    return type(error).__name__


def _rows(tf, table):
    """{name: what its function gives, or the error's class}, in a graph and eagerly."""
    eager_mode = inner(tf, "python.eager.context", "eager_mode")
    found = {}
    for name, run in sorted(table.items()):
        for mode in ("eager", "graph"):
            folder = tempfile.mkdtemp()
            try:
                if mode == "eager":
                    with eager_mode():
                        found[name + ", eager"] = run(folder, None)
                else:
                    with tf.Graph().as_default(), tf.Session().as_default() as sess:
                        found[name + ", graph"] = run(folder, sess)
            except Exception as error:  # the error is what is compared
                found["%s, %s" % (name, mode)] = _said(error)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return found


def _files(folder):
    found = {os.path.relpath(os.path.join(a, f), folder) for a, _, n in os.walk(folder) for f in n}
    return sorted({re.sub("data-.*", "data", f) for f in found})  # TF 1.15: a shard per device


def _init(sess, *variables):
    if sess is not None:
        sess.run([v.initializer for v in variables])


def _get(sess, variable):
    return variable.numpy().tolist() if sess is None else sess.run(variable).tolist()


def _keys(tf, path):
    return [[n, list(s)] for n, s in tf.train.list_variables(path)]


def saving(tf):
    """Names, numbers and files of save and write."""

    def saved(folder, sess):
        a, b = tf.Variable(1.0, name="a"), tf.Variable([2, 3], name="b")
        _init(sess, a, b)
        root = tf.train.Checkpoint(a=a, b=b)
        root.both, root.named = [a, b], {"x": a, "y.z/w": b}
        paths = [os.path.basename(root.save(os.path.join(folder, "m"))) for _ in range(2)]
        latest = tf.train.latest_checkpoint(folder)
        return [
            paths,
            os.path.basename(latest),
            _keys(tf, latest),
            _files(folder),
            _get(sess, root.save_counter),
        ]

    def written(folder, sess):
        a = tf.Variable(1.0, name="a")
        _init(sess, a)
        root = tf.train.Checkpoint(a=a)
        path = root.write(os.path.join(folder, "exact"))
        return [os.path.basename(path), _keys(tf, path), _files(folder)]

    def deep(folder, sess):
        class Layer(tf.Module):
            def __init__(self):
                super(Layer, self).__init__()
                self.w = tf.Variable([1.0], name="w")
                self.parts = [tf.Variable(2.0, name="p"), {"in": tf.Variable(3.0, name="q")}]
                self.text = "none"

        layer = Layer()
        _init(sess, layer.w, layer.parts[0], layer.parts[1]["in"])
        path = tf.train.Checkpoint(layer=layer, again=layer).save(os.path.join(folder, "m"))
        return _keys(tf, path)

    def wrong(make):
        def run(folder, sess):
            return tf.train.Checkpoint(**make()).save(os.path.join(folder, "m")) and "accepted"

        return run

    def missing_folder(folder, sess):
        a = tf.Variable(1.0)
        _init(sess, a)
        path = tf.train.Checkpoint(a=a).save(os.path.join(folder, "new", "deep", "m"))
        return [os.path.relpath(path, folder), _files(folder)]

    return _rows(tf, {
        "save": saved, "write": written, "deep": deep, "missing folder": missing_folder,
        "number": wrong(lambda: {"a": 3}), "text": wrong(lambda: {"a": "x"}),
        "array": wrong(lambda: {"a": np.ones(2)}), "nothing": wrong(dict),
        "function": wrong(lambda: {"a": lambda: 3}), "none": wrong(lambda: {"a": None}),
        "tensor": wrong(lambda: {"a": tf.constant(1)}), "object": wrong(lambda: {"a": object()}),
        "numpy": wrong(lambda: {"a": np.float32(1)}),
    })  # fmt: skip


def restoring(tf):
    """Which assertion of a status holds, and what the variables have then."""

    def written(folder, sess):
        a, b = tf.Variable(1.0, name="a"), tf.Variable([2.0, 3.0], name="b")
        _init(sess, a, b)
        return tf.train.Checkpoint(a=a, b=b).save(os.path.join(folder, "m"))

    checks = ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match",
              "expect_partial")  # fmt: skip

    def status_of(make, path=None):
        def run(folder, sess):
            saved = written(folder, sess)
            root, variables = make()
            _init(sess, *variables)
            status = root.restore(path(saved) if path else saved)
            said = {}
            for check in checks:
                try:
                    said[check] = getattr(status, check)() is not None
                except Exception as error:
                    said[check] = _said(error)
            for call in ("run_restore_ops", "initialize_or_restore"):
                try:
                    getattr(status, call)()
                    said[call] = [_get(sess, v) for v in variables]
                except Exception as error:
                    said[call] = _said(error)
            return [type(status).__name__ if path is None else "", sorted(said.items())]

        return run

    def same():
        a, b = tf.Variable(0.0), tf.Variable([0.0, 0.0])
        return tf.train.Checkpoint(a=a, b=b), [a, b]

    def fewer():
        a = tf.Variable(0.0)
        return tf.train.Checkpoint(a=a), [a]

    def more():
        a, b, c = tf.Variable(0.0), tf.Variable([0.0, 0.0]), tf.Variable(9.0)
        return tf.train.Checkpoint(a=a, b=b, c=c), [a, b, c]

    def other():
        c = tf.Variable(9.0)
        return tf.train.Checkpoint(c=c), [c]

    def shaped():
        a, b = tf.Variable(0.0), tf.Variable([0.0, 0.0, 0.0])
        return tf.train.Checkpoint(a=a, b=b), [a, b]

    def later(folder, sess):
        saved = written(folder, sess)
        root = tf.train.Checkpoint()
        status = root.restore(saved)
        root.b = tf.Variable([0.0, 0.0])
        status.initialize_or_restore()
        first = _get(sess, root.b)
        root.a = tf.Variable(0.0)
        status.assert_consumed().initialize_or_restore()
        return [first, _get(sess, root.a), _get(sess, root.save_counter)]

    def late_module(folder, sess):
        module = tf.Module()
        module.w = tf.Variable([4.0], name="w")
        _init(sess, module.w)
        saved = tf.train.Checkpoint(m=module).save(os.path.join(folder, "m"))
        root = tf.train.Checkpoint()
        status = root.restore(saved)
        root.m = tf.Module()
        root.m.w = tf.Variable([0.0])
        status.assert_consumed().initialize_or_restore()
        return _get(sess, root.m.w)

    def twice(folder, sess):
        first = written(folder, sess)
        a, b = tf.Variable(7.0), tf.Variable([0.0, 0.0])
        _init(sess, a, b)
        root = tf.train.Checkpoint(a=a, b=b)
        second = root.save(os.path.join(folder, "n"))
        root.restore(first).initialize_or_restore()
        got = [_get(sess, a)]
        root.restore(second).initialize_or_restore()
        return [*got, _get(sess, a)]

    def by_saver(folder, sess):
        if sess is None:
            return None
        a = tf.get_variable("a", initializer=5.0)
        _init(sess, a)
        path = tf.train.Checkpoint(thing=a).save(os.path.join(folder, "s"))
        sess.run(a.assign(0.0))
        tf.train.Saver([a]).restore(sess, path)
        return _get(sess, a)

    def slots(folder, sess):
        def program():
            v = tf.Variable([1.0, 2.0], name="v")
            return v, tf.train.AdamOptimizer(0.1)

        def step(v, optimizer):
            return optimizer.minimize(
                (lambda: tf.reduce_sum(v * v)) if sess is None else tf.reduce_sum(v * v)
            )

        v, optimizer = program()
        train = step(v, optimizer)
        if sess is not None:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
        path = tf.train.Checkpoint(v=v, opt=optimizer).save(os.path.join(folder, "m"))
        keys = _keys(tf, path)
        v, optimizer = program()
        root = tf.train.Checkpoint(v=v, opt=optimizer)
        status = root.restore(path)
        if sess is None:  # slots are made by the first step, and restored then
            step(v, optimizer)
            status.assert_consumed()
            return [keys, _get(sess, v), _get(sess, optimizer.get_slot(v, "m"))]
        train = step(v, optimizer)
        status.assert_consumed().initialize_or_restore()
        sess.run(train)
        return [keys, _get(sess, v), _get(sess, optimizer.get_slot(v, "m"))]

    return _rows(tf, {
        "same": status_of(same), "fewer": status_of(fewer), "more": status_of(more),
        "other": status_of(other), "other shape": status_of(shaped),
        "none": status_of(same, lambda p: None), "missing": status_of(same, lambda p: p + "x"),
        "later": later, "late module": late_module, "twice": twice,
        "by a saver": by_saver, "slots": slots,
    })  # fmt: skip


def managing(tf):
    """CheckpointManager: which files stay, which numbers they have."""

    def managed(saves=4, **options):
        def run(folder, sess):
            a = tf.Variable(1.0)
            _init(sess, a)
            root = tf.train.Checkpoint(a=a)
            manager = tf.train.CheckpointManager(root, folder, **options)
            paths = [os.path.basename(manager.save()) for _ in range(saves)]
            listed = [os.path.basename(p) for p in manager.checkpoints]
            again = tf.train.CheckpointManager(root, folder, **options)
            with open(os.path.join(folder, "checkpoint")) as f:
                lines = [x for x in f.read().split("\n") if "timestamp" not in x]
            return [paths, listed, os.path.basename(manager.latest_checkpoint), _files(folder),
                    [os.path.basename(p) for p in again.checkpoints], lines]  # fmt: skip

        return run

    def numbered(number):
        def run(folder, sess):
            a = tf.Variable(1.0)
            step = tf.Variable(30, dtype=tf.int64)
            _init(sess, a, step)
            manager = tf.train.CheckpointManager(tf.train.Checkpoint(a=a), folder, max_to_keep=2)
            paths = [os.path.basename(manager.save(checkpoint_number=n)) for n in (number(step), 5)]
            return [paths, _files(folder), _get(sess, manager._checkpoint.save_counter)]

        return run

    def went_on(folder, sess):
        a = tf.Variable(1.0)
        _init(sess, a)
        first = tf.train.CheckpointManager(tf.train.Checkpoint(a=a), folder, max_to_keep=2)
        for _ in range(3):
            first.save()
        root = tf.train.Checkpoint(a=a)
        second = tf.train.CheckpointManager(root, folder, max_to_keep=2)
        root.restore(second.latest_checkpoint).initialize_or_restore()
        second.save()
        return [[os.path.basename(p) for p in second.checkpoints], _files(folder)]

    def nothing(folder, sess):
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(), os.path.join(folder, "none"), max_to_keep=3
        )
        return [manager.latest_checkpoint, manager.checkpoints, _files(folder)]

    return _rows(tf, {
        "keep 2": managed(max_to_keep=2), "keep 1": managed(max_to_keep=1),
        "keep none": managed(max_to_keep=None), "keep 0": managed(max_to_keep=0),
        "keep -1": managed(max_to_keep=-1),
        "every hour": managed(max_to_keep=1, keep_checkpoint_every_n_hours=1e-9),
        "some hours": managed(max_to_keep=1, keep_checkpoint_every_n_hours=100),
        "named": managed(max_to_keep=2, checkpoint_name="model"),
        "number": numbered(lambda s: 10), "number of a variable": numbered(lambda s: s),
        "number of numpy": numbered(lambda s: np.int64(11)), "text": numbered(lambda s: "x"),
        "went on": went_on, "nothing": nothing,
    })  # fmt: skip


def python_state(tf):
    """Objects that say themselves what is saved."""

    def program(folder, sess):
        class Numbers(tf.train.experimental.PythonState):
            def __init__(self, array):
                self.array = array

            def serialize(self):
                file = io.BytesIO()
                np.save(file, self.array, allow_pickle=False)
                return file.getvalue()

            def deserialize(self, string_value):
                self.array = np.load(io.BytesIO(string_value), allow_pickle=False)

        numbers = Numbers(np.array([1.0, 2.0]))
        root = tf.train.Checkpoint(numbers=numbers)
        path = root.save(os.path.join(folder, "m"))
        numbers.array = numbers.array * 2
        root.restore(path).assert_consumed()
        later = tf.train.Checkpoint()
        status = later.restore(path)
        later.numbers = Numbers(np.zeros(3))
        status.assert_consumed()
        return [numbers.array, later.numbers.array, [n for n, _ in _keys(tf, path)]]

    def refused(folder, sess):
        class Half(tf.train.experimental.PythonState):
            def serialize(self):
                return b""

        return Half() and "made"

    return _rows(tf, {"arrays": lambda f, s: [np.asarray(x).tolist() for x in program(f, s)],
                      "half": refused})  # fmt: skip


def loss_scales(tf):
    """Loss scales and the optimizer around another."""
    train = tf.train.experimental

    def scale(make, grads):
        def run(folder, sess):
            made = make()
            _init(sess, *[v for v in vars(made).values() if isinstance(v, tf.Variable)][:2])
            if sess is not None:
                sess.run(tf.global_variables_initializer())
            got = []
            fed = tf.Variable([1.0, 2.0])
            _init(sess, fed)
            update, apply = made.update([fed, None]) if sess is not None else (None, None)
            for values in grads:
                if sess is None:
                    apply = made.update([tf.constant(values), None])[1]
                    got.append([float(made()), bool(apply)])
                else:
                    fed.load(values, sess)
                    ran = apply if isinstance(apply, bool) else sess.run(apply)
                    sess.run(update)
                    got.append([float(sess.run(made())), bool(ran)])
            again = type(made).from_config(made.get_config())
            return [got, made.get_config(), type(again).__name__,
                    re.sub("current.*?initial", "initial", repr(made))]  # fmt: skip

        return run

    fine, bad = [1.0, 2.0], [float("inf"), 1.0]

    def optimizer(loss_scale, first=None, wrap=None):
        def run(folder, sess):
            v = tf.get_variable("v", initializer=np.float32([1.0, 2.0]), use_resource=True)
            factor = tf.Variable(1.0, trainable=False)
            step = tf.Variable(0, dtype=tf.int64, name="step", trainable=False)
            inner_optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
            made = (wrap or train.MixedPrecisionLossScaleOptimizer)(inner_optimizer, loss_scale)
            rows = []
            if sess is None:
                for value in (1.0, float("nan"), 1.0):
                    factor.assign(value)
                    made.minimize(lambda: tf.reduce_sum(v * v) * factor, global_step=step)
                    rows.append([_get(sess, v), _get(sess, step)])
            else:
                op = made.minimize(tf.reduce_sum(v * v) * factor, global_step=step)
                sess.run(tf.global_variables_initializer())
                for value in (1.0, float("nan"), 1.0):
                    factor.load(value, sess)
                    sess.run(op)
                    rows.append([_get(sess, v), _get(sess, step)])
            root = tf.train.Checkpoint(v=v, opt=made)
            keys = _keys(tf, root.save(os.path.join(folder, "m")))
            names = [] if sess is None else sorted(x.name for x in tf.global_variables())
            return [[str(r) for r in rows], keys, made.get_name(), names]

        return run

    def restored(folder, sess):
        def program():
            v = tf.Variable([1.0, 2.0], name="v", use_resource=True)
            made = train.MixedPrecisionLossScaleOptimizer(
                tf.train.AdamOptimizer(0.1), train.DynamicLossScale(4.0, 2, 2.0))  # fmt: skip
            return v, made

        def stepper(v, made):
            if sess is None:
                return lambda: made.minimize(lambda: tf.reduce_sum(v * v))
            op = made.minimize(tf.reduce_sum(v * v))
            return lambda: sess.run(op)

        v, made = program()
        step = stepper(v, made)
        if sess is not None:
            sess.run(tf.global_variables_initializer())
        for _ in range(3):
            step()
        path = tf.train.Checkpoint(v=v, opt=made).save(os.path.join(folder, "m"))
        w, again = program()
        status = tf.train.Checkpoint(v=w, opt=again).restore(path)
        step = stepper(w, again)
        if sess is None:
            step()
        status.assert_consumed().initialize_or_restore()
        if sess is not None:
            step()
        scale_now = again._loss_scale()
        return [_get(sess, w), _get(sess, scale_now)]

    def refused(call):
        return lambda folder, sess: call() and "accepted"

    return _rows(tf, {
        "fixed": scale(lambda: train.FixedLossScale(8), [fine, bad]),
        "dynamic": scale(
            lambda: train.DynamicLossScale(8.0, 2, 4.0), [fine, fine, bad, fine, bad, bad]),
        "dynamic floor": scale(lambda: train.DynamicLossScale(2.0, 2, 4.0), [bad, bad, fine, fine]),
        "dynamic ceiling": scale(lambda: train.DynamicLossScale(3e38, 1, 2.0), [fine, fine]),
        "fixed optimizer": optimizer(128.0),
        "dynamic optimizer": optimizer("dynamic"),
        "graph rewrite": optimizer(16, wrap=train.enable_mixed_precision_graph_rewrite),
        "restored": restored,
        "fixed 0": refused(lambda: train.FixedLossScale(0)),
        "fixed text": refused(lambda: train.FixedLossScale("x")),
        "scale text": refused(lambda: train.MixedPrecisionLossScaleOptimizer(
            tf.train.GradientDescentOptimizer(0.1), "x")),
        "no optimizer": refused(lambda: train.MixedPrecisionLossScaleOptimizer(3, 1.0)),
        "rewrite no optimizer": refused(lambda: train.enable_mixed_precision_graph_rewrite(3)),
        "disabled": lambda folder, sess: train.disable_mixed_precision_graph_rewrite() is None,
    })  # fmt: skip
