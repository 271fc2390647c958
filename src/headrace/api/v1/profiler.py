"""``tf.profiler``: counts of parameters and operations, times of traced runs."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.profiler.model_profile import Profiler, profile
from headrace.profiler.profile_options import ProfileOptionBuilder

__all__ = ["ProfileOptionBuilder", "Profiler", "profile"]

_MESSAGES = "headrace.profiler.profile_messages"

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.profiler.profile_messages import GraphNodeProto as GraphNodeProto
    from headrace.profiler.profile_messages import MultiGraphNodeProto as MultiGraphNodeProto
    from headrace.profiler.profile_messages import OpLogProto as OpLogProto
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "profiler",
        __name__,
        names={
            name: f"{_MESSAGES}:{name}"
            for name in ("GraphNodeProto", "MultiGraphNodeProto", "OpLogProto")
        },
    )
