"""``tf.contrib.opt``."""

from headrace.api.missing import module_getattr
from headrace.train.optimizers.adam_variants import (
    AdaMaxOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
)
from headrace.train.optimizers.external_optimizer import (
    ExternalOptimizerInterface,
    ScipyOptimizerInterface,
)
from headrace.train.optimizers.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)

__all__ = [
    "AdaMaxOptimizer", "AdamWOptimizer", "DecoupledWeightDecayExtension",
    "ExternalOptimizerInterface", "LazyAdamOptimizer", "MomentumWOptimizer", "NadamOptimizer",
    "ScipyOptimizerInterface", "extend_with_decoupled_weight_decay",
]  # fmt: skip

__getattr__ = module_getattr("contrib.opt", __name__)
