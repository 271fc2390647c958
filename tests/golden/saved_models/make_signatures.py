"""SavedModels of TF 2 whose signatures take more than dense tensors, and Keras models of many
kinds: TensorFlow 2 writes and calls them, Headrace loads and calls them.

    python make_signatures.py FOLDER [NAME ...]     # in TensorFlow 2's Python: the models, answers
    python -m tests.golden.saved_models.make_signatures FOLDER --read     # Headrace's answers

``python make_signatures.py . specs inputs`` made what is in this folder.
"""

import json
import os
import sys

import numpy as np

RNG = np.random.RandomState(0)


def _floats(*shape):
    return RNG.rand(*shape).astype(np.float32)


# modules ------------------------------------------------------------------------------------------


def specs(tf):
    """Functions of ragged and sparse tensors; results of these kinds."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int64)])
        def means(self, ids):
            return tf.reduce_mean(tf.gather(self.w, ids), axis=1)

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None, None], tf.float32)])
        def deep(self, x):
            return x * 2.0

        @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
        def product(self, s):
            return tf.sparse.sparse_dense_matmul(s, self.w)

        @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
        def doubled(self, s):
            return {"sparse": s * 2.0, "rows": tf.RaggedTensor.from_sparse(s).row_lengths()}

        @tf.function(
            input_signature=[tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int32),
                             tf.TensorSpec([], tf.int64)]
        )  # fmt: skip
        def mixed(self, r, n):
            return r + n, tf.ragged.constant([[1], [2, 3]])

    return Model()


def _plain(value):
    """Lists of what a function gave."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "row_splits"):
        return value.to_list()
    if hasattr(value, "dense_shape"):
        return [_plain(value.indices), _plain(value.values), _plain(value.dense_shape)]
    found = np.asarray(value.numpy())
    return [x.decode() for x in found.ravel()] if found.dtype == object else found.tolist()


def call_specs(tf, model):
    sparse = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])
    ragged = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 3])
    ids = tf.ragged.constant([[0, 2], [1], [2, 2, 2]], dtype=tf.int64)
    deep = tf.ragged.constant([[[1.0], [2.0, 3.0]], [[4.0]]])
    short = tf.ragged.constant([[1, 2], [3]], dtype=tf.int64, row_splits_dtype=tf.int32)
    return {
        "means": _plain(model.means(ids)),
        "deep": _plain(model.deep(deep)),
        "product": _plain(model.product(sparse)),
        "doubled": _plain(model.doubled(ragged)),
        "mixed": _plain(model.mixed(short, tf.constant(5, tf.int64))),
    }


# Keras models -------------------------------------------------------------------------------------


