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
from headrace.train.optimizers.matrix_optimizers import GGTOptimizer, ShampooOptimizer
from headrace.train.optimizers.sign_optimizers import (
    AddSignOptimizer,
    PowerSignOptimizer,
)
from headrace.train.optimizers.step_adam import (
    AdamGSOptimizer,
    LazyAdamGSOptimizer,
    RegAdagradOptimizer,
)
from headrace.train.optimizers.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from headrace.train.optimizers.wrapping_optimizers import (
    DropStaleGradientOptimizer,
    LARSOptimizer,
    MovingAverageOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AdaMaxOptimizer", "AdamGSOptimizer", "AdamWOptimizer", "AddSignOptimizer",
    "DecoupledWeightDecayExtension", "DropStaleGradientOptimizer", "ExternalOptimizerInterface",
    "GGTOptimizer",
    "LARSOptimizer", "LazyAdamGSOptimizer", "LazyAdamOptimizer", "MomentumWOptimizer",
    "MovingAverageOptimizer", "MultitaskOptimizerWrapper", "NadamOptimizer", "PowerSignOptimizer",
    "RegAdagradOptimizer", "ScipyOptimizerInterface", "ShampooOptimizer",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm", "extend_with_decoupled_weight_decay",
]  # fmt: skip

__getattr__ = module_getattr("contrib.opt", __name__)
