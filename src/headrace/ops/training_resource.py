"""Training ops on resource variables: the same kernels as on references, given the handles' values."""

from __future__ import annotations

from headrace.ops.training_ops import define_dense
from headrace.ops.training_rules import RULES
from headrace.ops.training_sparse import define_sparse

__all__: list[str] = []

for _rule in RULES.values():
    define_dense(_rule, "ResourceApply", "resource")
    if "sparse" in _rule.forms:
        define_sparse(_rule, "ResourceSparseApply", "resource")
