"""``tf.contrib.layers``: tf_slim's layers (see ``headrace.api.hosting``), encoders and
embeddings.
"""

from headrace.api.contrib.layers_encoders import (
    bow_encoder,
    embed_sequence,
    embedding_lookup_unique,
    safe_embedding_lookup_sparse,
)
from headrace.api.hosting import hosted_getattr
from headrace.variables.initializers import (
    contrib_variance_scaling_initializer as variance_scaling_initializer,
)
from headrace.variables.initializers import xavier_initializer, xavier_initializer_conv2d

__all__ = [
    "bow_encoder", "embed_sequence", "embedding_lookup_unique", "safe_embedding_lookup_sparse",
    "variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip

__getattr__ = hosted_getattr(
    "contrib.layers",
    __name__,
    ["tf_slim.layers", "tf_slim.layers.sparse_ops"],
    {
        "initializers": "tf_slim.layers.initializers",
        "layers": "tf_slim.layers.layers",
        "optimizers": "tf_slim.layers.optimizers",
        "regularizers": "tf_slim.layers.regularizers",
        "summaries": "tf_slim.layers.summaries",
        "utils": "tf_slim.layers.utils",
    },
)
