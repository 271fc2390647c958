"""Who owns results: each is the user's own, given away if nothing else references it, or copied."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes
from headrace.lower.storage_lifetimes import Lifetimes
from headrace.program.nodes import Program

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Result", "results_of"]


def own_string(value: bytes | Array) -> bytes | Array:
    if not isinstance(value, np.ndarray):
        return value
    return value[()] if value.ndim == 0 else np.array(value)


def own_unknown(value: Any) -> Any:
    return value[()] if value.ndim == 0 else value


def copy_unknown(value: Any) -> Array | np.generic:
    return value[()] if value.ndim == 0 else np.array(value)


class Result(NamedTuple):
    """One fetched value (None: an operation's result, which is None)."""

    value: int | None
    text: str = "None"  # ``{}`` is the value's name
    params: tuple[tuple[str, Any], ...] = ()
    is_given: bool = False  # not copied


_NOTHING = Result(None)


def results_of(program: Program, lives: Lifetimes) -> list[Result]:
    """How each fetched value becomes the user's own."""
    fetched = {f for f in program.fetches if f is not None}
    sharing = Counter(map(lives.root, fetched))
    out: list[Result] = []
    seen: set[int] = set()
    for f in program.fetches:
        if f is None:
            out.append(_NOTHING)
            continue
        alone = f not in seen and sharing[lives.root(f)] == 1
        out.append(_result(f, program, lives, alone))
        seen.add(f)
    return out


def _result(value: int, program: Program, lives: Lifetimes, alone: bool) -> Result:
    """``alone``: nothing that was returned or will be shares its memory."""
    info = program.values[value]
    own = alone and (value in lives.fresh or value in lives.whole)
    own = own and lives.root(value) not in lives.shared
    own = own or program.borrowed
    if info.dtype is dtypes.resource or info.dtype is dtypes.variant:
        return Result(value, "{}")
    given = own and info.shape != ()
    if info.dtype is dtypes.string and not info.shape:
        return Result(value, "text({})", (("text", own_string),), given)
    if info.shape == ():
        return Result(value, "{}[()]")
    if info.shape is None:
        if own:
            return Result(value, "own1({})", (("own1", own_unknown),), given)
        return Result(value, "own0({})", (("own0", copy_unknown),))
    return Result(value, "{}", (), given) if own else Result(value, "np.array({})")
