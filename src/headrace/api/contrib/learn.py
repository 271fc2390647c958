"""``tf.contrib.learn``: its data sets, preprocessing and the names of modes."""

from headrace.api.missing import module_getattr

__all__ = ["ModeKeys"]


class ModeKeys:
    """What a model function is called for: ``TRAIN``, ``EVAL`` or ``INFER``."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


__getattr__ = module_getattr(
    "contrib.learn",
    __name__,
    modules={
        "datasets": "headrace.api.contrib.learn_datasets",
        "preprocessing": "headrace.api.contrib.learn_preprocessing",
    },
)
