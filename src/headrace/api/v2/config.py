"""``tf.config``: devices and functions."""

from headrace.api.v1.config import *  # noqa: F403
from headrace.api.v2.name_lookup import module_getattr

_FUNCTIONS = dict.fromkeys(
    ["experimental_run_functions_eagerly", "functions_run_eagerly", "run_functions_eagerly"],
    "headrace.functions.function",
)

__getattr__ = module_getattr(
    "config", __name__, names=_FUNCTIONS, fallback="headrace.api.v1.config"
)
