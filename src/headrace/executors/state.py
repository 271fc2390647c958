"""The variables of one session, and the one way to write them.

A value is an array (or, for rank 0, an immutable NumPy scalar) in a dictionary. Readers take the reference that is there
when their run starts; nothing may change it under them. A writer takes the array *out* of the dictionary while it works,
under the lock, and overwrites it only if its reference count shows that nobody else holds it; otherwise it makes a new
one. So readers need no lock, concurrent updates are never lost, and no run sees a half-written variable.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from headrace import errors

__all__ = ["RunContext", "State", "Writer"]


class State:
    """Values and other resources of a session."""

    __slots__ = ("__weakref__", "lock", "resources", "values", "versions")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.resources: dict[Hashable, Any] = {}
        self.lock = threading.RLock()
        self.versions: dict[str, int] = {}

    def need(self, key: str, op: Any) -> Any:
        """The slow way to a value that was not there: it may just be being written by another thread."""
        with self.lock:
            value = self.values.get(key)
        if value is None:
            raise errors.FailedPreconditionError(
                None, op,
                f"Attempting to use uninitialized value {op.name}. Run its initializer first, for example "
                "sess.run(tf.global_variables_initializer()).",
            )  # fmt: skip
        return value

    def raw(self, key: str) -> Any:
        """The value, or None if there is none."""
        with self.lock:
            return self.values.get(key)

    def set(self, key: str, value: Any) -> None:
        with self.lock:
            self.values[key] = value[()] if value.ndim == 0 else value
            self.versions[key] = self.versions.get(key, 0) + 1

    def nbytes(self) -> int:
        return sum(int(getattr(v, "nbytes", 0)) for v in list(self.values.values()))

    def clear(self) -> None:
        with self.lock:
            self.values.clear()
            self.resources.clear()


class RunContext:
    """The runtime that kernels see during one run."""

    __slots__ = ("resources", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.resources: dict[Hashable, Any] = {}

    def session_resource(self, key: Hashable, factory: Callable[[], Any]) -> Any:
        found = self.state.resources.get(key)
        if found is None:
            with self.state.lock:
                found = self.state.resources.get(key)
                if found is None:
                    found = self.state.resources[key] = factory()
        return found

    def run_resource(self, key: Hashable, factory: Callable[[], Any]) -> Any:
        found = self.resources.get(key)
        if found is None:
            found = self.resources[key] = factory()
        return found


def _count(holder: list[Any]) -> int:
    array = holder[0]
    holder[0] = None
    return sys.getrefcount(array)


#: What getrefcount says of an array that only a local variable holds.
_ALONE = _count([np.zeros(1)])


class Writer:
    """One writing operation, bound: ``writer(state, rt, *inputs)`` returns (new values…, other outputs…)."""

    __slots__ = ("copies", "inplace", "kernel", "keys", "op", "positions", "uninit_ok", "wants_rt")

    def __init__(
        self,
        op: Any,
        keys: Sequence[str],
        positions: Sequence[int],
        kernel: Callable[..., Any],
        inplace: Callable[..., None] | None,
        uninit_ok: bool,
        copies: bool,
        wants_rt: bool,
    ) -> None:
        self.op = op
        self.keys = tuple(keys)
        self.positions = tuple(positions)
        self.kernel = kernel
        self.inplace = inplace
        self.uninit_ok = uninit_ok
        self.copies = copies  # the kernel's result may be one of its inputs
        self.wants_rt = wants_rt

    def __call__(self, state: State, rt: Any, *args: Any) -> Any:
        values = state.values
        inputs = list(args)
        del args
        with state.lock:
            taken: list[Any] = []
            done = False
            try:
                alone = self.inplace is not None
                for key, position in zip(self.keys, self.positions):
                    inputs[position] = None
                    array = values.pop(key, None)
                    if array is None and not self.uninit_ok:
                        taken.append(None)
                        state.need(key, self.op)
                    if alone and (type(array) is not np.ndarray or sys.getrefcount(array) != _ALONE):
                        alone = False
                    taken.append(array)
                    inputs[position] = array
                result = self._compute(alone, inputs, taken, rt)
                done = True
            finally:
                if not done:
                    for key, array in zip(self.keys, taken):
                        if array is not None:
                            values[key] = array
            for key, new in zip(self.keys, result):
                values[key] = new
                state.versions[key] = state.versions.get(key, 0) + 1
        return result

    def _compute(self, alone: bool, inputs: list[Any], taken: list[Any], rt: Any) -> tuple[Any, ...]:
        if alone and self.inplace is not None:
            self.inplace(*inputs)
            return tuple(taken)
        result = self.kernel(*inputs, rt=rt) if self.wants_rt else self.kernel(*inputs)
        if type(result) is not tuple:
            result = (result,)
        n = len(self.keys)
        stored = tuple(self._stored(r, inputs) for r in result[:n])
        return stored + result[n:]

    def _stored(self, value: Any, inputs: list[Any]) -> Any:
        """A value fit to be kept: of its own memory, contiguous; rank 0 as a scalar."""
        if type(value) is not np.ndarray:
            return value if isinstance(value, np.generic) else np.asarray(value)[()]
        if value.ndim == 0:
            return value[()]
        if self.copies or value.base is not None or any(value is i for i in inputs):
            return value.copy()
        return value
