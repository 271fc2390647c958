"""``tf.contrib.summary``: summaries in the kinds of TF 1, written by ops while a graph runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from headrace.core.annotations import TensorLike
from headrace.core.build import apply
from headrace.core.dtypes import uint8
from headrace.core.graph import get_default_graph
from headrace.core.opdef import OpDef
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import executing_eagerly
from headrace.ops.array.basic import constant, identity, no_op
from headrace.ops.io import summary_writer_ops as ops
from headrace.ops.math.comparison import equal
from headrace.train.summaries.summary_functions import tag_scope
from headrace.train.summaries.summary_writers import (
    ResourceSummaryWriter,
    SummaryWriter,
    chosen_step,
    create_file_writer,
    current_writer,
    record,
    record_if,
    should_record_summaries,
    written,
)

if TYPE_CHECKING:
    from headrace.variables.variable import Variable


__all__ = [
    "always_record_summaries",
    "audio",
    "create_db_writer",
    "create_summary_file_writer",
    "eval_dir",
    "generic",
    "histogram",
    "image",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
]


def always_record_summaries() -> AbstractContextManager[None]:
    """A context in which summaries are recorded."""
    return record_if(True)


def never_record_summaries() -> AbstractContextManager[None]:
    """A context in which no summaries are recorded."""
    return record_if(False)


def record_summaries_every_n_global_steps(
    n: int, global_step: Variable | Tensor | None = None
) -> AbstractContextManager[None]:
    """A context in which summaries are recorded in every n-th step."""
    if global_step is None:
        from headrace.train.global_step import get_or_create_global_step

        global_step = get_or_create_global_step()

    def should() -> Tensor:
        return equal(global_step % n, 0)

    return record_if(should if executing_eagerly() else should())


def _write(
    op: OpDef,
    name: str,
    tensor: TensorLike,
    family: str | None,
    arguments: Callable[[str], tuple[Any, ...]],
    step: TensorLike,
    **attrs: object,
) -> Any:
    """Write where the condition holds: ``op`` of the writer, the step and ``arguments(tag)``."""
    writer = current_writer()
    if not isinstance(writer, ResourceSummaryWriter):
        return no_op()
    here = get_default_graph().get_name_scope()

    def write_it() -> Tensor:
        with (
            name_scope(f"{here}/" if here else ""),
            tag_scope(name, family, None, [tensor]) as (
                tag,
                scope,
            ),
        ):
            number = chosen_step(step)
            return written(
                apply(op, writer._resource, number, *arguments(tag), name=scope, **attrs)
            )

    return record(should_record_summaries(), write_it, "")


def generic(
    name: str,
    tensor: TensorLike,
    metadata: object = None,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Write a tensor as it is, with a SummaryMetadata.

    ``metadata`` is the message, or its bytes, which tells TensorBoard's plugins what it is.
    ``family`` goes before the tag, ``step`` defaults to the global step.
    """
    text = b"" if metadata is None else metadata
    text = text.SerializeToString() if hasattr(text, "SerializeToString") else text
    return _write(
        ops.WRITE_SUMMARY, name, tensor, family, lambda tag: (identity(tensor), tag, text), step
    )


def scalar(name: str, tensor: TensorLike, family: str | None = None, step: Any = None) -> Any:
    """Write one number; ``step`` is the global step without this.

    ``family`` goes before the tag. In a graph it is an operation to run;
    ``tf.contrib.summary.all_summary_ops()`` has all of them.
    """
    return _write(ops.WRITE_SCALAR, name, tensor, family, lambda tag: (tag, identity(tensor)), step)


def histogram(name: str, tensor: TensorLike, family: str | None = None, step: Any = None) -> Any:
    """Write the distribution of a tensor's values.

    Of any shape. ``family`` goes before the tag, ``step`` defaults to the global step.
    """
    return _write(
        ops.WRITE_HISTOGRAM, name, tensor, family, lambda tag: (tag, identity(tensor)), step
    )


def image(
    name: str,
    tensor: TensorLike,
    bad_color: object = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Write up to ``max_images`` images; see ``tf.summary.image``.

    ``tensor`` is [batch, height, width, 1, 3 or 4]; floats are scaled, and pixels that are not
    finite get ``bad_color`` (uint8, red by default). ``family`` goes before the tag, ``step``
    defaults to the global step.
    """

    def arguments(tag: str) -> tuple[Any, ...]:
        color = constant([255, 0, 0, 255], uint8) if bad_color is None else bad_color
        return tag, identity(tensor), color

    return _write(
        ops.WRITE_IMAGE,
        name,
        tensor,
        family,
        arguments,
        step,
        max_images=max_images,
    )


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Write up to ``max_outputs`` clips of sound; see ``tf.summary.audio``.

    ``tensor`` is float [batch, frames, channels] or [batch, frames] from -1 to 1, ``sample_rate``
    in Hertz. ``family`` goes before the tag, ``step`` defaults to the global step. Written to the
    default summary writer where recording is on, as all of these functions.
    """
    return _write(
        ops.WRITE_AUDIO,
        name,
        tensor,
        family,
        lambda tag: (tag, identity(tensor), sample_rate),
        step,
        max_outputs=max_outputs,
    )


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder for summaries of an evaluation."""
    return os.path.join(model_dir, f"eval_{name}" if name else "eval")


def create_summary_file_writer(*args: Any, **kwargs: Any) -> SummaryWriter:
    """The old name of ``create_file_writer``."""
    logging.getLogger("tensorflow").warning(
        "Deprecation Warning: create_summary_file_writer was renamed to create_file_writer"
    )
    return create_file_writer(*args, **kwargs)


def create_db_writer(*_: object, **__: object) -> SummaryWriter:
    """Not there: summaries go to event files."""
    raise NotImplementedError(
        "tf.contrib.summary.create_db_writer: Headrace writes event files, no databases. Use "
        "create_file_writer."
    )
