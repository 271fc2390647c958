"""What does the job of the parts of TensorFlow 1.15 that Headrace lacks.

A key is a dotted name without ``tf.``; it stands for everything below it. The longest key that fits
is taken. A test checks that none of them is there.
"""

from __future__ import annotations

__all__ = ["GONE", "INSTEAD", "instead_of"]

_MODEL = "build the model with tf.layers and train it in a tf.Session"
_NO_TPU = "there is no TPU here: run the same graph in a tf.Session"
_LITE = "save a SavedModel or a frozen GraphDef here, and convert that with TensorFlow"

INSTEAD = {
    "config.optimizer": "Headrace's own rewrites are always on (docs/rewrites.md)",
    "contrib.autograph": "tf.autograph.to_graph",
    "contrib.boosted_trees": "scikit-learn's GradientBoostingClassifier, called from Python",
    "contrib.cloud": "read a local copy of the files",
    "contrib.cluster_resolver": "tf.train.ClusterSpec with the addresses",
    "contrib.compiler": "leave it out: every graph is compiled (tf.function has jit_compile)",
    "contrib.distribute": "one process: leave the strategy out",
    "contrib.factorization.GMM": "scikit-learn's GaussianMixture, called from Python",
    "contrib.factorization.KMeansClustering": "tf.contrib.factorization.KMeans in a tf.Session",
    "contrib.factorization.WALSMatrixFactorization": "scikit-learn's NMF, called from Python",
    "contrib.factorization.WALSModel": "scikit-learn's NMF, called from Python",
    "contrib.gan": "write generator and discriminator losses with tf.losses and two optimizers",
    "contrib.keras": _MODEL,
    "contrib.layers.bucketized_column": "tf.feature_column.bucketized_column",
    "contrib.layers.crossed_column": "tf.feature_column.crossed_column",
    "contrib.layers.embedding_column": "tf.feature_column.embedding_column",
    "contrib.layers.input_from_feature_columns": "tf.feature_column.input_layer",
    "contrib.layers.one_hot_column": "tf.feature_column.indicator_column",
    "contrib.layers.real_valued_column": "tf.feature_column.numeric_column",
    "contrib.layers.sparse_column_with_hash_bucket": (
        "tf.feature_column.categorical_column_with_hash_bucket"
    ),
    "contrib.layers.sparse_column_with_integerized_feature": (
        "tf.feature_column.categorical_column_with_identity"
    ),
    "contrib.layers.sparse_column_with_keys": (
        "tf.feature_column.categorical_column_with_vocabulary_list"
    ),
    "contrib.layers.weighted_sparse_column": "tf.feature_column.weighted_categorical_column",
    "contrib.learn": _MODEL,
    "contrib.nccl": "there is one device: add the tensors with tf.add_n",
    "contrib.quantize": "quantize the saved graph with TensorFlow",
    "contrib.tensorrt": "there is no GPU here: run the graph as it is",
    "contrib.timeseries": _MODEL,
    "contrib.tpu": _NO_TPU,
    "distribute": "one process: leave the strategy out",
    "estimator": _MODEL,
    "keras": _MODEL + "; tf.keras.optimizers are there in the v2 API",
    "lite": _LITE,
    "tpu": _NO_TPU,
    "xla": "tf.function(jit_compile=True)",
}

#: The same for TensorFlow 2's API, where it is something else.
_INSTEAD_V2 = {
    "keras": (
        "write the layers as tf.Modules and train them with tf.GradientTape; tf.keras.optimizers "
        "are there"
    ),
    "estimator": "write the layers as tf.Modules and train them with tf.GradientTape",
}

#: Parts of tf.contrib that TensorFlow 1.15 has no longer itself.
GONE = ("contrib.gan", "contrib.nccl")


def instead_of(path: str, api: str = "v1") -> str | None:
    """What to use instead of ``tf.<path>``; None if nothing is known."""
    known = {**INSTEAD, **_INSTEAD_V2} if api == "v2" else INSTEAD
    while path:
        if path in known:
            return known[path]
        path = path.rpartition(".")[0]
    return None
