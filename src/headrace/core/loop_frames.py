"""The check that an operation uses no tensor of a while loop that it is not in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from headrace.core import trace
from headrace.core.contexts import frame_of
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.autodiff.while_grad import BackwardContext
    from headrace.core.opdef import OpDef
    from headrace.ops.control.control_contexts import CondContext, WhileContext


__all__: list[str] = []

_LOG = logging.getLogger("tensorflow")
_APART = "they are in different while loops"


def _check_frame(
    tensor: Tensor,
    inner: BackwardContext | CondContext | WhileContext,
    context: BackwardContext | CondContext | WhileContext | None,
    opdef: OpDef,
    name: str,
) -> None:
    """A tensor of a loop has a value for each iteration.

    Outside it is known by what the loop returns.
    """
    frame = frame_of(inner)
    if frame is None or opdef.role == "exit":
        return
    here = frame_of(context)
    while here is not None:
        if (
            here is frame or here.backward is not None
        ):  # a backward loop reads the forward loop's values
            return
        here = frame_of(here.outer_context)
    source = tensor._op.name
    apart = f"'{source}' is in a while loop" if frame_of(context) is None else _APART
    _LOG.info(
        "%s made at %s; %s uses it at %s",
        *(source, trace.user_line(tensor._op._frames)),
        *(name, trace.user_line(trace.capture(3))),
    )
    raise ValueError(
        f"Cannot use '{source}' as input to '{name}' because {apart}. See info log for "
        "more details. Return it from the "
        "loop's body as a loop variable, or collect the values of all iterations in a TensorArray."
    )
