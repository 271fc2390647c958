"""Training ops on resource variables.

The same kernels as on references, given the handles' values.
"""

from __future__ import annotations

from headrace.core.opdef import add_traits
from headrace.ops.training.apply_ops import define_dense
from headrace.ops.training.sparse_apply import define_sparse
from headrace.ops.training.update_rules import RULES

__all__: list[str] = []

for _rule in RULES.values():
    define_dense(_rule, "ResourceApply", "resource")
    if "sparse" in _rule.forms:
        define_sparse(_rule, "ResourceSparseApply", "resource")

add_traits("ResourceApplyGradientDescent", update="{0} - {1} * {2}")
