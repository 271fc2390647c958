"""What executors share: options, the executable, and errors that point at the user's line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace import errors
from headrace.core import trace
from headrace.core.infer import shape_problem
from headrace.core.shapes import show

if TYPE_CHECKING:
    from headrace.core.tensor import Operation
    from headrace.lower.listing import Listing
    from headrace.lower.native_segments import NativeSegment
    from headrace.lower.plan import Plan
    from headrace.lower.session_state import State

__all__ = ["Details", "Executable", "Options", "located_error", "op_error", "options_for"]


#: Types that weights may be kept in.
WEIGHTS = ("float32", "bfloat16", "int8")


class Options:
    """How plans are made. Part of the plan cache's key, by identity: take them from
    ``options_for``.

    ``exact`` leaves out the rewrites that may change bits (docs/rewrites.md). ``weights`` is what
    large weights of products that the program does not write are computed with: "float32",
    "bfloat16" or "int8".
    """

    __slots__ = ("exact", "executor", "fusion", "rewrites", "weights")

    def __init__(
        self, executor: str, rewrites: bool, fusion: bool, exact: bool, weights: str
    ) -> None:
        if weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}.")
        self.executor = executor
        self.rewrites = rewrites
        self.fusion = fusion
        self.exact = exact
        self.weights = weights


@functools.lru_cache(64)
def options_for(
    executor: str = "numpy",
    rewrites: bool = True,
    fusion: bool = True,
    exact: bool = False,
    weights: str = "float32",
) -> Options:
    return Options(executor, rewrites, fusion, exact, weights)


class PlansForShapes(Protocol):
    """Plans that were made for the shapes of feeds."""

    def current(self, state: Any) -> Iterator[tuple[tuple[Any, ...], Executable]]: ...

    def notes(self, state: Any) -> list[str]: ...


class WrittenRun(Protocol):
    """A run as generated code, which may be written only when somebody asks."""

    def listing(self) -> Listing: ...

    def codes(self) -> list[tuple[CodeType, Listing]]: ...


@dataclass
class Details:
    """What is known of an executable beside how to run it."""

    written: WrittenRun | None = None  # None for executors that have no generated code
    kept: Executable | None = None  # computes what is kept between runs
    executor: str = "numpy"
    why: str | None = None  # why it is another executor than the one that was asked for
    is_shared: bool = False  # code of an equal structure, with other constants
    unbound: str | None = None  # why runs are not bound to the shapes of their feeds
    #: Plans for the shapes that are fed (executors/specialised.py), or why there are none.
    specialised: PlansForShapes | None = None
    not_specialised: str | None = None
    general_run: Run | None = None  # the run where shapes are not known, if there are such plans

    @property
    def listing(self) -> Listing | None:
        """What runs while shapes are not known."""
        return None if self.written is None else self.written.listing()

    @property
    def codes(self) -> list[tuple[CodeType, Listing]]:
        """Generated code, and what it does."""
        return [] if self.written is None else self.written.codes()

    @property
    def segments(self) -> list[NativeSegment]:
        """Steps that may be one native function."""
        listing = self.listing
        return [] if listing is None else [i.detail for i in listing.instrs if i.op == "segment"]


class Run(Protocol):
    """``run(state, values, *feeds)``: the fetched values."""

    def __call__(self, state: Any, values: Any, /, *feeds: Any) -> tuple[Any, ...]: ...


class SessionRun:
    """A run that can be made for one session, without the look-ups that depend on it.

    A base class: asking a function whether it follows a protocol takes 20 µs.
    """

    __slots__ = ()

    def within(self, state: Any) -> Run:
        raise NotImplementedError

    def __call__(self, state: Any, values: Any, /, *feeds: Any) -> tuple[Any, ...]:
        return self.within(state)(state, values, *feeds)


class Executable:
    """A plan bound to an executor: ``run(state, values, *feeds)`` returns a tuple of fetched
    values.

    ``locate(error)`` finds the operation that raised and its inputs.
    """

    __slots__ = ("details", "locate", "options", "plan", "run")

    def __init__(
        self,
        run: Callable[..., tuple[Any, ...]],
        plan: Plan,
        options: Options,
        locate: Callable[[BaseException], tuple[Any, list[Any]] | None],
        details: Details | None = None,
    ) -> None:
        self.run = run
        self.plan = plan
        self.options = options
        self.locate = locate
        self.details = details or Details(executor=options.executor)

    def run_in(self, state: State) -> Callable[..., tuple[Any, ...]]:
        """``run`` for one session's state."""
        return self.run.within(state) if isinstance(self.run, SessionRun) else self.run

    def planned_again(self, state: State) -> list[tuple[tuple[Any, ...], Executable]]:
        """The shapes of feeds that a session has plans of their own for, and those plans."""
        found = self.details.specialised
        return [] if found is None else list(found.current(state))


