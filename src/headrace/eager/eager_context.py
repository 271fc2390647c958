"""The eager context: what stands in the place of the default graph while operations are computed at
once.

There is one per process. It is a :class:`Graph` in form only, so that the wrappers of
``headrace.ops`` need no second version: name scopes are kept (variables are named by them), control
dependencies and devices do nothing, and adding an operation computes it. Its state (:class:`State`)
holds the values of eager variables and the generators of random ops.

    enable()                      # for the process: tf.enable_eager_execution()
    with eager_mode(): ...        # for a block, on this thread
"""

from __future__ import annotations

import random
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from headrace.core import stacks
from headrace.core.graph import Graph, get_default_graph, root_graph, set_root_graph
from headrace.core.opdef import OpDef
from headrace.core.seeds import DEFAULT_GRAPH_SEED
from headrace.core.tensor import Tensor
from headrace.eager.eager_tensor import PLACE, wrap
from headrace.lower.session_state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.stacks import Entered
    from headrace.kernels.numpy.philox import Guarded
    from headrace.variables.variable import Variable

__all__ = ["EAGER", "STATE", "disable", "eager_mode", "enable", "executing_eagerly"]

_MAX_INT32 = 2**31 - 1
#: Random generators that are kept: those of calls with a seed of their own go on where they
#: stopped.
_MAX_GENERATORS = 4096


class _Resources(dict[Hashable, Any]):
    """Resources by key; of the generators of random ops only the most recent are kept."""

    def get(self, key: Hashable, default: Any = None) -> Any:
        found = dict.get(self, key, default)
        if found is not None and len(self) > _MAX_GENERATORS // 2 and key in self:
            dict.__setitem__(self, key, dict.pop(self, key))
        return found

    def __setitem__(self, key: Hashable, value: Guarded) -> None:
        if len(self) >= _MAX_GENERATORS:
            dict.pop(self, next(iter(self)))
        dict.__setitem__(self, key, value)


#: The values of eager variables, and the generators of random ops.
STATE = State()
STATE.resources = _Resources()


class _PerThread(threading.local):
    scope = ""

    def __init__(self) -> None:
        #: The device scopes that are open; an entry is a list so that each is one of its own.
        self.devices: list[list[Any]] = []


class _Scope:
    """``with tf.name_scope("a"):`` names are not made unique."""

    __slots__ = ("name", "old", "thread")

    def __init__(self, thread: _PerThread, name: str | None) -> None:
        self.thread = thread
        self.name = name

    def __enter__(self) -> str:
        name = self.name
        old = self.old = self.thread.scope
        if not name:
            self.thread.scope = ""
            return ""
        new = name[:-1] if name[-1] == "/" else f"{old}/{name}" if old else name
        self.thread.scope = new
        return new + "/"

    def __exit__(self, *exc: object) -> None:
        self.thread.scope = self.old


