"""``tf.optimizers`` (``tf.keras.optimizers``): TF 2's optimizers."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.optimizers import schedules
from headrace.train.optimizers.optimizer_v2 import OptimizerV2 as Optimizer
from headrace.train.optimizers.standard_v2 import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    Ftrl,
    Nadam,
    RMSprop,
)

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "schedules",
]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v2 import optimizers as legacy

    __all__ += ["legacy"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("optimizers", __name__, modules={"legacy": __name__})
