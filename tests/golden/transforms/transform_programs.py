"""Graphs for ``optimize_for_inference`` and ``TransformGraph``, and what is done to them.

With TF 1.15's Python, ``python transform_programs.py`` writes graph.pb and answers.json into this
folder. Python 3.7 syntax.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
X = (np.arange(2 * 8 * 8 * 3).reshape(2, 8, 8, 3) % 7).astype(np.float32) / 7


def graph_of(tf):
    """Convolutions, batch norms of both kinds, training nodes, duplicates, constants to fold."""
    rng = np.random.RandomState(0)

    def constant(shape, name, low=-1.0):
        return tf.constant(rng.uniform(low, 1, shape).astype(np.float32), name=name)

    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    with tf.device("/device:CPU:0"):
        y = tf.nn.conv2d(x, constant([3, 3, 3, 4], "w1"), [1, 1, 1, 1], "SAME", name="conv1")
    y = tf.raw_ops.FusedBatchNorm(
        x=y,
        scale=constant([4], "gamma", 0.5),
        offset=constant([4], "beta"),
        mean=constant([4], "mean"),
        variance=constant([4], "variance", 0.5),
        is_training=False,
        name="norm1",
    )[0]
    y = tf.nn.relu(y, name="relu1")
    y = tf.nn.conv2d(y, constant([1, 1, 4, 4], "w3"), [1, 1, 1, 1], "SAME", name="conv2")
    y = tf.multiply(y, constant([4], "factor"), name="scaled")
    y = tf.identity(tf.nn.tanh(y, name="tanh"), name="keep")
    y = tf.nn.depthwise_conv2d(y, constant([3, 3, 4, 1], "w2"), [1, 1, 1, 1], "SAME", name="depth")
    a = tf.add(y, tf.multiply(tf.constant(2.0, name="two"), 3.0, name="six"), name="a")
    b = tf.add(y, tf.multiply(tf.constant(2.0, name="again"), 3.0, name="six_again"), name="b")
    c = tf.add(tf.nn.relu(a, name="r1"), tf.nn.relu(a, name="r2"), name="c")
    tf.reduce_mean(tf.check_numerics(c * b, "bad", name="check"), [1, 2], name="y")
    tf.square(x, name="unused")


TRANSFORMS = {
    "strip": ["strip_unused_nodes"],
    "strip_typed": ['strip_unused_nodes(type=float, shape="2,8,8,3")'],
    "fold": ["fold_constants(ignore_errors=true)"],
    "norms": ["fold_batch_norms"],
    "old_norms": ["fold_old_batch_norms"],
    "identities": ["remove_nodes(op=Identity, op=CheckNumerics)"],
    "duplicates": ["merge_duplicate_nodes"],
    "devices": ["remove_device"],
    "attribute": ["remove_attribute(attribute_name=data_format)"],
    "attribute_of": ["remove_attribute(attribute_name=dilations, op_name=Conv2D)"],
    "rename": ["rename_op(old_op_name=Relu, new_op_name=Relu6)"],
    "rounded": ["round_weights(num_steps=16)"],
    "sorted": ["sort_by_execution_order"],
    "all": [
        "strip_unused_nodes",
        "remove_nodes(op=Identity, op=CheckNumerics)",
        "fold_constants(ignore_errors=true)",
        "fold_batch_norms",
        "fold_old_batch_norms",
        "merge_duplicate_nodes",
        "remove_device",
        "sort_by_execution_order",
    ],
}


def described(message):
    """Nodes in their order: name, type, inputs, device and names of attributes."""
    return [
        [n.name, n.op, list(n.input), n.device, sorted(k for k in n.attr if k != "_output_shapes")]
        for n in message.node
    ]


def run(tf, message):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        return session.run("y:0", {"x:0": X}).tolist()


def transformed(tf, message, TransformGraph, optimize):
    """Results by name: nodes and outputs."""
    out = {}
    for name, transforms in TRANSFORMS.items():
        out[name] = TransformGraph(message, ["x"], ["y"], transforms)
    kind = tf.float32.as_datatype_enum
    # TF 1.15's function loses the inputs of nodes behind a CheckNumerics
    clean = TransformGraph(message, ["x"], ["y"], ["remove_nodes(op=CheckNumerics)"])
    out["optimize"] = optimize(clean, ["x"], ["y"], kind)
    out["optimize_toco"] = optimize(clean, ["x"], ["y"], kind, True)
    return {k: [described(m), run(tf, m)] for k, m in out.items()}


def main():
    import tensorflow as tf
    from tensorflow.python.tools.optimize_for_inference_lib import optimize_for_inference
    from tensorflow.tools.graph_transforms import TransformGraph

    with tf.Graph().as_default() as graph:
        graph_of(tf)
        message = graph.as_graph_def()
    with open(os.path.join(HERE, "graph.pb"), "wb") as file:
        file.write(message.SerializeToString())
    with open(os.path.join(HERE, "answers.json"), "w") as file:
        json.dump(transformed(tf, message, TransformGraph, optimize_for_inference), file)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
