"""Samples with one input spoiled, as raw ops: ``python raw_ops.py tensorflow|headrace SEED COUNT
[KEYS] > outcomes``, a JSON object a line. Cases whose key is a line of the file KEYS are left out
(those that a process which TensorFlow ended has done).

Each sample of tests/samples is called ``COUNT`` times through ``tf.raw_ops`` with one input of
another rank, size or range. Inputs are constants, placeholders of known shape or of unknown shape.
The outcome says where the call ended (``build``, ``run``, ``ok``), the error's class, and the
static shapes. This file runs under TensorFlow's Python 3.7 too.
"""

import inspect
import json
import os
import random
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

#: Families of samples without state of their own.
FAMILIES = (
    "array",
    "basic",
    "image",
    "indexing",
    "linalg",
    "math",
    "nn",
    "parsing",
    "reductions",
    "single_precision",
    "sparse_strings",
)


#: Parameters of ``tf.raw_ops`` that have other names than the op's inputs and attributes.
RENAMED = {
    "reduction_indices": "axis",
    "dim": "axis",
    "split_dim": "axis",
    "squeeze_dims": "axis",
    "t": "x",
    "e": "y",
}


def parameter(op, name, takes):
    """What ``tf.raw_ops`` calls an input or attribute of a sample."""
    if op == "Where" and name == "input":
        return "condition"
    return RENAMED[name] if name in RENAMED and name not in takes else name


def samples():
    import importlib

    for family in FAMILIES:
        for sample in importlib.import_module("tests.samples." + family).SAMPLES:
            if sample.op != "Const":  # the raw op takes a TensorProto
                yield family, sample


def spoiled(rng, array):
    """The array with another rank, size or value; as it is in one case of eight."""
    array = np.asarray(array)
    how = rng.randrange(8)
    if how <= 1:
        return array.reshape((1,) + array.shape)
    if how == 2 and array.ndim:
        return np.asarray(array[0], array.dtype) if array.shape[0] else array.reshape(0)
    if how == 3 and array.ndim:
        axis = rng.randrange(array.ndim)
        return np.concatenate([array, array], axis)
    if how == 4 and array.ndim:
        return np.take(array, [], rng.randrange(array.ndim))
    if how == 5 and array.ndim:
        axis = rng.randrange(array.ndim)
        return np.take(array, range(max(array.shape[axis] - 1, 0)), axis)
    if how == 6 and array.dtype.kind in "iu" and array.size:
        array = array.copy()
        wrong = np.array(rng.choice([-1, -3, 0, 7, 100])).astype(array.dtype)
        array.reshape(-1)[rng.randrange(array.size)] = wrong
        return array
    return array


def case_of(sample, rng):
    """{name: [(array, how)]}: how is const, known or unknown."""
    places = [
        (name, i)
        for name, value in sorted(sample.inputs.items())
        for i in range(len(value) if isinstance(value, (list, tuple)) else 1)
    ]
    wrong = rng.choice(places) if places else None
    made = {}
    for name, value in sorted(sample.inputs.items()):
        many = isinstance(value, (list, tuple))
        row = []
        for i, array in enumerate(value if many else [value]):
            array = spoiled(rng, array) if (name, i) == wrong else np.asarray(array)
            if name in sample.const:
                how = rng.choice(["const", "const", "unknown"])
            else:
                how = rng.choice(["known", "known", "unknown", "const"])
            row.append((array, how))
        made[name] = (row, many)
    return made


def tensor_of(tf, array, how, feeds):
    if array.dtype == object:
        dtype = tf.string
    else:
        dtype = tf.as_dtype(array.dtype)
    if how == "const":
        return tf.constant(array, dtype)
    tensor = tf.placeholder(dtype, array.shape if how == "known" else None)
    feeds[tensor] = array
    return tensor


def outcome(tf, sample, case):
    stage, feeds = "build", {}
    try:
        with tf.Graph().as_default():
            call = getattr(tf.raw_ops, sample.op)
            takes = inspect.signature(call).parameters
            named = {parameter(sample.op, k, takes): v for k, v in sample.attrs.items()}
            kwargs = {k: v for k, v in named.items() if k in takes}
            for name, (row, many) in case.items():
                tensors = [tensor_of(tf, a, how, feeds) for a, how in row]
                kwargs[parameter(sample.op, name, takes)] = tensors if many else tensors[0]
            result = call(**kwargs)
            flat = list(result) if isinstance(result, (list, tuple)) else [result]
            flat = [t for r in flat for t in (r if isinstance(r, list) else [r])]
            static = [
                None if t.shape.ndims is None else t.shape.as_list()
                for t in flat
                if isinstance(t, tf.Tensor)
            ]
            stage = "run"
            with tf.Session() as session:
                found = session.run([t for t in flat if isinstance(t, tf.Tensor)], feeds)
        return {"stage": "ok", "static": static, "shapes": [list(np.shape(f)) for f in found]}
    except Exception as error:
        return {"stage": stage, "error": type(error).__name__, "text": str(error)[:200]}


def main(name, seed, count, skip):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import importlib

    module = importlib.import_module(name)
    tf = getattr(getattr(module, "compat", None), "v1", module)
    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.raw_ops = module.raw_ops
    for number, (family, sample) in enumerate(samples()):
        for k in range(int(count)):
            key = f"{family} {sample.id} {number} {k}"
            if key in skip:
                continue
            case = case_of(sample, random.Random(f"{seed} {key}"))
            shown = {
                n: [f"{a.dtype}{list(a.shape)} {how}" for a, how in row]
                for n, (row, _) in case.items()
            }
            print(json.dumps({"key": key, "stage": "begun"}), flush=True)
            found = outcome(tf, sample, case)
            found.update(key=key, op=sample.op, shown=shown, attrs=repr(sample.attrs)[:120])
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    done = set()
    if sys.argv[4:]:
        with open(sys.argv[4]) as keys:
            done = set(keys.read().splitlines())
    main(sys.argv[1], sys.argv[2], sys.argv[3], done)
