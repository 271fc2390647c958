"""SavedModels of TF 2 with tables: run with TensorFlow 2 in this folder.

    python make_tables.py

Writes the models and what their signatures answer (tables.json).
"""

import json
import os
import tempfile
from typing import Any

import tensorflow as tf

ANSWERS: dict[str, Any] = {}


def keep(name: str, feeds: dict[str, Any]) -> None:
    """The answers of a saved model's signature."""
    signature = tf.saved_model.load(name).signatures["serving_default"]
    found = signature(**{k: tf.constant(v) for k, v in feeds.items()})
    values = {k: v.numpy().tolist() for k, v in found.items()}
    decoded = {
        k: [x.decode() for x in v] if isinstance(v[0], bytes) else v for k, v in values.items()
    }
    ANSWERS[name] = {"feeds": feeds, "results": decoded}


class Static(tf.Module):
    """A vocabulary file (an asset) with buckets for other words, and a table from constants."""

    def __init__(self, path: str) -> None:
        lines = tf.lookup.TextFileIndex
        words = tf.lookup.TextFileInitializer(
            path, tf.string, lines.WHOLE_LINE, tf.int64, lines.LINE_NUMBER
        )
        self.words = tf.lookup.StaticVocabularyTable(words, 3)
        pairs = tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 2, 3], tf.int64), tf.constant(["a", "b", "c"])
        )
        self.names = tf.lookup.StaticHashTable(pairs, "?")
        self.rows = tf.Variable(tf.reshape(tf.range(32.0), [8, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def f(self, words: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = self.words.lookup(words)
        return {"ids": ids, "rows": tf.gather(self.rows, ids), "names": self.names.lookup(ids)}


class Mutable(tf.Module):
    """Tables whose entries are in the checkpoint."""

    def __init__(self) -> None:
        self.t = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.t.insert(tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64))
        self.d = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, -1.0, empty_key=-100, deleted_key=-101, initial_num_buckets=8
        )
        self.d.insert(tf.constant([1, 2], tf.int64), tf.constant([0.5, 1.5]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def f(self, words: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = self.t.lookup(words)
        return {"ids": ids, "numbers": self.d.lookup(ids - 4)}


def text_model() -> None:
    """Keras: strings are split, looked up and averaged as embeddings."""
    keras = tf.keras
    split = keras.layers.TextVectorization(max_tokens=20, output_sequence_length=6)
    split.adapt(["the cat sat", "a dog on the mat", "Hello, World!"])
    text = keras.Input((1,), dtype="string", name="text")
    rows = keras.layers.Embedding(20, 3)(split(text))
    out = keras.layers.GlobalAveragePooling1D()(rows)
    keras.Model(text, out).export("text", verbose=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = os.path.join(folder, "words.txt")
        with open(vocabulary, "w") as file:
            file.write("the\ncat\nsat\non\nmat\n")
        static = Static(vocabulary)
        tf.saved_model.save(static, "tables", signatures=static.f)
    keep("tables", {"words": ["cat", "dog", "mat"]})
    mutable = Mutable()
    tf.saved_model.save(mutable, "mutable_tables", signatures=mutable.f)
    keep("mutable_tables", {"words": ["b", "zz"]})
    text_model()
    keep("text", {"text": [["the Cat, sat!"], ["hello zebra"]]})
    with open("tables.json", "w") as file:
        json.dump(ANSWERS, file)