def keras_models(tf):
    """name -> (a function that makes the model, feeds of its signature)."""
    k, layers = tf.keras, tf.keras.layers

    def sequential(shape, *parts, dtype="float32"):
        return lambda: k.Sequential([layers.Input(shape, dtype=dtype), *(p() for p in parts)])

    def inputs():
        a, b = layers.Input([3], name="a"), layers.Input([2], name="b")
        ids = layers.Input([4], dtype="int32", name="ids")
        rows = layers.Flatten()(layers.Embedding(7, 2)(ids))
        joined = layers.Concatenate()([layers.Dense(2)(a), b, rows])
        return k.Model([a, b, ids], {"p": layers.Dense(1)(joined), "q": layers.Dense(2)(joined)})

    def words():
        text = layers.Input([1], dtype="string", name="text")
        ids = layers.StringLookup(vocabulary=["a", "b", "c"])(text)
        return k.Model(text, layers.Embedding(5, 2)(ids))

    def text():
        made = layers.TextVectorization(output_sequence_length=4, vocabulary=["the", "cat", "sat"])
        lines = layers.Input([1], dtype="string", name="text")
        return k.Model(lines, layers.GlobalAveragePooling1D()(layers.Embedding(6, 3)(made(lines))))

    def attention():
        x = layers.Input([5, 4])
        return k.Model(x, layers.LayerNormalization()(layers.MultiHeadAttention(2, 3)(x, x)))

    def residual():
        x = layers.Input([8, 8, 3])
        y = layers.Conv2D(3, 3, padding="same")(x)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        return k.Model(x, layers.GlobalMaxPooling2D()(layers.Add()([x, y])))

    image, series = _floats(2, 8, 8, 3), _floats(2, 5, 4)
    return {
        "dense": (sequential([3], lambda: layers.Dense(4, "gelu"), lambda: layers.Dense(2)),
                  {"x": _floats(2, 3)}),
        "conv": (residual, {"x": image}),
        "separable": (sequential([8, 8, 3], lambda: layers.SeparableConv2D(4, 3, strides=2),
                                 lambda: layers.DepthwiseConv2D(3), layers.Flatten), {"x": image}),
        "transpose": (sequential([8, 8, 3], lambda: layers.Conv2DTranspose(2, 3, strides=2),
                                 layers.UpSampling2D), {"x": image}),
        "conv1d": (sequential([5, 4], lambda: layers.Conv1D(3, 2, dilation_rate=2),
                              layers.GlobalAveragePooling1D), {"x": series}),
        "lstm": (sequential([5, 4], lambda: layers.LSTM(3, return_sequences=True),
                            lambda: layers.Bidirectional(layers.LSTM(2))), {"x": series}),
        "gru": (sequential([5, 4], lambda: layers.GRU(3), lambda: layers.Dropout(0.5)),
                {"x": series}),
        "simple_rnn": (sequential([5, 4], lambda: layers.SimpleRNN(3)), {"x": series}),
        "norms": (sequential([5, 4], layers.BatchNormalization, layers.LayerNormalization,
                             lambda: layers.Softmax(axis=-1)), {"x": series}),
        "embedding": (sequential([4], lambda: layers.Embedding(7, 3), layers.Flatten,
                                 dtype="int32"), {"x": np.array([[1, 2, 3, 6]], np.int32)}),
        "attention": (attention, {"x": series}),
        "activations": (sequential([3], layers.LeakyReLU, lambda: layers.PReLU(),
                                   lambda: layers.ELU(), lambda: layers.Activation("swish"),
                                   lambda: layers.Activation("softplus")),
                        {"x": _floats(2, 3) - 0.5}),
        "inputs": (inputs, {"a": _floats(2, 3), "b": _floats(2, 2),
                            "ids": np.array([[1, 2, 3, 4], [0, 0, 6, 5]], np.int32)}),
        "words": (words, {"text": np.array([["a"], ["z"], ["c"]], object)}),
        "text": (text, {"text": np.array([["the cat sat"], ["a Cat!"]], object)}),
        "hashing": (sequential([1], lambda: layers.Hashing(5), dtype="string"),
                    {"x": np.array([["a"], ["z"]], object)}),
        "preprocessing": (sequential([8, 8, 3], lambda: layers.Rescaling(0.5, -1.0),
                                     lambda: layers.Resizing(4, 4),
                                     lambda: layers.CenterCrop(2, 2)),
                          {"x": image}),
        "category": (sequential([3], lambda: layers.CategoryEncoding(5, "multi_hot"),
                                dtype="int32"), {"x": np.array([[0, 2, 4]], np.int32)}),
    }  # fmt: skip


def write(tf, folder, names):
    kinds = keras_models(tf)
    for name in names or ["specs", *kinds]:
        path = os.path.join(folder, name)
        note = {}
        if name == "specs":
            model = specs(tf)
            tf.saved_model.save(model, path)
            note = {"answers": call_specs(tf, model)}
        else:
            make, feeds = kinds[name]
            tf.keras.utils.set_random_seed(1)
            make().export(path, verbose=False)
            found = tf.saved_model.load(path).signatures["serving_default"]
            keys = list(found.structured_input_signature[1])
            named = feeds if len(keys) > 1 else {keys[0]: next(iter(feeds.values()))}
            given = {key: tf.constant(v) for key, v in named.items()}
            note = {"feeds": {key: [v.dtype.name, v.tolist()] for key, v in named.items()},
                    "answers": _plain(found(**given))}  # fmt: skip
        with open(path + ".json", "w") as f:
            json.dump(note, f)
            f.write("\n")


def read(tf, folder, name):
    """(TensorFlow's answers, the answers here) of one model."""
    with open(os.path.join(folder, name + ".json")) as f:
        note = json.load(f)
    model = tf.saved_model.load(os.path.join(folder, name))
    if name == "specs":
        return note["answers"], call_specs(tf, model)
    given = {key: tf.constant(np.array(v, dtype)) for key, (dtype, v) in note["feeds"].items()}
    return note["answers"], _plain(model.signatures["serving_default"](**given))


def _read_all(folder):
    import headrace.api.v2 as tf
    from headrace.eager.eager_context import eager_mode

    failed = 0
    for name in sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".json")):
        try:
            with eager_mode():
                wanted, found = read(tf, folder, name)
            worst = "the same" if same(wanted, found) else "%s instead of %s" % (found, wanted)
        except Exception as error:
            worst = "%s: %s" % (type(error).__name__, error)
        failed += worst != "the same"
        print("%-16s %s" % (name, worst[:300]), flush=True)
    return failed


def same(wanted, found):
    """Whether two structures of lists agree, to the rounding of float32."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and set(wanted) == set(found) and all(
            same(v, found[k]) for k, v in wanted.items()
        )  # fmt: skip
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, float):
        return abs(wanted - found) <= 1e-5 * max(1.0, abs(wanted))
    return wanted == found


if __name__ == "__main__":
    if "--read" in sys.argv:
        sys.exit(_read_all(sys.argv[1]))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    write(tensorflow, sys.argv[1], sys.argv[2:])
