"""``tf.estimator``: the names of modes. Estimators themselves are not here yet."""

import typing as _typing

from headrace.api.missing import module_getattr

__all__ = ["ModeKeys"]


class ModeKeys:
    """What a model function is called for; many programs use these names without an estimator."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("estimator", __name__)
