"""Why a function is traced again, and what can be done about it.

A trace covers a call if each of its specs covers that of the argument and everything else is the
same. A function that is traced over and over again says so once, with the argument that keeps
changing and the remedy.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.specs import TensorSpec, TypeSpec
from headrace.functions.function_signature import Signature, hashed_by_identity, shown_leaf
from headrace.session.events import EVENTS

if TYPE_CHECKING:
    from headrace.functions.concrete_function import ConcreteFunction

__all__ = ["History", "covering", "generalised", "same"]

#: Traces after which a function is told about.
_MANY_TRACES = 5
#: Traces that a new one is compared with, and traces that are told about.
_KEPT = 16
_TOLD = 256
_LOGGER = logging.getLogger("tensorflow")
#: Traces per place in the user's code: functions that are made in a loop count together.
_by_code: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class History:
    """The traces of one function, in words."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.count = 0
        self.kept: deque[dict[str, str]] = deque(maxlen=_KEPT)
        self.reasons: deque[str] = deque(maxlen=_TOLD)
        inner = getattr(function, "__func__", function)
        self.code = getattr(inner, "__code__", inner)

    def add(self, signature: Signature, wanted: Sequence[Any]) -> None:
        """A trace begins, for these arguments."""
        self.count += 1
        shown = _shown(signature, wanted)
        reason = self._reason(shown)
        self.reasons.append(reason)
        self.kept.append(shown)
        if EVENTS.listeners:
            EVENTS.emit("trace", function=self.name, count=self.count, reason=reason)
        self._warn(reason)

    def _reason(self, shown: dict[str, str]) -> str:
        if not self.kept:
            return "the first call"
        nearest = min(reversed(self.kept), key=lambda old: len(_differences(old, shown)))
        changed = _differences(nearest, shown)
        return (
            "; ".join(changed) if changed else "the function makes its variables in the first trace"
        )

    def _warn(self, reason: str) -> None:
        try:
            count = _by_code[self.code] = _by_code.get(self.code, 0) + 1
        except TypeError:
            return
        if count != _MANY_TRACES + 1:
            return
        again = self.count <= _MANY_TRACES
        what = "the function itself was made anew for each call" if again else f"last: {reason}"
        _LOGGER.warning(
            "%d out of the last %d calls to %s triggered tf.function retracing (%s). "
            "Tracing is expensive and the "
            "excessive number of tracings could be due to (1) creating @tf.function "
            "repeatedly in a loop, (2) passing "
            "tensors with different shapes, (3) passing Python objects instead of "
            "tensors. For (1), please define your "
            "@tf.function outside of the loop. For (2), @tf.function has "
            "reduce_retracing=True option that can avoid "
            "unnecessary retracing, and input_signature=[...]. For (3), pass tensors "
            "instead of Python numbers. "
            "%s.explain_retracing() tells every trace.",
            count,
            count,
            self.name,
            what,
            self.name,
        )

    def explained(self) -> str:
        lines = [f"{self.name} was traced {self.count} time{'s' if self.count != 1 else ''}:"]
        first = self.count - len(self.reasons) + 1
        lines += [f"  (of the last {_TOLD})"] if first > 1 else []
        lines += [f"  {i}. {reason}" for i, reason in enumerate(self.reasons, first)]
        return "\n".join(lines)


def _shown(signature: Signature, wanted: Sequence[Any]) -> dict[str, str]:
    """Every leaf of the arguments, by its path from the parameter's name."""
    out: dict[str, str] = {}
    for name, _, value in signature.named(*wanted):
        for path, leaf in nest.flatten_with_tuple_paths(value):
            out[name + "".join(f"[{p!r}]" for p in path)] = shown_leaf(leaf)
    return out


def _differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    out = [f"{k}: was {old[k]}, is {v}" for k, v in new.items() if k in old and old[k] != v]
    out += [f"{k}: is new, {v}" for k, v in new.items() if k not in old]
    return out + [f"{k}: is gone, was {v}" for k, v in old.items() if k not in new]


# traces that serve several calls ----------------------------------------------------------------


def covering(traces: Iterable[Any], wanted: object) -> ConcreteFunction | None:
    """The narrowest trace that serves a call; None if there is none."""
    best = None
    leaves = nest.flatten(wanted)
    for trace in dict.fromkeys(traces):
        flat = trace.flat_call
        if len(flat) != len(leaves) or not all(map(_leaf_covers, flat, leaves)):
            continue  # most traces go here, before structures are compared
        have = (trace.call_args, trace.call_kwargs)
        if _covers(have, wanted) and (
            best is None or _covers((best.call_args, best.call_kwargs), have)
        ):
            best = trace
    return best


def _pairs(
    a: Sequence[Sequence[TypeSpec] | Mapping[str, Any]], b: object
) -> list[tuple[Any, Any]] | None:
    """The corresponding leaves of two structures; None if they differ in form."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return None
    return list(zip(nest.flatten(a), nest.flatten(b)))


def _covers(wide: Sequence[Sequence[TypeSpec] | Mapping[str, Any]], narrow: object) -> bool:
    pairs = _pairs(wide, narrow)
    return pairs is not None and all(_leaf_covers(w, n) for w, n in pairs)


def _leaf_covers(wide: object, narrow: object) -> bool:
    if isinstance(wide, TypeSpec) or isinstance(narrow, TypeSpec):
        return isinstance(narrow, TypeSpec) and narrow.is_subtype_of(wide)
    return same(wide, narrow)


def _nameless(spec: TensorSpec) -> TensorSpec:
    return spec if spec.name is None else TensorSpec(spec.shape, spec.dtype)


def same(a: object, b: object) -> bool:
    """Whether two Python arguments are one for a trace."""
    if a is b:
        return True
    if type(a) is not type(b) or hashed_by_identity(type(a)):
        return False
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def generalised(traces: Iterable[Any], wanted: Sequence[Any]) -> Any:
    """The arguments of a call, wide enough for those of an earlier trace too, if they differ in
    shapes only.
    """
    for trace in reversed(list(dict.fromkeys(traces))):
        pairs = _pairs((trace.call_args, trace.call_kwargs), wanted)
        if pairs is None:
            continue
        leaves = [_wider(old, new) for old, new in pairs]
        if all(found is not None for found in leaves):
            return nest.pack_sequence_as(wanted, [found[0] for found in leaves])  # type: ignore[index]
    return wanted


def _wider(old: TypeSpec, new: TypeSpec) -> tuple[Any] | None:
    if isinstance(old, TypeSpec) and isinstance(new, TypeSpec):
        if isinstance(old, TensorSpec) and isinstance(new, TensorSpec):
            old, new = _nameless(old), _nameless(new)
        found = old.most_specific_common_supertype([new])
        return None if found is None else (found,)
    return (new,) if same(old, new) else None
