"""The variables of one session, and the one way to write them.

A value is an array (or, for rank 0, an immutable NumPy scalar) in a dictionary. Readers take the
reference that is there when their run starts; nothing may change it under them. A writer takes the
array *out* of the dictionary while it works and overwrites it only if its reference count shows
that nothing else references it; otherwise it makes a new one. So readers need no lock, concurrent
updates are never lost, and no run sees a half-written variable.

The lock is held while arrays are taken out and put back, not while they are computed: updates of
large variables are a quarter of a training step, and threads that train one model would wait for
each other all that time. Meanwhile the variables' names stand in ``busy``; who wants one of them
waits until it is ready (``settle``). Where several threads step a session the variable itself
stays in its place until the new array is there, so that those who only read do not wait.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace import errors
from headrace.runtime.fork_locks import held_at_fork
from headrace.runtime.interrupts import uninterrupted

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.tensor import Operation

__all__ = ["RunContext", "State", "Stepping", "Writer"]

T = TypeVar("T")


class Stepping:
    """Whether several threads run large steps of a session at the same time.

    ``with stepping as alone`` is around a step. Once two were seen together it is a session of
    many threads, until ``ALONE`` steps in a row had no other beside them.
    """

    __slots__ = ("inside", "process", "several", "since")

    ALONE = 64

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.process = os.getpid()
        self.inside: set[int] = set()  # threads
        self.several = False
        self.since = 0  # steps since two were seen together

    def __enter__(self) -> bool:
        if self.process != os.getpid():
            self._begin()  # other threads did not survive the fork
        self.inside.add(threading.get_ident())
        if len(self.inside) > 1:
            self.several, self.since = True, 0
        elif self.several:
            self.since += 1
            self.several = self.since < self.ALONE
        return not self.several

    def __exit__(self, *_: object) -> None:
        self.inside.discard(threading.get_ident())


class _Guard:
    """What a forking thread holds: the lock, while all variables are in their place."""

    __slots__ = ("__weakref__", "busy", "lock", "ready")

    def __init__(self, lock: threading.RLock, busy: set[str], ready: threading.Condition) -> None:
        self.lock, self.busy, self.ready = lock, busy, ready

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self.lock.acquire(blocking, timeout):
            return False
        if self.ready.wait_for(lambda: not self.busy, None if timeout < 0 else timeout):
            return True
        self.lock.release()
        return False

    def release(self) -> None:
        self.lock.release()

    def _at_fork_reinit(self) -> None:
        self.lock._at_fork_reinit()  # type: ignore[attr-defined]
        self.busy.clear()


class State:
    """Values and other resources of a session."""

    __slots__ = (
        "__weakref__",
        "bindings",
        "busy",
        "groups",
        "guard",
        "hot",
        "kept",
        "lock",
        "ready",
        "resources",
        "stepping",
        "values",
        "versions",
    )

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.resources: dict[Hashable, Any] = {}
        #: The version stamp of each variable: how often it was written. Each write counts it up
        #: first, under the lock, so that a reader who finds an old stamp has read old values.
        self.versions: defaultdict[str, int] = defaultdict(int)
        self.bindings: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.kept: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.groups: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # by step: the work of its runs so far, then whether it is native (native_groups.py)
        self.hot: dict[Any, Any] = {}
        self.lock = threading.RLock()
        #: Variables that a writer is computing at the moment, and how to wait for them.
        self.busy: set[str] = set()
        self.ready = threading.Condition(self.lock)
        self.guard = held_at_fork(_Guard(self.lock, self.busy, self.ready))
        self.stepping = Stepping()  # the threads that run large steps

    def need(self, key: str, op: Operation) -> Any:
        """The slow way to a value that was not there.

        It may just be being written by another thread.
        """
        value = self.raw(key)
        if value is None:
            raise errors.FailedPreconditionError(
                None,
                op,
                f"Attempting to use uninitialized value {op.name}. Run its initializer "
                "first, for example "
                "sess.run(tf.global_variables_initializer()).",
            )
        return value

    def raw(self, key: str) -> Any:
        """The value, or None if there is none."""
        with self.lock:
            value = self.values.get(key)
            if value is None and key in self.busy:
                self.wait_until_idle((key,))
                value = self.values.get(key)
            return value

    def wait_until_idle(self, keys: Sequence[str]) -> None:
        """Wait until nobody computes one of the variables (with the lock, which is given up
        meanwhile).
        """
        while not self.busy.isdisjoint(keys):
            self.ready.wait()

    def set(self, key: str, value: Any) -> None:
        with self.lock:
            self.wait_until_idle((key,))
            self.versions[key] += 1
            self.values[key] = value[()] if value.ndim == 0 and value.dtype.kind != "O" else value

    def drop(self, key: str) -> None:
        """The variable has no value any more."""
        with self.lock:
            self.wait_until_idle((key,))
            self.versions[key] += 1
            self.values.pop(key, None)

    def stamps(self, keys: Iterable[str]) -> list[int]:
        """The version stamps of variables."""
        return [*map(self.versions.__getitem__, keys)]

    def nbytes(self) -> int:
        return sum(int(getattr(v, "nbytes", 0)) for v in list(self.values.values()))

    def clear(self) -> None:
        with self.lock:
            self.ready.wait_for(lambda: not self.busy)
            self.values.clear()
            self.resources.clear()
            self.kept.clear()
            for table in list(self.bindings.values()):
                table.clear()
            self.groups.clear()


class RunContext:
    """The runtime that kernels see during one run."""

    __slots__ = ("drawn", "resources", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.drawn: list[Any] = []  # by a run that is bound to memory (bound_draws.py)
        self.resources: dict[Hashable, Any] = {}

    def session_resource(self, key: Hashable, factory: Callable[[], T]) -> T:
        found: T | None = self.state.resources.get(key)
        if found is None:
            with self.state.lock:
                found = self.state.resources.get(key)
                if found is None:
                    found = self.state.resources[key] = factory()
        return found

    def run_resource(self, key: Hashable, factory: Callable[[], T]) -> T:
        found: T | None = self.resources.get(key)
        if found is None:
            found = self.resources[key] = factory()
        return found


def _count(holder: list[Any]) -> int:
    array = holder[0]
    holder[0] = None
    return sys.getrefcount(array)


#: What getrefcount says of an array that only a local variable holds.
_ALONE = _count([np.zeros(1)])


#: Arrays up to this size are replaced rather than overwritten: a new small array costs less than
#: doing it in place.
MIN_OVERWRITTEN = 16 * 1024


class Writer:
    """One writing operation, bound.

    ``writer(state, rt, *inputs)`` returns (new values…, other outputs…).
    """

    __slots__ = (
        "copies",
        "inplace",
        "kernel",
        "keys",
        "leading",
        "native",
        "positions",
        "single",
        "uninit_ok",
        "variables",
        "wants_rt",
    )

    def __init__(
        self,
        variables: Sequence[Any],
        keys: Sequence[str],
        positions: Sequence[int],
        kernel: Callable[..., Any],
        inplace: Callable[..., None] | None,
        uninit_ok: bool,
        copies: bool,
        wants_rt: bool,
        native: Callable[..., bool] | None = None,
    ) -> None:
        self.native = native
        self.variables = tuple(variables)
        self.keys = tuple(keys)
        self.positions = tuple(positions)
        self.leading = self.positions == tuple(range(len(self.positions)))
        self.single = len(self.keys) == 1 and self.leading and not wants_rt
        self.kernel = kernel
        self.inplace = inplace
        self.uninit_ok = uninit_ok
        self.copies = copies  # the kernel's result may be one of its inputs
        self.wants_rt = wants_rt

    @uninterrupted
    def __call__(self, state: State, rt: object, *args: object) -> tuple[Array | np.generic, ...]:
        values = state.values
        with state.lock:
            if state.busy:
                state.wait_until_idle(self.keys)
            current = [values.get(key) for key in self.keys]
            if self.inplace is not None and self._worth_it(current):
                current = None  # type: ignore[assignment]
                return self._overwrite(state, args)
            if not self.uninit_ok:
                for key, value, op in zip(self.keys, current, self.variables):
                    if value is None:
                        state.need(key, op)
            inputs = [*current, *args] if self.leading else self._placed(current, args)
            result = self._compute(inputs, rt)
            for key, new in zip(self.keys, result):
                state.versions[key] += 1
                values[key] = new
        return result

    @uninterrupted
    def write_one(self, state: State, rt: object, *args: object) -> tuple[Any, ...]:
        """The commonest case, one variable that is the first input, with as little around the
        kernel as possible.
        """
        key = self.keys[0]
        values = state.values
        with state.lock:
            if state.busy:
                state.wait_until_idle(self.keys)
            current = values.get(key)
            if current is None:
                if not self.uninit_ok:
                    state.need(key, self.variables[0])
            elif (
                self.inplace is not None
                and type(current) is np.ndarray
                and current.size > MIN_OVERWRITTEN
            ):
                current = None
                return self._overwrite(state, args)
            answer = self.kernel(current, *args)
            result: tuple[Any, ...] = answer if type(answer) is tuple else (answer,)
            new = result[0]
            if type(new) is not np.ndarray or not new.ndim or self.copies or new.base is not None:
                new = self._stored(new)
                result = (new, *result[1:])
            state.versions[key] += 1
            values[key] = new
        return result

    @staticmethod
    def _worth_it(current: list[Any]) -> bool:
        for array in current:
            if type(array) is not np.ndarray or array.size <= MIN_OVERWRITTEN:
                return False
        return True

    def _overwrite(self, state: State, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take the arrays out, so that no reader can come by them, and change them; of those that
        somebody holds already new ones are made. Called with the lock.
        """
        taken, free = self._take(state)
        uses = state.versions[self.keys[-1]]
        result: tuple[Any, ...] = tuple(taken)  # as it was, should anything fail
        state.lock.release()
        try:
            result = self._update(uses, taken, free, args)
        except errors.DataLossError:  # a file that it read: what it overwrote is no value any more
            result = tuple([None if was_free else a for a, was_free in zip(taken, free)])
            raise
        finally:
            state.lock.acquire()
            state.values.update((k, v) for k, v in zip(self.keys, result) if v is not None)
            state.busy.difference_update(self.keys)
            state.ready.notify_all()
        return result

    def _take(self, state: State) -> tuple[list[Any], list[bool]]:
        """The variables' arrays, and which of them may be overwritten."""
        values = state.values
        # the first is the variable that steps read; its slots are read by updates alone
        stays = self.keys[0] if state.stepping.several else None
        taken: list[Any] = []
        free: list[bool] = []
        for key in self.keys:
            state.versions[key] += 1
            array = values[key] if key is stays else values.pop(key)
            free.append(sys.getrefcount(array) == _ALONE)
            taken.append(array)
        state.busy.update(self.keys)
        return taken, free

    def _update(
        self, uses: int, taken: list[Any], free: list[bool], args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The new arrays: the same ones, overwritten, where they are free."""
        if self.native is not None and all(free[1:]):
            # a compiled update reads one array and writes another as fast as one and the same
            made = [a if f else np.empty_like(a) for a, f in zip(taken, free)]
            inputs = [*taken, *args] if self.leading else self._placed(taken, args)
            if self.native(uses, made, *inputs):
                return tuple(made)
        written = [a if f else a.copy() for a, f in zip(taken, free)]
        inputs = [*written, *args] if self.leading else self._placed(written, args)
        self.inplace(*inputs)  # type: ignore[misc]
        return tuple(written)

    def _placed(self, taken: list[Any], args: tuple[Any, ...]) -> list[Any]:
        rest = iter(args)
        by_position = dict(zip(self.positions, taken))
        n = len(taken) + len(args)
        return [by_position[i] if i in by_position else next(rest) for i in range(n)]

    def _compute(self, inputs: list[Any], rt: object) -> tuple[Any, ...]:
        result = self.kernel(*inputs, rt=rt) if self.wants_rt else self.kernel(*inputs)
        if type(result) is not tuple:
            return (self._stored(result),)
        n = len(self.keys)
        return tuple([self._stored(r) for r in result[:n]]) + result[n:]

    def _stored(self, value: Array | np.generic | None) -> Array | np.generic | None:
        """A value fit to be kept: of its own memory, contiguous; rank 0 as a scalar.

        Only assignments return one of their inputs, and ``copies`` is set for them unless the plan
        gives it away.
        """
        if type(value) is not np.ndarray:
            return value if isinstance(value, np.generic) else np.asarray(value)[()]
        if value.ndim == 0 and value.dtype.kind != "O":
            return value[()]
        if self.copies or value.base is not None:
            return value.copy()
        return value
