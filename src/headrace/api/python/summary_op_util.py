"""``tensorflow.python.ops.summary_op_util``: what summary ops of packages are made with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from headrace.core.scopes import add_to_collection
from headrace.core.tensor import Operation, Tensor
from headrace.train.summaries.summary_functions import clean_tag, tag_scope

__all__ = ["clean_tag", "collect", "skip_summary", "summary_scope"]


def collect(
    val: Tensor | Operation,
    collections: Sequence[str] | None,
    default_collections: Sequence[str],
) -> None:
    """Put a summary into ``collections``, into the default ones if that is None."""
    for key in default_collections if collections is None else collections:
        add_to_collection(key, val)


@contextlib.contextmanager
def summary_scope(
    name: str | None,
    family: str | None = None,
    default_name: str | None = None,
    values: Sequence[object] | None = None,
) -> Iterator[tuple[str, str]]:
    """The tag of a summary and the name scope of its op."""
    tag = (default_name or "") if name is None else name
    with tag_scope(tag, family, default_name, list(values or ())) as tag_and_scope:
        yield tag_and_scope


def skip_summary() -> bool:
    """Whether another replica writes the summaries: there is one replica."""
    return False
