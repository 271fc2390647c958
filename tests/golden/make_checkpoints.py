"""Checkpoints, MetaGraphs and the graphs of savers, made by TensorFlow 1.15:
tests/golden/checkpoints.

    <python of TF 1.15> tests/golden/make_checkpoints.py

`model` (its MetaGraph packed) is the small model below after three steps; `later.npz` has its
variables after three more. `v1` is a V1 checkpoint. `savers.json` has the nodes that savers add,
for the cases of `savers` (which tests/train/test_saver.py builds here too).
"""

import gzip
import json
import os
import sys

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def model(tf):
    """A model with variables of every kind and slots of every optimizer.

    Returns its training operation.
    """
    optimizers = [
        ("sgd", tf.train.GradientDescentOptimizer(0.1)),
        ("mom", tf.train.MomentumOptimizer(0.1, 0.9)),
        ("adam", tf.train.AdamOptimizer(0.1)),
        ("rms", tf.train.RMSPropOptimizer(0.1, centered=True)),
        ("ada", tf.train.AdagradOptimizer(0.1)),
        ("delta", tf.train.AdadeltaOptimizer(0.1)),
        ("ftrl", tf.train.FtrlOptimizer(0.1)),
        ("prox", tf.train.ProximalAdagradOptimizer(0.1)),
    ]
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    step = tf.train.get_or_create_global_step()
    trains = []
    for i, (name, optimizer) in enumerate(optimizers):
        with tf.variable_scope(name, use_resource=bool(i % 2)):
            w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.5))
            b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
            p = tf.get_variable(
                "p",
                [4, 2],
                initializer=tf.constant_initializer(0.25),
                partitioner=tf.fixed_size_partitioner(2),
            )
            y = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), tf.convert_to_tensor(p)[:2])
            trains.append(
                optimizer.minimize(
                    tf.reduce_mean(tf.square(y - 1)), global_step=step if i == 0 else None
                )
            )
    average = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies(list(trains)):
        trains.append(average.apply([v for v in tf.trainable_variables() if "sgd" in v.name]))
    tf.Variable("hello", name="text")
    for name, value in (
        ("d", np.arange(3.0)),
        ("f", [True, False]),
        ("h", np.ones(3, np.float16)),
        ("c", np.array([1 + 2j], np.complex64)),
    ):
        tf.Variable(value, name=name)
    return tf.group(*trains, name="train")


def values(tf, sess):
    found = {v.op.name: v for v in tf.global_variables()}
    fetched = sess.run({k: v.value() for k, v in found.items()})
    return {k.replace("/", "|"): np.asarray(v) for k, v in fetched.items() if k != "text"}


def savers(tf):
    """Cases: (title, a function that makes variables and returns the arguments of a Saver)."""

    def refs():
        return tf.Variable([1.0, 2.0], name="a"), tf.Variable(3, name="b")

    def resources():
        for name in "ab":
            tf.get_variable(name, [2], use_resource=True)

    def partitioned(**kwargs):
        return tf.get_variable("p", [4, 3], partitioner=tf.fixed_size_partitioner(2), **kwargs)

    def mixed():
        a, b = refs()
        return {"var_list": {"z": a, "y": b, "pp": partitioned()}}

    def with_variables(make, **kwargs):
        def build():
            make()
            return kwargs

        return build

    v1 = tf.train.SaverDef.V1
    return [
        ("references", with_variables(refs)),
        ("named", with_variables(refs, name="my", max_to_keep=3)),
        ("resources", with_variables(resources)),
        ("reshape", with_variables(refs, reshape=True)),
        ("resources reshaped", with_variables(resources, reshape=True)),
        ("sharded", with_variables(refs, sharded=True)),
        ("sequential", with_variables(refs, restore_sequentially=True)),
        ("partitioned", with_variables(partitioned)),
        ("a dict", mixed),
        ("V1", with_variables(refs, write_version=v1)),
        ("V1 sharded", with_variables(refs, write_version=v1, sharded=True)),
        ("V1 partitioned", with_variables(partitioned, write_version=v1)),
        ("filename", with_variables(refs, filename="f")),
    ]


def nodes_of_saver(tf, build):
    """The nodes that a saver adds, without what differs at each run, and its SaverDef."""
    with tf.Graph().as_default() as graph:
        arguments = build()
        before = len(graph.get_operations())
        saver = tf.train.Saver(**arguments)
        nodes = []
        for n in graph.as_graph_def().node[before:]:
            text = [str(s) for s in n.attr["value"].tensor.string_val] if n.op == "Const" else []
            text = ["_temp_" if "_temp_" in t else t for t in text]
            others = {k for k in n.attr if k not in ("value", "_class")}
            nodes.append([n.name, n.op, list(n.input), n.device, text, sorted(others)])
        d = saver.as_saver_def()
        return {
            "nodes": nodes,
            "def": [
                d.filename_tensor_name,
                d.save_tensor_name,
                d.restore_op_name,
                d.max_to_keep,
                d.sharded,
                d.version,
            ],
        }


def main():
    import tensorflow as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    if not os.path.isdir(HERE):
        os.makedirs(HERE)
    train = model(tf)
    saver = tf.train.Saver()
    old = tf.train.Saver(write_version=tf.train.SaverDef.V1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train, {"x:0": X})
        saver.save(sess, os.path.join(HERE, "model"), write_state=False)
        meta = os.path.join(HERE, "model.meta")
        with open(meta, "rb") as plain, gzip.GzipFile(f"{meta}.gz", "wb", mtime=0) as packed:
            packed.write(plain.read())
        os.unlink(meta)
        old.save(sess, os.path.join(HERE, "v1"), write_state=False, write_meta_graph=False)
        np.savez_compressed(os.path.join(HERE, "now.npz"), **values(tf, sess))
        for _ in range(3):
            sess.run(train, {"x:0": X})
        np.savez_compressed(os.path.join(HERE, "later.npz"), **values(tf, sess))
    found = {title: nodes_of_saver(tf, build) for title, build in savers(tf)}
    with open(os.path.join(HERE, "savers.json"), "w") as file:
        json.dump(found, file, indent=None, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
