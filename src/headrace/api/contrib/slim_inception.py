"""``tf.contrib.slim.nets.inception``: the three Inception networks in one namespace."""

from headrace.api.hosting import hosted_getattr

__all__: list[str] = []

__getattr__ = hosted_getattr(
    "contrib.slim.nets.inception",
    __name__,
    ["tf_slim.nets.inception_v1", "tf_slim.nets.inception_v2", "tf_slim.nets.inception_v3"],
)
