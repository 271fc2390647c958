"""Operations that a file names must not write files when they are run for it.

A SavedModel or MetaGraph says which operations restore its variables and initialize it. Loading
runs them: if one of them, or what it needs, wrote files, loading a model could change any file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.core.tensor import Operation

__all__ = ["refuse_file_writes"]


def refuse_file_writes(ops: Iterable[Operation], what: str) -> None:
    """PermissionDeniedError if running ``ops`` would write files; ``what`` names them."""
    stack = list(ops)
    seen = set(stack)
    while stack:
        op = stack.pop()
        if op._opdef.traits.writes_files:
            raise errors.PermissionDeniedError(
                None,
                None,
                f"the model's {what} writes files: the operation '{op.name}' ({op.type}). "
                "Loading a model never writes files; if you trust the model, import its graph "
                "with tf.import_graph_def and run the operation yourself.",
            )
        for other in (*(t._op for t in op._inputs), *op.control_inputs):
            if other not in seen:
                seen.add(other)
                stack.append(other)