class EagerGraph(Graph):
    """The context in the form of a graph."""

    _is_eager = True

    def __init__(self) -> None:
        super().__init__()
        self._thread = _PerThread()
        self._generator = random.Random()
        self._generator_lock = threading.Lock()

    # building is computing ----------------------------------------------------------------------
    def _execute(
        self, opdef: OpDef, inputs: tuple[Any, ...], name: str | None, given: dict[str, Any]
    ) -> Any:
        from headrace.eager.execute import execute

        self._execute = execute  # type: ignore[method-assign]  # the next call goes straight there
        return execute(opdef, inputs, name, given)

    def _multiply(self, a: object, b: object) -> Tensor | None:
        from headrace.eager.eager_operators import product

        self._multiply = product  # type: ignore[method-assign]  # the next call goes straight there
        return product(a, b)

    def _add_op(
        self,
        opdef: OpDef,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        name: str,
        control_inputs: object = None,
        depth: int = 2,
    ) -> Any:
        """An operation from flat tensors: computed, and returned as a record with its outputs."""
        from headrace.eager.execute import execute_flat

        return execute_flat(opdef, inputs, attrs, name)

    def _constant(self, array: Any, dtype: Any) -> Tensor:
        return wrap(array, dtype)

    def _variable(self, kwargs: dict[str, Any]) -> Variable:
        from headrace.eager.eager_variables import EagerVariable

        return EagerVariable(**kwargs)

    def _derivative(
        self, build: Any, inputs: Sequence[TensorLike], weights: Sequence[Any]
    ) -> list[Any]:
        from headrace.core.build import apply_op
        from headrace.eager.tape import GradientTape

        with GradientTape() as tape:
            copies = [apply_op("Identity", t) for t in inputs]
            tape.watch(copies)
            pairs = [(y, g) for y, g in zip(build(copies), weights) if g is not None]
        found: list[Any] = tape.gradient([y for y, _ in pairs], copies, [g for _, g in pairs])
        return found

    def _custom_gradient(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from headrace.eager.eager_custom_gradient import call_with_gradient

        return call_with_gradient(f, args, kwargs)

    # names --------------------------------------------------------------------------------------
    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        scope = self._thread.scope
        return f"{scope}/{name}" if scope else name

    def _unique(self, name: str, mark_as_used: bool = True) -> str:
        return name

    def _full_name(self, name: str) -> str:
        return name

    def name_scope(self, name: str | None) -> Any:
        return _Scope(self._thread, name)

    def get_name_scope(self) -> str:
        return self._thread.scope

    # contexts that order or place nothing here --------------------------------------------------
    def control_dependencies(self, control_inputs: Any) -> Any:
        """What was computed is done; functions among the control inputs are called."""
        if callable(control_inputs):
            control_inputs()
        elif control_inputs is not None:
            for control in control_inputs:
                if callable(control):
                    control()
        return nullcontext()

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Places nothing; blocks that are not left in the order of their nesting are an error."""
        if isinstance(device_name_or_function, str):
            stacks.device_string(device_name_or_function)  # (ValueError if it is no device)
        devices = self._thread.devices
        entry = [device_name_or_function]
        devices.append(entry)
        try:
            yield
        finally:
            if devices[-1] is not entry:
                raise RuntimeError("Exiting device scope without proper scope nesting")
            devices.pop()

    def colocate_with(self, op: object, ignore_existing: bool = False) -> Any:
        return nullcontext()

    def gradient_override_map(self, op_type_map: dict[str, str]) -> Any:
        return nullcontext()

    def _attribute_scope(self, attrs: dict[str, Any]) -> Any:
        return nullcontext()

    def _bump(self) -> None:
        return

    # seeds --------------------------------------------------------------------------------------
    @property
    def seed(self) -> int | None:
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        with self._generator_lock:
            self._seed = seed
            self._generator = random.Random(seed)
            STATE.resources.clear()

    def _op_seeds(self, op_seed: Any) -> tuple[int | None, int | None]:
        """TensorFlow's pair for a call.

        An op without a seed draws one from the context's own generator.
        """
        seed = self._seed
        if seed is None and op_seed is None:
            return None, None
        if op_seed is None:
            with self._generator_lock:
                op_seed = self._generator.randint(0, _MAX_INT32)
        pair = (
            (DEFAULT_GRAPH_SEED if seed is None else seed) % _MAX_INT32,
            int(op_seed) % _MAX_INT32,
        )
        return (0, _MAX_INT32) if pair == (0, 0) else pair


EAGER = EagerGraph()
PLACE.graph = EAGER
stacks.eager_graph = EAGER


def executing_eagerly() -> bool:
    """Whether an op made here and now is computed at once."""
    return get_default_graph()._is_eager


def enabled() -> bool:
    """Whether eager execution is the process's way (functions being traced notwithstanding)."""
    root = root_graph()
    return root is not None and root._is_eager


def enable() -> None:
    """Eager execution from now on, on every thread, outside of ``with graph.as_default()``."""
    root = root_graph()
    if root is EAGER:
        return
    if root is not None and root._ops:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    set_root_graph(EAGER)


def disable() -> None:
    """Back to graphs."""
    if root_graph() is EAGER:
        set_root_graph(None)


def inside_function() -> bool:
    """Whether a function is being traced here."""
    return get_default_graph()._is_function


def get_current_name_scope() -> str:
    """The name scopes that are open, joined by slashes."""
    return get_default_graph().get_name_scope()


def is_symbolic_tensor(tensor: object) -> bool:
    """Whether a tensor stands for a value that is computed later."""
    return isinstance(tensor, Tensor) and not getattr(tensor, "_is_eager", False)


def eager_mode() -> Entered:
    """``with eager_mode():`` computes at once on this thread."""
    return stacks.default_graphs.entered(EAGER)
