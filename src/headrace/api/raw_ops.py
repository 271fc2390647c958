"""``tf.raw_ops`` and the ``gen_*_ops`` modules: each defined op as a plain function.

raw_ops.MatMul(a=x, b=y)               # keywords only
generated("mat_mul")(x, y, name="z")   # snake case; inputs, then attributes, by position
"""

from __future__ import annotations

import collections
import functools
import inspect
import re
import typing
from collections.abc import Callable

import headrace.ops  # noqa: F401 (defines the ops)
from headrace.api.version import GRAPH_DEF_VERSION
from headrace.core.build import apply_any
from headrace.core.op_limits import are_enforced
from headrace.core.opdef import ALL_OPS, LOADERS, OpDef
from headrace.ops.control.control_flow import note_flat

__all__ = ["generated", "parameters", "raw", "snake_case"]


def snake_case(op_type: str) -> str:
    """The name of an op's generated function.

    ``MatMul`` -> ``mat_mul``, ``Conv2DBackpropInput`` -> ``conv2d_backprop_input``.
    """
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", op_type)
    text = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", text)
    return re.sub(r"(\d)_d(?=_|$)", r"\1d", text.lower())


def _load_every_op() -> None:
    """Ops that a program gets when it first uses their module are defined here and now."""
    while LOADERS:
        LOADERS.pop()()


@functools.cache
def _by_snake_case() -> dict[str, str]:
    _load_every_op()
    return {snake_case(op): op for op in ALL_OPS}


def parameters(opdef: OpDef) -> list[str]:
    """TensorFlow's names in its order: inputs, attributes without a default, those with one."""
    return [p for p in _signature(opdef, inspect.Parameter.KEYWORD_ONLY).parameters][:-1]


def _signature(opdef: OpDef, kind: typing.Any) -> inspect.Signature:
    """The parameters of TensorFlow's function, ``name`` at last."""
    attrs = [a for a in opdef.attrs.values() if a.name not in opdef.inferred]
    renamed = dict(opdef.traits.renamed)
    needed = [i.name for i in opdef.inputs] + [a.name for a in attrs if not a.has_default]
    made = [inspect.Parameter(renamed.get(n, n), kind) for n in needed]
    made += [
        inspect.Parameter(renamed.get(a.name, a.name), kind, default=a.default)
        for a in attrs
        if a.has_default
    ]
    return inspect.Signature([*made, inspect.Parameter("name", kind, default=None)])


def _call(opdef: OpDef, given: dict[str, typing.Any], name: str | None) -> typing.Any:
    allowed = _allowed(opdef.name)
    for parameter in given:
        if parameter not in allowed:
            raise TypeError(f"{opdef.name}() got an unexpected keyword argument {parameter!r}")
    if opdef.traits.removed is not None and are_enforced():
        version, advice = opdef.traits.removed
        raise NotImplementedError(
            f"Op {opdef.name} is not available in GraphDef version {GRAPH_DEF_VERSION}. It has "
            f"been removed in version {version}. {advice.rstrip(chr(46))}."
        )
    for name_in_graphs, parameter in opdef.traits.renamed:
        if parameter in given:
            given[name_in_graphs] = given.pop(parameter)
    renamed = dict(opdef.traits.renamed)
    missing = [renamed.get(i.name, i.name) for i in opdef.inputs if i.name not in given]
    if missing:
        of = "argument" if len(missing) == 1 else "arguments"
        names = " and ".join(map(repr, missing))
        raise TypeError(f"{opdef.name}() missing {len(missing)} required positional {of}: {names}")
    inputs = [given.pop(i.name) for i in opdef.inputs]
    out = apply_any(opdef, *inputs, name=name, **given)
    if opdef.name in ("Switch", "Merge"):
        note_flat(out[0])
    if type(out) is tuple and len(out) == len(opdef.outputs):
        return _results(opdef.name)._make(out)
    return out


@functools.cache
def _results(op_type: str) -> typing.Any:
    """The named tuple of an op's outputs."""
    return collections.namedtuple(op_type.lstrip("_"), [a.name for a in ALL_OPS[op_type].outputs])


@functools.cache
def _allowed(op_type: str) -> frozenset[str]:
    """The keywords of an op's function without ``name``."""
    return frozenset(parameters(ALL_OPS[op_type]))


@functools.cache
def raw(op_type: str) -> Callable[..., typing.Any]:
    """``tf.raw_ops.<op_type>``; KeyError if there is no such op."""
    opdef = ALL_OPS[op_type]

    def op(*, name: str | None = None, **given: object) -> typing.Any:
        return _call(opdef, given, name)

    op.__name__ = op.__qualname__ = op_type
    op.__doc__ = f"{op_type}({', '.join([*parameters(opdef), 'name=None'])})"
    vars(op)["__signature__"] = _signature(opdef, inspect.Parameter.KEYWORD_ONLY)
    return op


@functools.cache
def generated(name: str) -> Callable[..., typing.Any]:
    """The function that TensorFlow's ``gen_*_ops`` modules have; KeyError if there is no such
    op.
    """
    op_type = _by_snake_case()[name.strip("_")]
    opdef = ALL_OPS[op_type]
    order = [*parameters(opdef), "name"]

    def op(*args: object, **given: typing.Any) -> typing.Any:
        if len(args) > len(order):
            raise TypeError(f"{name}() takes {len(order)} arguments, but {len(args)} were given")
        for parameter, value in zip(order, args):
            if parameter in given:
                raise TypeError(f"{name}() got two values for the argument {parameter!r}")
            given[parameter] = value
        return _call(opdef, given, given.pop("name", None))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"{name}({', '.join(order)})"
    vars(op)["__signature__"] = _signature(opdef, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return op


def __getattr__(name: str) -> Callable[..., typing.Any]:
    if name not in ALL_OPS and not name.startswith("_"):
        _load_every_op()
    if name in ALL_OPS:
        return raw(name)
    from headrace.api.missing import explain

    raise AttributeError(explain("raw_ops", name, ALL_OPS), name=name)


def __dir__() -> list[str]:
    _load_every_op()
    return sorted(ALL_OPS)
