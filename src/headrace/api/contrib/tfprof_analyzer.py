"""``tf.contrib.tfprof.model_analyzer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.api.missing import module_getattr
from headrace.profiler.model_profile import profile
from headrace.profiler.profile_options import ProfileOptionBuilder

if TYPE_CHECKING:
    from headrace.core.graph import Graph


__all__ = [
    "FLOAT_OPS_OPTIONS", "PRINT_ALL_TIMING_MEMORY", "TRAINABLE_VARS_PARAMS_STAT_OPTIONS",
    "print_model_analysis",
]  # fmt: skip

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY = {**ProfileOptionBuilder.time_and_memory(), "order_by": "name"}


def print_model_analysis(
    graph: Graph,
    run_meta: object = None,
    op_log: object = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] | None = None,
) -> Any:
    """``tf.profiler.profile`` with the older names of its arguments.

    ``tfprof_cmd`` is the ``cmd`` of ``tf.profiler.profile`` ("scope", "op", "code" or "graph") and
    ``tfprof_options`` its ``options``; ``run_meta`` is the RunMetadata of a traced run.
    """
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


__getattr__ = module_getattr("contrib.tfprof.model_analyzer", __name__)
