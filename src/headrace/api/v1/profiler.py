"""``tf.profiler``: counts of parameters and operations, times of traced runs."""

from headrace.api.missing import module_getattr
from headrace.profiler.model_profile import Profiler, profile
from headrace.profiler.profile_options import ProfileOptionBuilder

__all__ = ["ProfileOptionBuilder", "Profiler", "profile"]

_MESSAGES = "headrace.profiler.profile_messages"

__getattr__ = module_getattr(
    "profiler",
    __name__,
    names={
        name: f"{_MESSAGES}:{name}"
        for name in ("GraphNodeProto", "MultiGraphNodeProto", "OpLogProto")
    },
)
