"""``tf.summary.scalar``, ``histogram``, ``image``, ``audio``, ``text``, ``tensor_summary``,
``merge``, ``merge_all``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.core.annotations import TensorLike
from headrace.core.build import apply
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import float32, string
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.io import media_summary_ops, summary_ops

__all__ = [
    "audio",
    "clean_tag",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tag_scope",
    "tensor_summary",
    "text",
]


def clean_tag(name: str) -> str:
    """A name as part of a node's name: other characters become ``_``, a leading ``/`` goes."""
    return re.sub(r"[^-/\w\.]", "_", name).lstrip("/")


@contextlib.contextmanager
def tag_scope(
    name: str, family: str | None, default: str | None, values: Sequence[Any]
) -> Iterator[tuple[str, str]]:
    """The tag, which is the unique name of the op's scope, and the name for the op."""
    base = clean_tag(name)
    if family is not None:
        family = clean_tag(family)
        base = f"{family}/{base}"
    with name_scope(base, default, values) as scope:
        unique = scope.rstrip("/")
        yield (unique if family is None else f"{family}/{unique}"), scope


def _collect(summary: Tensor, collections: Sequence[str] | None, default: Sequence[str]) -> Tensor:
    for key in default if collections is None else collections:
        add_to_collection(key, summary)
    return summary


def scalar(
    name: str,
    tensor: TensorLike,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary op of one number.

    Args:
      name: the tag (below ``family``, if that is given).
      tensor: a real number.
      collections: graph collections for the op; ``[GraphKeys.SUMMARIES]`` without this.
      family: a prefix of the tag, by which TensorBoard groups.
    """
    with tag_scope(name, family, None, [tensor]) as (tag, scope):
        made = apply(summary_ops.SCALAR_SUMMARY, tag, tensor, name=scope)
    return _collect(made, collections, [GraphKeys.SUMMARIES])


def histogram(
    name: str,
    values: TensorLike,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary op of the distribution of ``values`` (any shape). NaN and infinities are errors.

    The result is a serialized Summary, for ``FileWriter.add_summary``; it is in the collection of
    ``tf.summary.merge_all`` unless ``collections`` names others. ``family`` goes before the tag.
    """
    with tag_scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        made = apply(summary_ops.HISTOGRAM_SUMMARY, tag, values, name=scope)
    return _collect(made, collections, [GraphKeys.SUMMARIES])


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary op of up to ``max_outputs`` images.

    Args:
      name: the tags are ``name/image`` for one image, ``name/image/0`` and so on for more.
      tensor: batch x height x width x channels (1, 3 or 4). uint8 is taken as it is; floating-point
        images are scaled each to its largest value, with zero at 128 where it has negative ones.
      max_outputs: how many images of the batch.
      collections: graph collections for the op; ``[GraphKeys.SUMMARIES]`` without this.
      family: a prefix of the tags, by which TensorBoard groups.
    """
    with tag_scope(name, family, None, [tensor]) as (tag, scope):
        made = apply(
            media_summary_ops.IMAGE_SUMMARY, tag, tensor, max_images=max_outputs, name=scope
        )
    return _collect(made, collections, [GraphKeys.SUMMARIES])


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary op of up to ``max_outputs`` clips of sound, as WAV files.

    Args:
      name: the tags are ``name/audio`` for one clip, ``name/audio/0`` and so on for more.
      tensor: batch x frames or batch x frames x channels, values from -1 to 1.
      sample_rate: frames a second.
      max_outputs: how many clips of the batch.
      collections: graph collections for the op; ``[GraphKeys.SUMMARIES]`` without this.
      family: a prefix of the tags, by which TensorBoard groups.
    """
    with tag_scope(name, family, None, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtype=float32, name="sample_rate")
        made = apply(
            media_summary_ops.AUDIO_SUMMARY, tag, tensor, rate, max_outputs=max_outputs, name=scope
        )
    return _collect(made, collections, [GraphKeys.SUMMARIES])


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription that a ``TensorSummary`` node carries as JSON."""
    from google.protobuf import json_format
    from tensorboard.compat.proto.summary_pb2 import SummaryDescription

    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    text = node_def.attr["description"].s.decode()
    return json_format.Parse(text or "{}", SummaryDescription())


def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary op with a tensor as it is, for a TensorBoard plugin named in
    ``summary_metadata``.
    """
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    metadata = summary_metadata if summary_metadata is not None else SummaryMetadata()
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    serialized = metadata.SerializeToString()
    with tag_scope(name, family, None, [tensor]) as (tag, scope):
        made = apply(summary_ops.TENSOR_SUMMARY, tag, tensor, serialized, name=scope)
    return _collect(made, collections, [GraphKeys.SUMMARIES])


def text(name: str, tensor: Tensor, collections: Sequence[str] | None = None) -> Tensor:
    """A summary op of strings, which TensorBoard shows as Markdown."""
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    if tensor.dtype != string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    data = SummaryMetadata.PluginData(plugin_name="text", content=b"")
    return tensor_summary(
        name, tensor, collections=collections, summary_metadata=SummaryMetadata(plugin_data=data)
    )


def merge(
    inputs: Sequence[Tensor], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary op that gives the values of several. The same tag twice is an error of the
    run.
    """
    if name is not None:
        name = clean_tag(name)
    with name_scope(name, "Merge", list(inputs)):
        made = apply(summary_ops.MERGE_SUMMARY, list(inputs), name=name)
    return _collect(made, collections, [])


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """All summaries of a collection as one op; None if there are none."""
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None
