"""Programs compiled by XLA, through jax: what ``tf.function(jit_compile=True)`` asks for.

The program's kernels are called with ``jax.numpy`` in the place of NumPy while jax traces; what
depends on shapes and constants alone is computed with NumPy at that time, so that it is known.
Variables go in as arguments, and those that are written come out. jax compiles once for each set of
shapes.

Branches, random numbers, strings and Python functions are not compiled, nor are operations whose
kernels jax cannot trace: such a program runs on the numpy executor as a whole, and
``details.why`` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.numpy import numpy_xp
from headrace.lower.executable import Details, Executable, Options
from headrace.lower.passes import Choices, make_plan
from headrace.program.binding_times import why_no_computation
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Block, Node, Program, While, count_uses

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike, TensorLike
    from headrace.lower.session_state import State

__all__ = ["make_xla"]


class Unfit(Exception):
    """Not to be compiled; says why."""


def make_xla(program: Program, options: Options, otherwise: Callable[[], Executable]) -> Executable:
    """The program for XLA; what ``otherwise`` gives where that cannot be."""
    try:
        _check(program.body)
        return _made(program, options, otherwise)
    except Unfit as reason:
        return _fall_back(otherwise, str(reason))


def _fall_back(otherwise: Callable[[], Executable], why: str) -> Executable:
    made = otherwise()
    made.details.executor, made.details.why = "numpy", why
    return made


def _check(block: Block, inside: bool = False) -> None:
    for s in block:
        if isinstance(s, While):
            _check(s.test, True)
            _check(s.body, True)
            continue
        if not isinstance(s, Node):
            raise Unfit("it has a branch")
        why = why_no_computation(s.opdef)
        if why:
            raise Unfit(f"{s.op.type} ({s.op.name!r}) is not compiled: it {why}")
        if inside and s.writes:
            raise Unfit(f"a variable is written in a loop ({s.op.name!r})")


def _jax() -> tuple[ModuleType, ModuleType]:
    try:
        import jax

        from headrace.kernels.jax import jax_xp
    except ImportError:
        raise Unfit("XLA needs jax: pip install 'headrace[xla]'") from None
    return jax, jax_xp


def _made(program: Program, options: Options, otherwise: Callable[[], Executable]) -> Executable:
    jax, jax_xp = _jax()
    compiled = jax.jit(_traced(program, jax_xp))
    variables = program.variables
    written = [v for v in variables if v.written]
    types = [None if f is None else program.values[f].dtype.np_dtype for f in program.fetches]

    def call(state: State, values: dict[str, Any], *feeds: Array | np.generic) -> tuple[Any, ...]:
        now = [values.get(v.key) for v in variables]
        for k, v in enumerate(variables):
            if now[k] is None and v.start in needed:
                now[k] = state.need(v.key, v.op)
        with _with_64_bits(jax):
            fetched, new = compiled([np.float32(0) if n is None else n for n in now], feeds)
        with state.lock:
            state.wait_until_idle([v.key for v in written])
            for v, value in zip(written, new):
                values[v.key] = _own(value, v.dtype.np_dtype)
        return tuple(None if t is None else _own(f, t) for f, t in zip(fetched, types))

    needed = set(count_uses(program))
    details = Details(executor="xla")
    plan = make_plan(program, Choices(fusion=False))
    instead: list[Executable] = []  # the numpy executor's, once it was needed
    given_up = [False]

    def run(state: State, values: dict[str, Any], *feeds: Array | np.generic) -> tuple[Any, ...]:
        if given_up[0]:
            return instead[0].run(state, values, *feeds)
        try:
            return call(state, values, *feeds)
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        # what jax cannot trace, from now on; or an error of the program's, said as it should be
        if not instead:
            instead.append(_fall_back(otherwise, why))
        result = instead[0].run(state, values, *feeds)
        details.executor, details.why = "numpy", why
        given_up[0] = True
        return result

    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        return instead[0].locate(error) if instead else None

    return Executable(run, plan, options, locate, details)


def _with_64_bits(jax: object) -> Any:
    """64-bit types are what they are."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def _own(value: TensorLike, dtype: np.dtype[Any]) -> Array | np.generic:
    array = np.array(value, dtype)
    return array if array.ndim else array[()]


def _traced(program: Program, jax_xp: ModuleType) -> Callable[..., Any]:
    """``f(variables, feeds) -> (fetches, written variables)`` for jax to trace."""

    def function(variables: Any, feeds: Any) -> Any:
        env: dict[int, Any] = dict(program.constants)
        env.update(zip(program.feeds, feeds))
        for info, value in zip(program.variables, variables):
            env[info.start] = env[info.current] = value
        _block(program.body, program, env, jax_xp)
        fetched = [None if f is None else env[f] for f in program.fetches]
        return fetched, [env[v.current] for v in program.variables if v.written]

    return function


def _block(block: Block, program: Program, env: dict[int, Any], jax_xp: ModuleType) -> None:
    for s in block:
        if isinstance(s, While):
            _loop(s, program, env, jax_xp)
        else:
            assert isinstance(s, Node)
            _step(s, program, env, jax_xp)


def _loop(loop: While, program: Program, env: dict[int, Any], jax_xp: ModuleType) -> None:
    """As one loop of XLA's: what it carries keeps its shape and type."""
    types = [program.values[v.value].dtype.np_dtype for v in loop.values]

    def entered(carried: Any) -> dict[int, Any]:
        inner = {**env, **{v.value: x for v, x in zip(loop.values, carried)}}
        _block(loop.test, program, inner, jax_xp)
        return inner

    def body(carried: object) -> list[Array]:
        inner = entered(carried)
        _block(loop.body, program, inner, jax_xp)
        return [jax_xp.asarray(inner[v.next], t) for v, t in zip(loop.values, types)]

    start = [jax_xp.asarray(env[v.init], t) for v, t in zip(loop.values, types)]
    test = lambda carried: jax_xp.asarray(entered(carried)[loop.cond], bool).reshape(())
    end = jax_xp.while_loop(test, body, start)
    env.update({v.value: x for v, x in zip(loop.values, end)})


def _step(node: Node, program: Program, env: dict[int, Any], jax_xp: Any) -> None:
    inputs = [env[i] for i in node.inputs]
    known = all(isinstance(x, (np.ndarray, np.generic)) for x in inputs)
    result = bound_kernel(node, numpy_xp if known else jax_xp)(*inputs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for w, value in zip(node.writes, results):
        info = program.variables[w]
        env[info.current] = _typed(value, info.dtype.np_dtype)
    rest = results[len(node.writes) :] if node.writes else results
    plain = [
        o for o, t in zip(node.outputs, node.op._outputs) if not (node.writes and t._dtype._is_ref)
    ]
    for value, made in zip(plain, rest):
        env[value] = _typed(made, program.values[value].dtype.np_dtype)
    for o, t in zip(node.outputs, node.op._outputs):
        if node.writes and t._dtype._is_ref:
            env[o] = env[program.variables[node.writes[0]].current]


def _typed(value: Any, dtype: DTypeLike) -> Any:
    return value if getattr(value, "dtype", None) == dtype else value.astype(dtype)