def located_error(executable: Executable, error: BaseException) -> BaseException:
    """An error of a run as TensorFlow's class, with the operation and the user's line.

    As it is if it has no place.
    """
    found = executable.locate(error)
    if found is None and isinstance(error, errors.OpError) and hasattr(error._op, "_frames"):
        found = error._op, []  # raised between steps: a variable without a value
    return error if found is None else op_error(getattr(error, "original", error), *found)


def op_error(error: BaseException, op: Operation, inputs: list[Any]) -> BaseException:
    """The error of a step as TensorFlow's class, with operation, input shapes and the user's
    line.
    """
    where = trace.user_line(op._frames)
    if isinstance(error, errors.OpError):
        if _not_found(error, op):
            error = errors.NotFoundError(None, op, error.message)
        if error._op is not None and error._op is not op:
            op, where = error._op, trace.user_line(error._op._frames)
        message = _with_place(error.message, op, where)
        made = type(error).__new__(type(error))
        errors.OpError.__init__(made, None, op, message, error.code)
        return made
    shapes = ", ".join(show(getattr(x, "shape", ())) for x in inputs)
    if isinstance(error, UnboundLocalError):
        text = "The tensor has no value: it belongs to a branch of tf.cond that was not taken"
        return errors.InvalidArgumentError(None, op, _with_place(text, op, where))
    found = errors.as_op_error(error)
    if found is None:
        return error
    text = found.message
    if isinstance(found, errors.InvalidArgumentError):
        text = _shape_message(op, inputs) or f"{error} (input shapes: {shapes})"
    return type(found)(None, op, _with_place(text, op, where))


def _not_found(error: errors.OpError, op: Operation) -> bool:
    """Whether an op that looks a resource up did not find one: its variable has no value."""
    variable = error._op
    if not op._opdef.traits.looks_up or not isinstance(error, errors.FailedPreconditionError):
        return False
    return variable is not None and variable._opdef.role == "handle"


def _shape_message(op: Any, inputs: list[Any]) -> str | None:
    """TensorFlow's words for the commonest mistakes."""
    given = [getattr(x, "shape", ()) for x in inputs]
    if op._opdef.traits.elementwise and len(given) == 2:
        try:
            np.broadcast_shapes(*given)
        except ValueError:
            return f"Incompatible shapes: {show(given[0])} vs. {show(given[1])}"
    if op._opdef.role == "matmul" and len(given) >= 2:
        return f"Matrix size-incompatible: In[0]: {show(given[0])}, In[1]: {show(given[1])}"
    if len(inputs) != len(op._inputs):
        return None  # a step that stands for several operations
    problem = shape_problem(op._opdef, op._attrs, [t._dtype for t in op._inputs], inputs)
    return problem and f"{problem} (input shapes: {', '.join(map(show, given))})"


def _with_place(text: str, op: Operation, where: str) -> str:
    if f"[[node {op.name}]]" in text:
        return text
    return f"{text}\n\t [[node {op.name}]] ({op.type})" + (f"\n\t made at {where}" if where else "")
