"""Names, types and static shapes of what calls return, as TF 1.15 gives them: writes
result_names.json next to this file (tests/api/test_result_names.py reads it).

The calls are those of op_counts.json and of result_name_calls.txt (one a line). Run it with TF
1.15's Python; tests/api/test_result_names.py compares. Python 3.7 syntax.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from op_count_inputs import inputs  # noqa: E402


def calls():
    with open(os.path.join(HERE, "op_counts.json")) as f:
        found = [row[0] for row in json.load(f)]
    with open(os.path.join(HERE, "result_name_calls.txt")) as f:
        found += [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return list(dict.fromkeys(found))


def results(tf, call, known):
    """[class of a named tuple or "", [name, dtype, shape] of each result] or the class of the
    error.
    """
    with tf.Graph().as_default():
        names = inputs(tf, known)
        try:
            made = eval(call, names)
        except SyntaxError:
            return ["statement", []]
        except Exception as error:
            return [type(error).__name__, []]
        kind = type(made).__name__ if isinstance(made, tuple) and hasattr(made, "_fields") else ""
        return [kind, [described(tf, x) for x in flat(tf, made)]]


def flat(tf, value):
    if isinstance(value, dict):
        return [y for k in sorted(value, key=str) for y in flat(tf, value[k])]
    if isinstance(value, (list, tuple)):
        return [y for x in value for y in flat(tf, x)]
    if isinstance(value, tf.SparseTensor):
        return flat(tf, [value.indices, value.values, value.dense_shape])
    if isinstance(value, tf.IndexedSlices):
        return flat(tf, [value.values, value.indices, value.dense_shape])
    return [value]


def described(tf, x):
    if isinstance(x, tf.Tensor):
        return [x.name, x.dtype.name, None if x.shape.ndims is None else x.shape.as_list()]
    if isinstance(x, (tf.Operation, tf.Variable)):
        return [x.name, "", None]
    return [type(x).__name__, "", None]


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    tensorflow.compat.v1.logging.set_verbosity("FATAL")
    rows = [
        json.dumps([c, results(tensorflow, c, True), results(tensorflow, c, False)])
        for c in calls()
    ]
    with open(os.path.join(HERE, "result_names.json"), "w") as f:
        f.write("[\n" + ",\n".join(rows) + "\n]\n")
    print(len(rows))
