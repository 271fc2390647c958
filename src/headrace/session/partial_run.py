"""``partial_run``: one run in several calls.

The session keeps what earlier calls were fed and computed. A later call is a run in which all of
that is fed, so that each operation is computed at most once, stateful ones included. A call that
fails or is interrupted ends the partial run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor
from headrace.executors import Executable, make_executable, options_for
from headrace.lower.executable import located_error
from headrace.program.snapshot import FinalValue, snapshot
from headrace.runtime.float_errors import restore, silence
from headrace.session.feeds import expand_feeds, make_converter
from headrace.session.fetches import plan_fetches

if TYPE_CHECKING:
    from headrace.session.session import BaseSession

__all__ = ["run", "setup"]

_numbers = itertools.count()


@dataclass
class PartialRun:
    """A run under way."""

    fetches: set[Any]
    feeds: set[Tensor]
    values: dict[Tensor, Any] = field(default_factory=dict)
    done: set[Operation] = field(default_factory=set)
    fetched: set[Any] = field(default_factory=set)


def setup(session: Any, fetches: object, feeds: Any) -> str:
    """Announce what the partial runs will fetch and feed; returns their handle."""
    elements, _ = plan_fetches(session.graph, fetches)
    if not elements:
        raise errors.InvalidArgumentError(
            None, None, "You must specify at least one target to fetch or execute."
        )
    fed = {t for t, _ in expand_feeds(session.graph, dict.fromkeys(feeds or []))}
    handle = f"partial_run_{next(_numbers)}"
    session._partial_runs[handle] = PartialRun(set(elements), fed)
    return handle


def run(session: Any, handle: str, fetches: object, feed_dict: dict[Any, Any]) -> Any:
    """Continue a partial run."""
    state: PartialRun | None = session._partial_runs.get(handle)
    if state is None:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Must run 'setup' before performing partial runs, and each only until "
            "everything is fetched.",
        )
    elements, rebuild = plan_fetches(session.graph, fetches)
    for e in elements:
        if e not in state.fetches:
            raise errors.InvalidArgumentError(
                None, None, f"The fetch {_name(e)} was not specified in partial_run_setup."
            )
        if e in state.fetched:
            raise errors.InvalidArgumentError(
                None, None, f"The fetch {_name(e)} has already been fetched."
            )
    _take_feeds(session, state, feed_dict)
    try:
        results = _compute(session, state, elements)
    except BaseException:  # what was done and what was not is unknown: TensorFlow ends it, too
        del session._partial_runs[handle]
        raise
    state.fetched.update(elements)
    if state.fetched >= state.fetches:
        del session._partial_runs[handle]
    return rebuild(results)


def _take_feeds(session: BaseSession, state: PartialRun, feed_dict: dict[Any, Any]) -> None:
    given = list(feed_dict.values())
    for tensor, pick in expand_feeds(session.graph, feed_dict):
        if tensor not in state.feeds:
            raise errors.InvalidArgumentError(
                None, None, f"The feed {tensor.name} was not specified in partial_run_setup."
            )
        if tensor in state.values:
            raise errors.InvalidArgumentError(
                None, None, f"The feed {tensor.name} has already been fed."
            )
        state.values[tensor] = make_converter(tensor)(pick(given))


def _compute(session: BaseSession, state: PartialRun, elements: list[Any]) -> tuple[Any, ...]:
    roots = [
        e._op if isinstance(e, Tensor) else e.op if isinstance(e, FinalValue) else e
        for e in elements
    ]
    fed = set(state.values)
    new = needed_ops([r for r in roots if r not in state.done], fed) - state.done
    for op in new:
        for t in op._outputs:
            if t in state.feeds and t not in state.values:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"The fetch needs {t.name}, which has not been fed in this partial run yet.",
                )
    keep = [
        t
        for op in sorted(new, key=lambda o: o._id)
        if op._context is None
        for t in op._outputs
        if t not in fed and _can_be_kept(t)
    ]
    wanted = [e for e in elements if e not in fed and e not in state.done]
    effects = [o for o in new if o in roots]
    fetches = [*wanted, *keep, *effects]
    program = snapshot(fetches, list(state.values), len(session.graph._ops), frozenset(state.done))
    results = _run(
        session, make_executable(program, options_for("reference")), list(state.values.values())
    )
    by_element = dict(zip(wanted, results))
    state.values.update(zip(keep, results[len(wanted) :]))
    state.done |= new
    return tuple(by_element[e] if e in by_element else state.values.get(e) for e in elements)


def _can_be_kept(tensor: Tensor) -> bool:
    """Values are; handles and references are not, except what a write made of its variable."""
    if tensor._dtype._is_ref:
        return bool(tensor._op._opdef.traits.writes)
    return tensor._dtype.name not in ("resource", "variant")


def _run(session: BaseSession, executable: Executable, feeds: list[Any]) -> tuple[Any, ...]:
    token = silence()
    try:
        return executable.run(session._state, session._state.values, *feeds)
    except Exception as error:
        found = located_error(executable, error)
        if found is error:
            raise
        raise found from None
    finally:
        restore(token)


def _name(element: Any) -> str:
    return element.op.name if isinstance(element, FinalValue) else element.name
