"""Keras' text layers that count words, and the bincount ops: run with TensorFlow 2 in this folder.

    python make_counts.py

Writes the model ``counts``, and what its signature and the ops answer (counts.json).
"""

import json

import tensorflow as tf

WORDS = ["the Cat, sat! the", "hello zebra", ""]


def model() -> dict:
    """One input, one output for each way of counting."""
    keras = tf.keras
    text = keras.Input((), dtype="string", name="text")
    outputs = {}
    for mode in ("multi_hot", "count", "tf_idf"):
        layer = keras.layers.TextVectorization(max_tokens=20, output_mode=mode)
        layer.adapt(["the cat sat", "a dog on the mat", "Hello, World!"])
        outputs[mode] = layer(text)
    keras.Model(text, outputs).export("counts", verbose=False)
    signature = tf.saved_model.load("counts").signatures["serving_default"]
    found = signature(text=tf.constant(WORDS))
    return {
        "feeds": {"text": WORDS}, "results": {k: v.numpy().tolist() for k, v in found.items()}
    }  # fmt: skip


def op_cases() -> list:
    """Calls of the ops: name, arguments, result or the class of the error."""
    parts, sparse = [0, 2, 2, 5], [[0, 1], [0, 3], [2, 0], [2, 4], [2, 5]]
    values, weights = [1, 7, 0, 2, 2], [0.5, 1.5, 2.0, 3.0, -1.0]
    calls = []
    for binary in (False, True):
        for given in ([], weights):
            calls.append(("RaggedBincount", [parts, values, 4, given], binary))
            calls.append(("SparseBincount", [sparse, values, [3, 6], 4, given], binary))
            flat = [[i] for i in range(5)]
            calls.append(("SparseBincount", [flat, values, [5], 8, given], binary))
            calls.append(("DenseBincount", [values, 3, given], binary))
    calls.append(("RaggedBincount", [[1, 5], values, 4, []], False))
    calls.append(("RaggedBincount", [[0, 4], values, 4, []], False))
    calls.append(("RaggedBincount", [[0, 5], [1, -7, 0, 2, 2], 4, []], False))
    calls.append(("RaggedBincount", [[0, 5], values, -1, []], False))
    calls.append(("SparseBincount", [[[3, 0]], [1], [3, 6], 4, []], False))
    return [[name, given, binary, _answer(name, given, binary)] for name, given, binary in calls]


def _answer(name: str, given: list, binary: bool) -> list:
    types = [tf.int64] * (len(given) - 1) + [tf.float32]
    arguments = [tf.constant(v, t) for v, t in zip(given, types)]
    try:
        named = dict(zip(ARGUMENTS[name], arguments))
        return getattr(tf.raw_ops, name)(**named, binary_output=binary).numpy().tolist()
    except tf.errors.OpError as error:
        return [type(error).__name__]


ARGUMENTS = {
    "RaggedBincount": ["splits", "values", "size", "weights"],
    "SparseBincount": ["indices", "values", "dense_shape", "size", "weights"],
    "DenseBincount": ["input", "size", "weights"],
}

if __name__ == "__main__":
    with open("counts.json", "w") as file:
        json.dump({"counts": model(), "ops": op_cases()}, file)
