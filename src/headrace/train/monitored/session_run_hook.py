"""``tf.train.SessionRunHook``: what is called around every run of a monitored session."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.annotations import FeedDict, Fetches
    from headrace.session.session import BaseSession

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunHook:
    """Code around the runs of a MonitoredSession: derive from it, override what is needed.

    ``begin`` may still change the graph; ``before_run`` may return ``SessionRunArgs`` with more to
    fetch, whose values ``after_run`` gets; ``end`` runs when the session closes without an error.
    """

    def begin(self) -> None:
        """Before the session is made; the graph may still be changed."""

    def after_create_session(self, session: BaseSession, coord: object) -> None:
        """After a session was made (again); the graph is final."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """What to fetch and feed beside what the caller asks for."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """With the values of what ``before_run`` asked for."""

    def end(self, session: BaseSession | None) -> None:
        """Before the session is closed without an error."""


class SessionRunArgs(collections.namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])):
    """What a hook adds to a run: ``fetches``, ``feed_dict``, ``options``.

    Returned by ``SessionRunHook.before_run``. ``fetches`` is anything that ``Session.run`` takes;
    its values are ``results`` in ``after_run``. ``feed_dict`` must not feed what the caller or
    another hook feeds. ``options`` is a ``tf.RunOptions``.
    """

    __slots__ = ()

    def __new__(
        cls, fetches: Fetches, feed_dict: FeedDict | None = None, options: object = None
    ) -> SessionRunArgs:
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunContext:
    """The run that hooks are called around.

    Its arguments, its session, and a way to ask for a stop.
    """

    def __init__(self, original_args: SessionRunArgs, session: object) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        return self._original_args

    @property
    def session(self) -> Any:
        return self._session

    @property
    def stop_requested(self) -> bool:
        return self._stop_requested

    def request_stop(self) -> None:
        """``should_stop`` of the session is true from now on."""
        self._stop_requested = True


#: Of one hook: the values of its fetches; the options and metadata of the run, None where nobody
#: asked for them.
SessionRunValues = collections.namedtuple(
    "SessionRunValues", ["results", "options", "run_metadata"]
)
SessionRunValues.__doc__ = """What ``after_run`` gets: the values that ``before_run`` asked for.

``results`` has the structure of the ``fetches`` of ``before_run``; ``options`` are the RunOptions
of the run and ``run_metadata`` its RunMetadata."""
