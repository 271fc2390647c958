"""Checkpoint readers and initialization from checkpoints: run with TensorFlow 1.15's Python, this
writes readers.json. Python 3.7 syntax.
"""

import json
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "checkpoints")


def readers(tf):
    """What readers say of a checkpoint of either format."""
    out = {}
    for name in ("model", "v1"):
        path = os.path.join(FILES, name)
        reader = tf.train.NewCheckpointReader(path)
        out[name] = {
            "shapes": dict(sorted(reader.get_variable_to_shape_map().items())),
            "types": {k: v.name for k, v in sorted(reader.get_variable_to_dtype_map().items())},
            "debug": sorted(reader.debug_string().decode("latin-1").split("\n")),
            "listed": [list(pair) for pair in tf.train.list_variables(path)],
            "has": [reader.has_tensor("global_step"), reader.has_tensor("no")],
            "step": int(tf.train.load_variable(path, "global_step:0")),
            "sums": {
                k: _read(tf, reader, k)
                for k in reader.get_variable_to_shape_map()
                if name == "model" or not ("/p" in k or k in "cfh")  # V1: not all is read
            },
        }
        out[name]["missing"] = _error(tf, lambda r=reader: r.get_tensor("no"))
    out["no file"] = _error(tf, lambda: tf.train.NewCheckpointReader("/no/such/file"))[:1]
    missing = os.path.join(FILES, "no")
    out["none"] = _error(tf, lambda: tf.train.NewCheckpointReader(missing))[:1]
    out["no folder"] = _error(tf, lambda: tf.train.list_variables(tempfile.mkdtemp()))[:1]
    return out


def _read(tf, reader, name):
    try:
        return _sum(reader.get_tensor(name))
    except tf.errors.OpError as error:
        return type(error).__name__


def _sum(value):
    if np.asarray(value).dtype.kind in "OS":
        return [v.decode() for v in np.ravel(value)]
    return float(np.asarray(value, np.float64).sum())


def _error(tf, function):
    try:
        function()
    except (tf.errors.OpError, ValueError) as error:
        return [type(error).__name__, str(error).split("\n")[0].split(" [[")[0]]
    return "no error"


def initialized(tf):
    """Variables, also partitioned ones, that start with values of a checkpoint."""
    out = {}
    path = os.path.join(FILES, "model")
    old = tf.train.load_checkpoint(path).get_tensor("adam/p")
    for resource in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            with tf.variable_scope("new", use_resource=resource):
                w = tf.get_variable("w", [3, 2])
                tf.get_variable("b", [2])
                tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
                tf.get_variable("own", [2], initializer=tf.zeros_initializer())
            with tf.variable_scope("other", use_resource=resource):
                tf.get_variable("b", [2])
            before = {o.name for o in graph.get_operations()}
            tf.train.init_from_checkpoint(
                path, {"sgd/w": w, "adam/p": "new/p", "mom/b": "new/b", "rms/": "other/"}
            )
            made = [o.name for o in graph.get_operations() if o.name not in before]
            sess.run(tf.global_variables_initializer())
            values = {v.op.name: _sum(sess.run(v)) for v in tf.global_variables()}
            out["values %s" % resource] = dict(sorted(values.items()))
            out["made %s" % resource] = made
            wrong = {"sgd/no": "new/w"}, {"sgd/w": "new/b"}, {"sgd": "new/x"}, {"sgd/": "new/"}
            out["errors %s" % resource] = [
                _error(tf, lambda w=w: tf.train.init_from_checkpoint(path, w))[:1] for w in wrong
            ]
    out["old"] = _sum(old)
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("adam"):
            tf.get_variable("w", [3, 2])
            tf.get_variable("mine", [2], trainable=False)
        tf.train.warm_start(path, ".*w")
        sess.run(tf.global_variables_initializer())
        out["warm"] = _sum(sess.run("adam/w:0"))
        tf.train.warm_start(path, ["adam/mine"], None, {"adam/mine": "sgd/b"})
        sess.run(tf.global_variables_initializer())
        out["warm mine"] = _sum(sess.run("adam/mine:0"))
        out["warm errors"] = [
            _error(tf, lambda: tf.train.warm_start(path, 3))[:1],
            _error(tf, lambda: tf.train.warm_start(path, ".*w", None, {"x": "y"}))[:1],
        ]
    return out


def waited(tf):
    """checkpoints_iterator on a folder that gets one checkpoint."""
    folder, seen = tempfile.mkdtemp(), []
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.Variable(1.0)
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        calls = []

        def late():
            calls.append(len(seen))
            if len(calls) == 1:
                saver.save(sess, os.path.join(folder, "m"), 5)
            return len(calls) > 1

        for path in tf.train.checkpoints_iterator(folder, timeout=0, timeout_fn=late):
            seen.append(os.path.basename(path))
    return {"seen": seen, "calls": calls}


def slim_functions(tf):
    """tf.contrib.framework's functions of checkpoints."""
    out = {}
    framework = tf.contrib.framework
    path = os.path.join(FILES, "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("sgd"):
            w = framework.model_variable("w", [3, 2])
            b = framework.variable("b", [2])
        out["restore"] = [v.name for v in framework.get_variables_to_restore(exclude=["sgd/b"])]
        op, feed = framework.assign_from_checkpoint(path, [w, b])
        sess.run(op, feed)
        out["assigned"] = [_sum(v) for v in sess.run([w, b])]
        sess.run([w.assign(w * 0), b.assign(b + 1)])
        framework.assign_from_checkpoint_fn(path, {"sgd/w": w})(sess)
        out["by function"] = [_sum(v) for v in sess.run([w, b])]
        out["listed"] = [list(p) for p in framework.list_variables(path)][:3]
        out["loaded"] = _sum(framework.load_variable(path, "sgd/w"))
    return out


def everything(tf):
    """All of the above."""
    return {
        "readers": readers(tf),
        "initialized": initialized(tf),
        "waited": waited(tf),
        "slim": slim_functions(tf),
    }


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    with open(os.path.join(HERE, "readers.json"), "w") as f:
        json.dump(everything(tensorflow), f, indent=1, sort_keys=True)
        f.write("\n")
    sys.exit()
