"""``tf.optimizers.schedules``: learning rates as functions of the step."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.train.schedules_v2 import (
    CosineDecay,
    CosineDecayRestarts,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRateSchedule,
    PiecewiseConstantDecay,
    PolynomialDecay,
)

__all__ = [
    "CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay",
    "LearningRateSchedule", "PiecewiseConstantDecay", "PolynomialDecay",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("optimizers.schedules", __name__)
