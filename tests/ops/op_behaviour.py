"""Small programs whose outcome is compared with TF 1.15's: values, static shape and dtype, or class
and stage of the error.

Importable without Headrace: ``python tests/ops/op_behaviour.py`` in an environment with TF 1.15
writes tests/golden/op_behaviour.json. A case is a few statements and an expression, which is built
and then run; ``feed`` is its feed_dict. Python 3.7 syntax.
"""

import json
import os
import warnings

import numpy as np

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.path.join(HERE, "golden", "op_behaviour_cases.txt")
GOLDEN = os.path.join(HERE, "golden", "op_behaviour.json")


def cases():
    """The cases of the file, in its order; lines that begin with ``#`` are comments."""
    with open(CASES) as f:
        lines = [line for line in f.read().split("\n") if not line.startswith("#")]
    return [c.strip() for c in "\n".join(lines).split("\n---\n") if c.strip()]


def outcome(tf, source):
    """``{"static", "values"}`` or ``{"error", "stage"}``."""
    *before, last = source.split("\n")
    names = {"tf": tf, "np": np}
    stage = "build"
    with tf.Graph().as_default():
        try:
            exec("\n".join(before), names)
            made = eval(last, names)
            flat = tf.nest.flatten(made) if isinstance(made, (list, tuple)) else [made]
            stage = "run"
            with tf.Session() as session:
                values = session.run(flat, names.get("feed", {}))
        except Exception as error:
            return {"error": type(error).__name__, "stage": stage}
    static = [[t.dtype.name, None if t.shape.ndims is None else t.shape.as_list()] for t in flat]
    return {"static": static, "values": [plain(v) for v in values]}


def plain(value):
    """A value as JSON: shape and elements, numbers that JSON lacks as text."""
    array = np.asarray(value)
    return [list(array.shape), [_item(x) for x in array.reshape(-1).tolist()]]


def _item(x):
    if isinstance(x, complex):
        return [_item(x.real), _item(x.imag)]
    if isinstance(x, bytes):
        return x.decode("latin-1")
    if isinstance(x, float) and (x != x or x in (float("inf"), float("-inf"))):
        return repr(x)
    return x


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    tensorflow.compat.v1.logging.set_verbosity("FATAL")
    found = {c: outcome(tensorflow, c) for c in cases()}
    with open(GOLDEN, "w") as f:
        f.write(
            "{\n"
            + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in found.items())
            + "\n}\n"
        )
    print(GOLDEN, len(found))
