"""Updates that take a gradient as the products that it is the sum of.

The gradient of a dense layer's weights is ``left.T @ right``. Where an ``Apply…`` op is all that
reads it, a plan puts both together (lower/select_product_updates.py): the op is then one of these,
with ``left, right`` (or several such pairs) in the place of its gradient. Compiled code updates a
variable while it computes the product (kernels/native/tile_updates.py); until the update is hot,
and for what has no such code, the product is made first and the update is the usual one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef
from headrace.kernels.numpy import numpy_xp
from headrace.ops.training.native_updates import DenseUpdate, NativeUpdate, find_compiled, is_hot

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["MAX_PAIRS", "ProductUpdate", "with_products"]

#: Products that a gradient may be the sum of.
MAX_PAIRS = 4


class _Inputs:
    """The inputs of an update, with pairs of matrices in the place of its gradient."""

    def __init__(self, at: int, count: int) -> None:
        self.at, self.count = at, count  # the gradient's place, and the inputs without pairs

    def pairs(self, inputs: Sequence[Any]) -> list[tuple[Any, Any]]:
        found = inputs[self.at : self.at + len(inputs) - self.count + 1]
        return list(zip(found[::2], found[1::2]))

    def rest(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Those before and after the gradient."""
        return [*inputs[: self.at]], [*inputs[self.at + len(inputs) - self.count + 1 :]]

    def multiplied(self, xp: ArrayNamespace, inputs: Sequence[Any]) -> list[Any]:
        """The inputs of the usual update."""
        before, after = self.rest(inputs)
        total: Any = None
        for left, right in self.pairs(inputs):
            product = xp.matmul(left.T, right)
            total = product if total is None else xp.add(total, product)
        return [*before, total, *after]


class ProductUpdate(NativeUpdate):
    """Of an ``Apply…`` op whose gradient is a sum of products."""

    def __init__(self, dense: DenseUpdate, inputs: _Inputs) -> None:
        super().__init__(dense.rule)
        self.dense, self.inputs = dense, inputs

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        var = inputs[0]
        if not is_hot(uses, var.size):
            return False
        pairs = self.inputs.pairs(inputs)
        before, after = self.inputs.rest(inputs)
        variables = before[: self.count]
        numbers = [*before[self.count :], *after]
        if not self._fits(variables, pairs) or any(np.ndim(n) for n in numbers):
            return self.dense(uses, made, *self.inputs.multiplied(numpy_xp, inputs), **attrs)
        stand_in = pairs[0][1]  # (of the gradient, of which the type alone is asked)
        rest = [*before[self.count :], stand_in, *after]
        found = find_compiled(self.rule, tuple(variables), tuple(rest), attrs)
        if found is None:
            return self.dense(uses, made, *self.inputs.multiplied(numpy_xp, inputs), **attrs)
        from headrace.kernels.native.tile_updates import update_of_products

        update_of_products(found, variables, found.numbers(rest, var.dtype), pairs, made)
        return True

    @staticmethod
    def _fits(variables: Sequence[Array], pairs: Sequence[tuple[Array, Array]]) -> bool:
        from headrace.kernels.native.tile_updates import MAX_DEPTH

        shape = variables[0].shape
        if any(v.shape != shape or v.dtype != np.float32 for v in variables):
            return False
        for left, right in pairs:
            is_sound = left.ndim == right.ndim == 2 and len(left) == len(right)
            if not is_sound or (left.shape[1], right.shape[1]) != shape:
                return False
            if not len(left) or left.dtype != right.dtype:
                return False
            if not (left.flags.c_contiguous and right.flags.c_contiguous):
                return False
        depth = sum(len(left) for left, _ in pairs)
        return depth <= MAX_DEPTH and all(right.dtype == np.float32 for _, right in pairs)


def _kernel(opdef: OpDef, inputs: _Inputs) -> Callable[..., Any]:
    usual = opdef.kernel

    @functools.wraps(usual)
    def kernel(xp: ArrayNamespace, *given: object, **attrs: object) -> Any:
        return usual(xp, *inputs.multiplied(xp, given), **attrs)

    return kernel


def _inplace(opdef: OpDef, inputs: _Inputs) -> Callable[..., None]:
    usual = opdef.inplace
    assert usual is not None

    @functools.wraps(usual)
    def kernel(*given: object, **attrs: object) -> None:
        usual(*inputs.multiplied(numpy_xp, given), **attrs)

    return kernel


def with_products(opdef: OpDef) -> OpDef | None:
    """The op that takes pairs of matrices for its gradient, always the same; None if there is
    none.
    """
    native = opdef.native
    if not isinstance(native, DenseUpdate):
        return None
    if native.of_products is None:
        native.of_products = _made(opdef, native)
    return native.of_products


def _made(opdef: OpDef, native: DenseUpdate) -> OpDef:
    rule = native.rule
    inputs = _Inputs(len(rule.variables) + rule.rest.index(rule.gradient), len(opdef.inputs))
    gradient = f"{rule.gradient}: T"
    assert f", {gradient}" in opdef.signature
    return OpDef(
        f"MatMul + {opdef.name}",
        opdef.signature.replace(f", {gradient}", ", factors: N*T", 1),
        opdef.shape,
        _kernel(opdef, inputs),
        NOT_DIFFERENTIABLE,
        opdef.traits._replace(elementwise=False, update=None),
        _inplace(opdef, inputs),
        None,
        ProductUpdate(native, inputs),
    )
