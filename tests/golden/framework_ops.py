"""What functions of ``tensorflow.python.framework.ops`` answer, as text.

Made with TensorFlow 1.15: ``python tests/golden/framework_ops.py`` writes framework_ops.json.
The test runs :func:`answers` on Headrace.
"""

import json
import os


def told(function, *args, **kwargs):
    try:
        return str(function(*args, **kwargs))
    except (TypeError, ValueError) as e:
        return type(e).__name__


def converted(convert, value, dtype):
    return type(convert(value, dtype)).__name__


def answers(tf, ops):
    found = {}

    def add(key, function, *args, **kwargs):
        found[key] = told(function, *args, **kwargs)

    with tf.Graph().as_default() as graph:
        tensor = tf.constant([1.0, 2.0], name="t")
        variable = tf.Variable([1.0], name="v")
        sparse = tf.SparseTensor([[0]], [1.0], [2])
        slices = tf.IndexedSlices(tensor, tf.constant([0, 1]))
        values = {"tensor": tensor, "variable": variable, "sparse": sparse, "slices": slices}
        values.update(number=1.0, text="x", none=None)
        for name, value in values.items():
            add("dense " + name, ops.is_dense_tensor_like, value)
            for dtype in (None, tf.float32, tf.int32):
                key = "convert %s to %s" % (name, dtype and dtype.name)
                add(key, converted, tf.convert_to_tensor_or_indexed_slices, value, dtype)
        add("preferred", ops.internal_convert_to_tensor, 1, preferred_dtype=tf.float64, name="p")
        add("several", ops.internal_convert_n_to_tensor, [1, 2.0], name="n")
        add("several with none", ops.convert_n_to_tensor_or_indexed_slices, [None, 1], name="m")
        add("none several", ops.internal_convert_n_to_tensor, 3)
        for name in ("a/b/", "a", "", None):
            add("scope name %r" % (name,), ops.name_from_scope_name, name)
        for text in ("hidden/w:0", "^hidden/w", "loc:@hidden/w", "other/w", ""):
            add("strip " + text, ops.strip_name_scope, text, "hidden")
            add("prepend " + text, ops.prepend_name_scope, text, "again/")
        with tf.name_scope("one"), tf.name_scope("two"):
            add("scope", ops.get_name_scope)
        add("inside", ops.inside_function)
        add("outside", ops.executing_eagerly_outside_functions)
        found["uids"] = str(ops.uid() < ops.uid())
        other = tf.Graph()
        with other.as_default():
            there = tf.constant(1.0)
            for name, inputs in (("", []), ("t", [tensor]), ("mixed", [tensor, there])):
                for label, given in (("none", None), ("graph", graph), ("other", other)):
                    ask = lambda i, g: {graph: "graph", other: "other"}[
                        ops._get_graph_from_inputs(i, g)
                    ]
                    add("graph of [%s] given %s" % (name, label), ask, inputs, given)
        add("graph given 3", ops._get_graph_from_inputs, [], 3)
        add("shape function", lambda: ops.RegisterShape("Op")(told) is told)
        add("shape function of 3", ops.RegisterShape, 3)
        add("dense type", ops.register_dense_tensor_like_type, str)
    return found


if __name__ == "__main__":
    import tensorflow
    from tensorflow.python.framework import ops as of_tensorflow

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "framework_ops.json"), "w") as f:
        json.dump(answers(tensorflow, of_tensorflow), f, indent=0, sort_keys=True)
        f.write("\n")
