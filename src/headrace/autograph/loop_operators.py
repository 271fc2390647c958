"""``while`` and ``for``: in Python, or as ``tf.while_loop``.

Other packages add what they can loop over (datasets, their iterators) to ``FOR_HANDLERS``:

    FOR_HANDLERS.append((lambda x: isinstance(x, Dataset), dataset_for))
    def dataset_for(iterated, extra_test, body, get_state, set_state, names, options): ...

``body(item)`` runs one iteration on the user's variables, ``extra_test()`` (or None) says whether
to go on, ``get_state`` and ``set_state`` carry the variables that a staged loop must thread
through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autograph.branches import zero_like
from headrace.autograph.staged import (
    as_value,
    check_loop_variables,
    condition,
    is_staged,
    scratch_graph,
)
from headrace.autograph.undefined import NO_RETURN, Undefined, is_no_value
from headrace.core import dtypes, nest, shapes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant, identity, placeholder
from headrace.ops.control.assertions import Assert
from headrace.ops.control.control_flow import cond
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.control.while_loops import while_loop
from headrace.ops.math.comparison import logical_and, logical_or

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.shapes import TensorShape

__all__ = ["FOR_HANDLERS", "check_start", "for_stmt", "loop_options", "while_stmt"]

Thunk = Callable[[], Any]
State = tuple[Any, ...]
GetState = Callable[[], State]
SetState = Callable[[Any], None]
ForHandler = Callable[..., None]

#: (which values, the loop over them); later entries are asked first.
FOR_HANDLERS: list[tuple[Callable[[Any], bool], ForHandler]] = []

_LEGAL = "Tensor, int, float, bool or a list, tuple or dict thereof"
_LIMITS = (
    "See "
    "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/autograph/g3doc/reference/limitations.md"
    "#consistency-of-control-flow-types for more info."
)


def loop_options(
    parallel_iterations: TensorLike | None = None,
    swap_memory: object = None,
    maximum_iterations: TensorLike | None = None,
    shape_invariants: object = None,
) -> dict[str, Any]:
    """The arguments of ``set_loop_options`` that were given."""
    given = {
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "maximum_iterations": maximum_iterations,
        "shape_invariants": shape_invariants,
    }
    return {k: v for k, v in given.items() if v is not None}


# while ------------------------------------------------------------------------------------------


def while_stmt(
    test: Thunk,
    body: Thunk,
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    if get_default_graph()._is_eager:
        while test():
            body()
        return
    with scratch_graph():  # the first test only says which kind of loop it is
        first = as_value(test())
    if is_staged(first):
        _staged_while(test, body, get_state, set_state, names, options)
        return
    while first:
        body()
        first = as_value(test())
        if is_staged(first):
            raise NotImplementedError(
                "The condition of while loop started as non-Tensor, then changed to "
                "Tensor. This may happen either "
                "because variables changed type, or when a break or return statement "
                "inside the loop depends on a "
                "Tensor condition. In both cases, changing to a TF loop should remove "
                f"the error.\n{_LIMITS}"
            )


def _staged_while(
    test: Thunk,
    body: Thunk,
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    start = get_state()
    invariants = _invariants(options.get("shape_invariants", ()), start)
    missing = [n for n, v in zip(names, start) if is_no_value(v) and v is not NO_RETURN]
    values: State = start
    if any(map(is_no_value, start)):
        values, invariants = _with_placeholders(
            body, get_state, set_state, start, names, invariants
        )
    if not missing and values:
        set_state(_run_loop(test, body, get_state, set_state, values, names, invariants, options))
        return
    ran = False

    def get_all() -> State:
        return (ran, *get_state())

    def set_all(state: Any) -> None:
        nonlocal ran
        ran = state[0]
        set_state(state[1:])

    def noted_body() -> None:
        nonlocal ran
        body()
        ran = True

    ran, *final = _run_loop(
        test,
        noted_body,
        get_all,
        set_all,
        (False, *values),
        ("<internal>", *names),
        [None, *invariants],
        options,
    )
    if missing:
        text = f"loop must iterate at least once to initialize {', '.join(missing)}"
        with get_default_graph().control_dependencies([Assert(ran, [text])]):
            final = nest.map_structure(lambda v: identity(v) if isinstance(v, Tensor) else v, final)
    set_state(final)


def _run_loop(
    test: Thunk,
    body: Thunk,
    get_state: GetState,
    set_state: SetState,
    values: State,
    names: tuple[str, ...],
    invariants: list[Any],
    options: dict[str, Any],
) -> Any:
    """The variables after ``tf.while_loop``."""

    def loop_test(*state: Tensor | TensorArray | Sequence[Tensor | Sequence[Tensor]]) -> Tensor:
        set_state(state)
        return condition(convert_to_tensor(as_value(test())), "while loop")

    def loop_body(
        *state: Tensor | TensorArray | Sequence[Tensor | Sequence[Tensor]],
    ) -> list[bool | Tensor | TensorArray | tuple[Tensor, Any]]:
        set_state(state)
        body()
        after = get_state()
        check_loop_variables(state, after, names, invariants)
        return list(after)

    others = {k: v for k, v in options.items() if k != "shape_invariants"}
    return while_loop(
        loop_test,
        loop_body,
        list(values),
        shape_invariants=_flat_invariants(values, invariants),
        return_same_structure=True,
        **others,
    )


def _invariants(pairs: Sequence[Sequence[TensorShape | Tensor]], start: State) -> list[Any]:
    """The shape invariant of each variable: they are given as (value, shape) pairs."""
    given = {id(value): shape for value, shape in pairs}
    return [given.get(id(v)) for v in start]


def _flat_invariants(values: State, invariants: list[Any]) -> list[TensorShape] | None:
    if all(i is None for i in invariants):
        return None
    out = []
    for value, invariant in zip(values, invariants):
        if invariant is None:
            out.append(nest.map_structure(_shape_of, value))
        elif nest.is_nested(value):
            out.append(invariant)
        else:
            out.append(shapes.from_plain(shapes.to_plain(invariant)))
    return out


def _shape_of(value: Tensor) -> TensorShape:
    if isinstance(value, TensorArray):
        return shapes.from_plain(value.flow._shape)
    if isinstance(value, Tensor):
        return value.shape
    with scratch_graph():
        return convert_to_tensor(as_value(value)).shape


# variables that the loop itself gives their first value -----------------------------------------


def _with_placeholders(
    body: Thunk,
    get_state: GetState,
    set_state: SetState,
    start: State,
    names: tuple[str, ...],
    invariants: list[Any],
) -> tuple[State, list[Any]]:
    """The variables with zeros for those without a value, of the type that one iteration gives
    them.
    """
    after: State = (None,) * len(start)
    problem = ""
    try:
        with scratch_graph():
            set_state(tuple(nest.map_structure(_as_loop_value, v) for v in start))
            body()
            after = get_state()
            kinds = [
                nest.map_structure(_Kind, a) if is_no_value(s) and not is_no_value(a) else None
                for s, a in zip(start, after)
            ]
    except (UnboundLocalError, NameError, TypeError, ValueError, KeyError) as error:
        kinds = [None] * len(start)
        problem = (
            "\nNote: AutoGraph tried to define it automatically, but ran into a "
            f"{type(error).__name__}: {error}"
        )
    finally:
        set_state(start)
    values, shapes_of = [], []
    for value, kind, invariant in zip(start, kinds, invariants):
        values.append(value if kind is None else nest.map_structure(_Kind.zero, kind))
        shapes_of.append(invariant if kind is None or invariant is not None else _Kind.shapes(kind))
    check_start(values, names, after, problem)
    return tuple(values), shapes_of


def _as_loop_value(value: object) -> Tensor | object:
    """A Python number becomes a tensor in a loop; its value is not known there."""
    if isinstance(value, (bool, int, float, str)):
        tensor = convert_to_tensor(value)
        return placeholder(tensor._dtype, tensor._shape)
    return value


class _Kind:
    """Type and shape of what one iteration gave a variable."""

    def __init__(self, value: TensorLike) -> None:
        value = as_value(value)
        if isinstance(value, TensorArray):
            raise TypeError(
                "a TensorArray must be made before the loop: one that is made in an "
                "iteration ends with it"
            )
        self.plain = type(value) if isinstance(value, (bool, int, float)) else None
        self.tensor = value if isinstance(value, Tensor) else None
        if self.plain is None and self.tensor is None:
            self.tensor = convert_to_tensor(value)

    def zero(self) -> Any:
        return self.plain(0) if self.plain is not None else zero_like(self.tensor)

    @staticmethod
    def shapes(kinds: _Kind) -> Any:
        """The invariant, if a dimension is not known before the loop runs."""
        if not isinstance(kinds, _Kind) or kinds.tensor is None:
            return None
        shape = kinds.tensor._shape
        return shapes.from_plain(shape) if shape is None or None in shape else None


def check_start(
    values: Sequence[Any], names: tuple[str, ...], after: State | None = None, problem: str = ""
) -> None:
    """ValueError for a loop variable that has no value before a staged loop."""
    for name, value, later in zip(names, values, after or (None,) * len(names)):
        if value is NO_RETURN:
            if later is not None and later is not NO_RETURN and not problem:
                raise ValueError(
                    f"the return value from a TensorFlow loop may only be a {_LEGAL}; got "
                    f"{type(later)}"
                )
            raise NotImplementedError(
                "a return statement cannot be placed inside this TensorFlow loop; this "
                "may happen if a return "
                f"statement depends on a static Python condition such as a hyperparameter{problem}"
            )
        if value is None:
            raise ValueError(f"'{name}' is not allowed to be None before the loop{problem}")
        if isinstance(value, Undefined):
            raise ValueError(f"'{name}' must be defined before the loop{problem}")


# for --------------------------------------------------------------------------------------------


def for_stmt(
    iterated: object,
    extra_test: Thunk | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
    iterate: str,
) -> None:
    for accepts, handler in reversed(FOR_HANDLERS):
        if accepts(iterated):
            handler(iterated, extra_test, body, get_state, set_state, names, options)
            return
    iterated = as_value(iterated)
    if isinstance(iterated, Tensor) and not get_default_graph()._is_eager:
        tensor = convert_to_tensor(iterated)  # an eager tensor comes into the graph
        loop = _range_for if is_staged(tensor) and tensor._op.type == "Range" else _tensor_for
        loop(tensor, extra_test, body, get_state, set_state, names, options, iterate)
        return
    if extra_test is None:
        for item in iterated:
            body(item)
    elif _go_on(extra_test):
        for item in iterated:
            body(item)
            if not _go_on(extra_test):
                break


def _go_on(extra_test: Thunk) -> bool:
    value = extra_test()
    if is_staged(value):
        raise NotImplementedError(
            "break and return statements which depend on a TF condition are not supported "
            "in Python for loops. Did you "
            f"intend to make it a TF loop?\n{_LIMITS}"
        )
    return bool(value)


def _counted(
    start: Tensor,
    goes_on: Callable[[Any], Any],
    item: Callable[[Any], Any],
    step: int | Tensor,
    extra_test: Thunk | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    """A loop over a counter, which is one more variable of the loop."""
    at = start

    def get_all() -> State:
        return (at, *get_state())

    def set_all(state: Sequence[Any]) -> None:
        nonlocal at
        at = state[0]
        set_state(state[1:])

    def run() -> None:
        nonlocal at
        body(item(at))
        at = at + step

    def test() -> Any:
        main = goes_on(at)
        if extra_test is None:
            return main
        return cond(main, lambda: convert_to_tensor(extra_test()), lambda: constant(False))

    _staged_while(test, run, get_all, set_all, ("<internal iterate>", *names), options)


def _range_for(
    iterated: Tensor,
    extra_test: Thunk | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
    iterate: str,
) -> None:
    """Over ``tf.range``: the range itself is not made."""
    start: Any
    limit: Any
    delta: Any
    start, limit, delta = iterated._op.inputs
    step = static_value(delta)

    def goes_on(at: TensorLike) -> Any:
        if step is not None:
            return at < limit if step >= 0 else at > limit
        up = logical_and(delta >= 0, at < limit)
        return logical_or(up, logical_and(delta < 0, at > limit))

    def get_all() -> State:
        # a range may be empty: then its variable keeps the start, as in TensorFlow
        return tuple(
            start if n == iterate and isinstance(v, Undefined) else v
            for n, v in zip(names, get_state())
        )

    _counted(
        start, goes_on, lambda at: at, delta, extra_test, body, get_all, set_state, names, options
    )


def _tensor_for(
    iterated: Tensor,
    extra_test: Thunk | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    options: dict[str, Any],
    iterate: str,
) -> None:
    """Over the first axis of a tensor."""
    from headrace.autograph.py_builtins import len_

    size = len_(iterated)
    count = constant(size, dtypes.int32) if isinstance(size, int) else size
    items = TensorArray(iterated.dtype, size=count).unstack(iterated)
    _counted(
        constant(0),
        lambda at: at < count,
        items.read,
        1,
        extra_test,
        body,
        get_state,
        set_state,
        names,
        options,
    )
