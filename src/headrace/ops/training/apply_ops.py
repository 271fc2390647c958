"""The training ops: ``ApplyAdam`` and its kind, one for each rule of update_rules.py.

Each rule gives up to four ops: ``ApplyX`` on reference variables (here), ``SparseApplyX`` on some
rows (sparse_apply.py), and ``ResourceApplyX`` / ``ResourceSparseApplyX`` on handles
(resource_apply.py). The kernels are pure functions of the current values; the ``inplace``
versions overwrite them.

``apply_adam(var, m, v, ..., grad, use_locking=False, name=None)`` and so on, as in TensorFlow's
module of this name, are made on demand from the op's definition.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply_any
from headrace.core.infer import Inference
from headrace.core.opdef import ALL_OPS, NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.shapes import Shape
from headrace.ops.state.resource_state import handle_shape
from headrace.ops.training.inplace_updates import INPLACE
from headrace.ops.training.native_updates import DenseUpdate
from headrace.ops.training.update_rules import RULES, Rule

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = [
    "check_signs",
    "dense_inplace",
    "dense_kernel",
    "define_dense",
    "signature",
    "variable_shape",
]


# signatures and shapes --------------------------------------------------------------------------


def signature(rule: Rule, variable: str, *, sparse: bool) -> str:
    """The op's signature; ``variable`` is the type of the updated inputs, ``&T`` or
    ``resource``.
    """
    inputs = [f"{name}: {variable}" for name in rule.variables]
    for name in rule.rest:
        if name == rule.gradient:
            inputs.append("grad: T" if sparse else f"{name}: T")
            inputs += ["indices: Tindices"] if sparse else []
        else:
            inputs.append(f"{name}: int64" if name == "global_step" else f"{name}: T")
    output = "out: &T" if variable == "&T" else ""
    attrs = [
        "T: type(number)",
        *(["Tindices: type(index)"] if sparse else []),
        "use_locking: bool=False",
    ]
    attrs += [rule.attrs] if rule.attrs else []
    return f"{', '.join(inputs)} -> {output}; {', '.join(attrs)}"


def variable_shape(c: Inference, i: int) -> Shape:
    """Shape of the variable that input i refers to."""
    tensor = c.op._inputs[i]
    return handle_shape(tensor) if tensor._dtype._base is dtypes.resource else tensor._shape


def dense_shape(rule: Rule, *, resource: bool) -> Callable[[Inference], list[Shape]]:
    """Variables and gradient have one shape, the rest are scalars."""
    count = len(rule.variables)
    at = count + rule.rest.index(rule.gradient)

    def infer(c: Inference) -> list[Shape]:
        found = variable_shape(c, 0)
        for i in range(1, count):
            found = shapes.merge(found, variable_shape(c, i))
        found = shapes.merge(found, c.shape(at))
        for i in range(count, c.n_inputs):
            if i != at:
                c.require_rank(i, 0)
        return [] if resource else [found]

    return infer


# kernels ----------------------------------------------------------------------------------------


def checker(rule: Rule) -> Callable[[tuple[Any, ...]], None]:
    """A quick look at the shapes; what does not fit is examined, and refused, by ``check``."""
    count = len(rule.variables)
    at = count + rule.rest.index(rule.gradient)
    alike = (*range(1, count), at)
    scalars = tuple(i for i in range(count, count + len(rule.rest)) if i != at)

    if rule.signs:
        return functools.partial(check, rule)
    if count == 1 and len(scalars) == 1:
        only = scalars[0]

        def look_at_two(inputs: tuple[Any, ...]) -> None:
            if inputs[at].shape != inputs[0].shape or inputs[only].ndim:
                check(rule, inputs)

        return look_at_two

    def look(inputs: tuple[Any, ...]) -> None:
        shape = inputs[0].shape
        for i in alike:
            if inputs[i].shape != shape:
                check(rule, inputs)
        for i in scalars:
            if inputs[i].ndim:
                check(rule, inputs)

    return look


def check(rule: Rule, inputs: tuple[Any, ...]) -> None:
    """InvalidArgumentError where the values do not fit together."""
    shape, count = inputs[0].shape, len(rule.variables)
    for name, value in zip(rule.variables, inputs[:count]):
        if value.shape != shape:
            raise _unequal(name, shape, value.shape)
    for name, value in zip(rule.rest, inputs[count:]):
        if name == rule.gradient:
            if value.shape != shape:
                raise _unequal(name, shape, value.shape)
        elif value.shape != ():
            raise not_a_scalar(name, value)
    check_signs(rule, dict(zip(rule.rest, inputs[count:])))


def check_signs(rule: Rule, numbers: Mapping[str, Any]) -> None:
    """InvalidArgumentError where a rate is not positive, say."""
    wrong = rule.wrong_number(numbers)
    if wrong:
        raise errors.InvalidArgumentError(None, None, wrong)


def _unequal(name: str, shape: Any, other: Any) -> errors.InvalidArgumentError:
    text = f"var and {name} do not have the same shape{shapes.show(shape)} {shapes.show(other)}"
    return errors.InvalidArgumentError(None, None, text)


def not_a_scalar(name: str, value: Array) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"{name} is not a scalar: {shapes.show(value.shape)}"
    )


def dense_kernel(rule: Rule) -> Callable[..., Any]:
    """The rule, checked. (``wraps`` keeps the attributes that it asks for visible to
    ``define``.)
    """

    look = checker(rule)

    @functools.wraps(rule.update)
    def kernel(xp: ArrayNamespace, *inputs: object, **attrs: object) -> Any:
        look(inputs)
        return rule.update(xp, *inputs, **attrs)

    return kernel


def trusting_kernel(rule: Rule) -> Callable[..., Any]:
    """The rule for inputs whose shapes are known; numbers that have limits are looked at."""
    if not rule.signs:
        return rule.update

    @functools.wraps(rule.update)
    def kernel(xp: ArrayNamespace, *inputs: object, **attrs: object) -> Any:
        check_signs(rule, dict(zip(rule.rest, inputs[len(rule.variables) :])))
        return rule.update(xp, *inputs, **attrs)

    return kernel


def dense_inplace(rule: Rule) -> Callable[..., None]:
    update = INPLACE[rule.name]
    look = checker(rule)

    @functools.wraps(update)
    def kernel(*inputs: object, **attrs: object) -> None:
        look(inputs)
        update(*inputs, **attrs)

    return kernel


def define_dense(rule: Rule, prefix: str, variable: str) -> OpDef:
    return define(
        f"{prefix}{rule.name}",
        signature(rule, variable, sparse=False),
        shape=dense_shape(rule, resource=variable == "resource"),
        kernel=dense_kernel(rule),
        trusting=trusting_kernel(rule),
        inplace=dense_inplace(rule),
        native=DenseUpdate(rule),
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        writes=tuple(range(len(rule.variables))),
        elementwise=True,
    )


for _rule in RULES.values():
    if "ref" in _rule.forms:
        define_dense(_rule, "Apply", "&T")


# functions by TensorFlow's names ----------------------------------------------------------------


def _snake(name: str) -> str:
    """ApplyRMSProp: apply_rms_prop, ApplyFtrlV2: apply_ftrl_v2."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


@functools.cache
def _by_function_name() -> dict[str, OpDef]:
    from headrace.ops.training import (
        resource_apply,  # noqa: F401  (they add their ops)
        sparse_apply,  # noqa: F401  (they add their ops)
    )

    return {
        _snake(name): opdef
        for name, opdef in ALL_OPS.items()
        if re.match("(Resource)?(Sparse)?Apply", name)
    }


def __getattr__(name: str) -> Callable[..., Any]:
    opdef = None if name.startswith("__") else _by_function_name().get(name)
    if opdef is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    order = [a.name for a in opdef.inputs]

    def function(*args: object, name: str | None = None, **kwargs: object) -> Any:
        inputs = [*args, *(kwargs.pop(n) for n in order[len(args) :])]
        return apply_any(opdef, *inputs, name=name, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


# traits ------------------------------------------------------------------------------------------

add_traits("ApplyGradientDescent", update="{0} - {1} * {2}")
