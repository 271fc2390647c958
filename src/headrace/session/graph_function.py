"""A function graph made callable: arrays in, arrays out, over any state.

    inputs = graph.inputs + graph.internal_captures
    compiled = GraphFunction(graph, inputs, graph.outputs, graph.control_outputs)
    compiled(state, *arrays)      # a tuple of arrays, each the caller's own

The plan is made by the first call and kept. Feeds are not checked or converted here: the caller
has arrays of the right type already.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from headrace import errors
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor
from headrace.executors import Executable, Options, make_executable
from headrace.kernels.numpy.openblas import blas_holders, release_blas
from headrace.lower.executable import Run, SessionRun, located_error
from headrace.lower.session_state import State
from headrace.program.snapshot import snapshot
from headrace.runtime.float_errors import restore, silence
from headrace.session.events import EVENTS
from headrace.session.session import default_options

__all__ = ["GraphFunction"]


def _in_last_state(made: SessionRun) -> Run:
    """The run, made for a state when that is first seen, and again when another one comes."""
    last: tuple[Any, Run] | None = None

    def run(state: State, values: dict[str, Any], /, *feeds: Any) -> tuple[Any, ...]:
        nonlocal last
        found = last  # (another thread may change it at any moment)
        if found is None or found[0]() is not state:
            found = last = weakref.ref(state), made.within(state)
        return found[1](state, values, *feeds)

    return run


class GraphFunction:
    """A part of a graph as a function of ``inputs`` and a state."""

    __slots__ = (
        "_executable",
        "_lock",
        "_run",
        "borrowed",
        "controls",
        "done",
        "graph",
        "inputs",
        "options",
        "outputs",
    )

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        controls: Sequence[Operation] = (),
        options: Options | None = None,
        done: frozenset[Operation] = frozenset(),
        borrowed: bool = False,
    ) -> None:
        """``done``: operations that need not be waited for.

        ``borrowed``: nobody will write to feeds or results.
        """
        self.graph = graph
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.controls = tuple(controls)
        self.options = default_options() if options is None else options
        self.done = done
        self.borrowed = borrowed
        self._executable: Executable | None = None
        self._run: Callable[..., tuple[Any, ...]] = self._first_run
        self._lock = threading.Lock()

    @property
    def executable(self) -> Executable:
        """The plan, made when it is first wanted."""
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    self._executable = self._plan()
        return self._executable

    def _plan(self) -> Executable:
        start = time.perf_counter()
        fetches: list[Any] = [*self.outputs, *self.controls]
        program = snapshot(fetches, self.inputs, len(self.graph._ops), self.done)
        if self.borrowed:
            program = program._replace(borrowed=True)
        made = make_executable(program, self.options)
        EVENTS.plans += 1
        EVENTS.plan_seconds += time.perf_counter() - start
        if EVENTS.listeners:
            EVENTS.emit_plan(None, made)
        return made

    def _first_run(self, state: State, values: dict[str, Any], *feeds: object) -> tuple[Any, ...]:
        made = self.executable.run
        run = _in_last_state(made) if isinstance(made, SessionRun) else made
        n = len(self.outputs)
        self._run = (lambda *args: run(*args)[:n]) if self.controls else run
        try:
            return self._run(state, values, *feeds)
        finally:
            if self.options.executor == "xla" and EVENTS.listeners:
                details = self.executable.details
                chosen, why = details.executor, details.why
                name = getattr(self.graph, "name", "function")
                EVENTS.emit("jit_compile", function=name, executor=chosen, why=why)

    def __call__(self, state: State, *feeds: Any) -> tuple[Any, ...]:
        """Run with the given arrays, in the order of ``inputs``."""
        token = silence()
        try:
            return self._run(state, state.values, *feeds)
        except Exception as error:
            wrapped = self._located(error)
            if wrapped is error:
                raise
            raise wrapped from (None if isinstance(error, errors.OpError) else error)
        finally:
            restore(token)
            if blas_holders[0]:
                release_blas()

    def attempt(self, state: State, *feeds: object) -> tuple[Any, ...] | None:
        """As a call, but None where it fails, which does not count as a failed run.

        The caller computes the result otherwise.
        """
        token = silence()
        try:
            return self._run(state, state.values, *feeds)
        except Exception:
            return None
        finally:
            restore(token)
            if blas_holders[0]:
                release_blas()

    def _located(self, error: Exception) -> BaseException:
        EVENTS.failed_runs += 1
        return error if self._executable is None else located_error(self._executable, error)
