"""What a program builds and gives: operations, variables, collections, first values, outputs,
gradients.

Used with TF 1.15 to make golden data and with Headrace to compare. Works on Python 3.7.
"""

import numpy as np

_COLLECTIONS = (
    "variables",
    "trainable_variables",
    "local_variables",
    "model_variables",
    "update_ops",
    "regularization_losses",
    "losses",
    "moving_average_variables",
)


def _names(graph, key):
    return [getattr(x, "name", str(x)) for x in graph.get_collection(key)]


def observe(tf, program):
    """(structure, arrays): names as JSON data, values as NumPy arrays."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        outputs = program(tf)
        structure = {
            "ops": [[op.name, op.type] for op in graph.get_operations()],
            "variables": [
                [v.name, v.shape.as_list(), v.dtype.base_dtype.name] for v in tf.global_variables()
            ],
            "collections": {key: _names(graph, key) for key in _COLLECTIONS if _names(graph, key)},
            "shapes": {k: [v.name, _shape(v)] for k, v in sorted(outputs.items())},
        }
        floats = [outputs[k] for k in sorted(outputs) if outputs[k].dtype.is_floating]
        trained = tf.trainable_variables()
        grads = tf.gradients(floats, trained) if trained and floats else []
        keep = [(v, g) for v, g in zip(trained, grads) if g is not None]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(tf.tables_initializer())
            arrays = {"init:" + v.name: sess.run(v) for v in tf.global_variables()}
            dense = {v.name: tf.convert_to_tensor(g) for v, g in keep}
            values = sess.run({"out": outputs, "grad": dense})
        for kind, found in values.items():
            arrays.update({"%s:%s" % (kind, k): np.asarray(v) for k, v in found.items()})
    return structure, arrays


def _shape(tensor):
    return None if tensor.shape.ndims is None else tensor.shape.as_list()
