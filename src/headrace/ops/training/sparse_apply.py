"""Sparse training ops: the update rule on the rows that ``indices`` names, the other rows
untouched.

``SparseApplyMomentum(var, accum, lr, grad, indices, momentum)`` updates ``var[indices[i]]`` with
``grad[i]``. TensorFlow takes the rows one after the other, so a repeated index is updated
repeatedly. Here all rows are taken at once; if an index repeats, first all first occurrences, then
all second ones, and so on, which gives the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, define
from headrace.core.shapes import Shape
from headrace.kernels.numpy import numpy_xp
from headrace.ops.training.apply_ops import (
    check_signs,
    not_a_scalar,
    signature,
    variable_shape,
)
from headrace.ops.training.native_updates import SparseUpdate
from headrace.ops.training.update_rules import RULES, Rule

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["define_sparse", "sparse_inplace", "sparse_kernel"]


def sparse_shape(rule: Rule, *, resource: bool) -> Callable[[Inference], list[Shape]]:
    """``grad`` has a row for each index; a row has the shape of the variable's."""
    count = len(rule.variables)
    at = count + rule.rest.index(rule.gradient)

    def infer(c: Inference) -> list[Shape]:
        found = variable_shape(c, 0)
        for i in range(1, count):
            found = shapes.merge(found, variable_shape(c, i))
        indices = c.require_rank(at + 1, 1)
        grad = c.require_rank_at_least(at, 1)
        if grad is not None and indices is not None:
            shapes.merge((grad[0],), indices)
            if found is not None:
                shapes.merge(found, (None, *grad[1:]))
        for i in range(count, c.n_inputs):
            if i not in (at, at + 1):
                c.require_rank(i, 0)
        return [] if resource else [found]

    return infer


def check_sparse(rule: Rule, variables: Any, rest: Any, grad: Array, indices: Array) -> None:
    """InvalidArgumentError where the values do not fit together or an index is no row."""
    var = variables[0]
    if not var.shape:
        raise _invalid("var must be at least 1 dimensional")
    for name, value in zip(rule.variables, variables):
        if value.shape != var.shape:
            raise _invalid(
                f"var and {name} do not have the same shape{shapes.show(var.shape)} "
                f"{shapes.show(value.shape)}"
            )
    names = [n for n in rule.rest if n != rule.gradient]
    for name, value in zip(names, rest):
        if value.shape != ():
            raise not_a_scalar(name, value)
    check_signs(rule, dict(zip(names, rest)))
    if len(indices.shape) != 1:
        raise _invalid("indices must be one-dimensional")
    if grad.shape[:1] != indices.shape:
        raise _invalid("grad must be the same size as indices in the first dimension.")
    if grad.shape[1:] != var.shape[1:]:
        raise _invalid(
            f"var and grad must match in dimension 1: {shapes.show(var.shape)} "
            f"{shapes.show(grad.shape)}"
        )


def check_rows(indices: Array, rows: int) -> None:
    bad = np.flatnonzero((indices < 0) | (indices >= rows))
    if bad.size:
        raise _invalid(f"Index {indices[bad[0]]} at offset {bad[0]} in indices is out of range")


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def layers(indices: Array) -> Iterator[Any]:
    """Positions in ``indices``, so divided that within a part every index is there once, and in
    order.
    """
    if indices.size < 2 or np.unique(indices).size == indices.size:
        yield slice(None)
        return
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    occurrence = np.arange(indices.size) - np.repeat(starts, np.diff(np.r_[starts, indices.size]))
    for n in range(int(occurrence.max()) + 1):
        yield order[occurrence == n]


def _split(rule: Rule, inputs: tuple[Any, ...]) -> tuple[Any, list[Any], Any, Any]:
    """Inputs of a sparse op as variables, scalars, gradient and indices, checked."""
    count = len(rule.variables)
    at = rule.rest.index(rule.gradient)
    variables, rest = inputs[:count], list(inputs[count:])
    indices = rest.pop(at + 1)
    grad = rest.pop(at)
    check_sparse(rule, variables, rest, grad, indices)
    return variables, rest, grad, indices


def _updated(
    rule: Rule,
    xp: ArrayNamespace,
    rows: list[Any],
    rest: list[Any],
    grad: Array,
    attrs: Mapping[str, Any],
) -> tuple[Array, ...]:
    at = rule.rest.index(rule.gradient)
    new = rule.update(xp, *rows, *rest[:at], grad, *rest[at:], **attrs)
    return new if len(rows) > 1 else (new,)


def _update_rows(
    rule: Rule,
    variables: Sequence[Array],
    rest: list[Any],
    grad: Array,
    indices: Array,
    attrs: Mapping[str, Any],
) -> None:
    for part in layers(indices):
        at = indices[part]
        rows = [v[at] for v in variables]
        for variable, new in zip(
            variables, _updated(rule, numpy_xp, rows, rest, grad[part], attrs)
        ):
            variable[at] = new


def sparse_kernel(rule: Rule) -> Callable[..., Any]:
    @functools.wraps(rule.update)
    def kernel(xp: ArrayNamespace, *inputs: object, **attrs: object) -> Any:
        variables, rest, grad, indices = _split(rule, inputs)
        if xp.name == "numpy":
            check_rows(indices, variables[0].shape[0])
            variables = [np.array(v) for v in variables]
            _update_rows(rule, variables, rest, grad, indices, attrs)
        else:  # compiled: indices are those of one occurrence each, as optimizers make them
            new = _updated(rule, xp, [v[indices] for v in variables], rest, grad, attrs)
            variables = [xp.index_set(v, indices, n) for v, n in zip(variables, new)]
        return tuple(variables) if len(variables) > 1 else variables[0]

    return kernel


def sparse_inplace(rule: Rule) -> Callable[..., None]:
    parameters = functools.partial(rule.update, numpy_xp)

    @functools.wraps(parameters)
    def kernel(*inputs: object, **attrs: object) -> None:
        variables, rest, grad, indices = _split(rule, inputs)
        check_rows(indices, variables[0].shape[0])
        _update_rows(rule, variables, rest, grad, indices, attrs)

    return kernel


def define_sparse(rule: Rule, prefix: str, variable: str) -> OpDef:
    return define(
        f"{prefix}{rule.name}",
        signature(rule, variable, sparse=True),
        shape=sparse_shape(rule, resource=variable == "resource"),
        kernel=sparse_kernel(rule),
        inplace=sparse_inplace(rule),
        native=SparseUpdate(rule, check_rows),
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        writes=tuple(range(len(rule.variables))),
    )


for _rule in RULES.values():
    if "ref" in _rule.forms and "sparse" in _rule.forms:
        define_sparse(_rule, "SparseApply", "&T")
