"""``tf.contrib.losses``: tf_slim's (see ``headrace.api.hosting``)."""

from headrace.api.hosting import hosted_getattr

__all__: list[str] = []

__getattr__ = hosted_getattr(
    "contrib.losses",
    __name__,
    ["tf_slim.losses.loss_ops"],
    {"metric_learning": "tf_slim.losses.metric_learning"},
)
