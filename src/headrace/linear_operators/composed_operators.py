"""Operators made of operators: Adjoint, Inversion, Composition, BlockDiag, Kronecker,
LowRankUpdate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.linear_operators.diagonal_operators import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
)
from headrace.linear_operators.operator_base import (
    LinearOperator,
    broadcast_matrices,
    is_operator,
)
from headrace.ops.linalg import decompositions, solving
from headrace.ops.linalg.matmul import adjoint as adjoint_of

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = [
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorComposition",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
]


_HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


def _hints(*values: bool | None) -> dict[str, bool | None]:
    """Hints by their names, in the order of arguments."""
    return dict(zip(_HINTS, values))


def _agreed(own: bool | None, operator_hint: bool | None, what: str) -> bool | None:
    """A hint about the operator holds for its adjoint and inverse, too."""
    if own is not None and operator_hint is not None and own != operator_hint:
        raise ValueError(f"{what} hint of the operator and of its argument differ.")
    return operator_hint if own is None else own


class _OfOne(LinearOperator):
    def __init__(
        self, operator: Any, hints: dict[str, bool | None], suffix: str, name: str | None
    ) -> None:
        self._operator = operator
        agreed = {k: _agreed(v, getattr(operator, k), k) for k, v in hints.items()}
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            name=name or operator.name + suffix,
            **agreed,
        )

    @property
    def operator(self) -> Any:
        return self._operator


class LinearOperatorAdjoint(_OfOne):
    """The conjugate transpose of an operator, without a matrix of its own.

    The ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        operator: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        hints = _hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operator, hints, "_adjoint", name)

    def _adjoint(self) -> Any:
        return self._operator

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        swapped: TensorShape = shape[:-2].concatenate([shape[-1], shape[-2]])
        return swapped

    def _shape_tensor(self) -> Tensor:
        shape = self._operator.shape_tensor()
        return ops.concat([shape[:-2], ops.reverse(shape[-2:], [0])], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return adjoint_of(self._operator.to_dense())

    def _conjugated(self, value: TensorLike) -> Any:
        return ops.conj(value) if self.dtype.is_complex else value

    def _determinant(self) -> Any:
        return self._conjugated(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Any:
        return self._conjugated(self._operator.trace())

    def _diag_part(self) -> Any:
        return self._conjugated(self._operator.diag_part())


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator: what applies it solves, what solves it applies.

    The ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        operator: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if operator.is_square is False or is_square is False:
            raise ValueError("An inverse operator is always square.")
        if is_non_singular is False or operator.is_non_singular is False:
            raise ValueError(
                "operator and supplied hints must have `is_non_singular=True` or left as None."
            )
        hints = _hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operator, hints, "_inv", name)

    def _inverse(self) -> Any:
        return self._operator

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._operator.shape
        return shape

    def _shape_tensor(self) -> Any:
        return self._operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -1.0 * self._operator.log_abs_determinant()


_Hints = tuple[bool | None, bool | None, bool | None, bool | None]


class _OfSeveral(LinearOperator):
    def __init__(
        self,
        operators: Sequence[Any],
        hints: _Hints,
        joint: str,
        name: str | None,
    ) -> None:
        self._operators = list(operators)
        if not self._operators or not all(map(is_operator, self._operators)):
            raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
        kinds = [o.dtype for o in self._operators]
        if any(kind != kinds[0] for kind in kinds):
            raise TypeError(f"Expected all operators to have the same dtype.  Found {kinds}")
        parents = [p for o in self._operators for p in o.graph_parents]
        label = name or joint.join(o.name for o in self._operators)
        super().__init__(kinds[0], parents, *hints, label)

    @property
    def operators(self) -> list[Any]:
        return self._operators

    def _common_batch(self) -> TensorShape:
        batch = TensorShape([])
        for operator in self._operators:
            batch = ops.broadcast_static_shape(batch, operator.batch_shape)
        return batch

    def _common_batch_tensor(self) -> Any:
        batch = self._operators[0].batch_shape_tensor()
        for operator in self._operators[1:]:
            batch = ops.broadcast_dynamic_shape(batch, operator.batch_shape_tensor())
        return batch

    def _all(self, hint: str) -> bool:
        return all(getattr(o, hint) for o in self._operators)


def _hints_of_parts(
    given: dict[str, bool | None], operators: Sequence[Any], whole: str
) -> dict[str, bool | None]:
    """The hints of a whole: what all of its parts have holds for it, too."""
    found = dict(given)
    for hint, value in given.items():
        if all(getattr(o, hint) for o in operators):
            if value is False:
                raise ValueError(f"{whole} have {hint}.")
            found[hint] = True
    return found


class _PartByPart(_OfSeveral):
    """Operators whose inverse, Cholesky factor and adjoint are made of those of their parts."""

    def _same_of(self, operators: list[Any]) -> Any:
        kind: Callable[[list[Any]], Any] = type(self)
        return kind(operators)

    def _inverse(self) -> Any:
        return self._same_of([o.inverse() for o in self._operators])

    def _cholesky(self) -> Any:
        return self._same_of([o.cholesky() for o in self._operators])

    def _adjoint(self) -> Any:
        return self._same_of([o.adjoint() for o in self._operators])


class LinearOperatorComposition(_OfSeveral):
    """The product of operators, the last of which is applied first.

    The ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        operators: Sequence[Any],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if all(o.is_non_singular for o in operators):
            if is_non_singular is False:
                raise ValueError(
                    "The composition of non-singular operators is always non-singular."
                )
            is_non_singular = True
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operators, hints, "_o_", name)

    def _shape(self) -> TensorShape:
        rows = self._operators[0].range_dimension
        columns = self._operators[-1].domain_dimension
        return self._common_batch().concatenate([rows, columns])

    def _shape_tensor(self) -> Tensor:
        rows = self._operators[0].range_dimension_tensor()
        columns = self._operators[-1].domain_dimension_tensor()
        return ops.concat([self._common_batch_tensor(), ops.stack([rows, columns])], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        order = self._operators if adjoint else self._operators[::-1]
        result = order[0].matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in order[1:]:
            result = operator.matmul(result, adjoint=adjoint)
        return result

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        order = self._operators[::-1] if adjoint else self._operators
        result = order[0].solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in order[1:]:
            result = operator.solve(result, adjoint=adjoint)
        return result

    def _determinant(self) -> Any:
        result = self._operators[0].determinant()
        for operator in self._operators[1:]:
            result = result * operator.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        result = self._operators[0].log_abs_determinant()
        for operator in self._operators[1:]:
            result = result + operator.log_abs_determinant()
        return result


class LinearOperatorBlockDiag(_PartByPart):
    """Operators as blocks along the diagonal of a matrix that is zero elsewhere.

    The ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        operators: Sequence[Any],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        if is_square is False or not all(o.is_square for o in operators):
            raise ValueError("Can only represent a block diagonal of square matrices.")
        given = _hints(is_non_singular, is_self_adjoint, is_positive_definite)
        a, b, c = _hints_of_parts(given, operators, "The blocks and so the whole").values()
        super().__init__(operators, (a, b, c, True), "_ds_", name)

    def _shape(self) -> TensorShape:
        sizes = [o.domain_dimension.value for o in self._operators]
        size = None if None in sizes else sum(sizes)
        return self._common_batch().concatenate([size, size])

    def _shape_tensor(self) -> Tensor:
        size = ops.add_n([o.domain_dimension_tensor() for o in self._operators])
        return ops.concat([self._common_batch_tensor(), ops.stack([size, size])], 0)

    def _blocks(self, x: Tensor, adjoint_arg: bool) -> list[Any]:
        x = adjoint_of(x) if adjoint_arg else x
        sizes = [o.domain_dimension_tensor() for o in self._operators]
        parts: list[Any] = ops.split(x, sizes, axis=-2, num=len(sizes))
        return parts

    def _joined(self, parts: list[Any]) -> Tensor:
        batch = self._common_batch_tensor()
        for part in parts:
            batch = ops.broadcast_dynamic_shape(batch, ops.shape(part)[:-2])
        wide = [ops.broadcast_to(p, ops.concat([batch, ops.shape(p)[-2:]], 0)) for p in parts]
        return ops.concat(wide, axis=-2)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        parts = zip(self._operators, self._blocks(x, adjoint_arg))
        return self._joined([o.matmul(part, adjoint=adjoint) for o, part in parts])

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        parts = zip(self._operators, self._blocks(rhs, adjoint_arg))
        return self._joined([o.solve(part, adjoint=adjoint) for o, part in parts])

    def _determinant(self) -> Any:
        result = self._operators[0].determinant()
        for operator in self._operators[1:]:
            result = result * operator.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        result = self._operators[0].log_abs_determinant()
        for operator in self._operators[1:]:
            result = result + operator.log_abs_determinant()
        return result

    def _trace(self) -> Any:
        result = self._operators[0].trace()
        for operator in self._operators[1:]:
            result = result + operator.trace()
        return result

    def _diag_part(self) -> Tensor:
        batch = self._common_batch_tensor()
        parts = [o.diag_part() for o in self._operators]
        wide = [ops.broadcast_to(p, ops.concat([batch, ops.shape(p)[-1:]], 0)) for p in parts]
        return ops.concat(wide, axis=-1)


class LinearOperatorKronecker(_PartByPart):
    """The Kronecker product of square operators, computed factor by factor.

    The ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        operators: Sequence[Any],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        given = {
            "is_square": is_square,
            "is_non_singular": is_non_singular,
            "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
        }
        whole = "The factors and so the Kronecker product"
        given = _hints_of_parts(given, operators, whole)
        square = given.pop("is_square")
        a, b, c = given.values()
        super().__init__(operators, (a, b, c, square), "_x_", name)

    def _sizes(self, of: str) -> int | None:
        size = 1
        for operator in self._operators:
            value = getattr(operator, of).value
            if value is None:
                return None
            size *= value
        return size

    def _shape(self) -> TensorShape:
        sizes = [self._sizes("range_dimension"), self._sizes("domain_dimension")]
        return self._common_batch().concatenate(sizes)

    def _shape_tensor(self) -> Tensor:
        rows = ops.reduce_prod(ops.stack([o.range_dimension_tensor() for o in self._operators]))
        columns = ops.reduce_prod(ops.stack([o.domain_dimension_tensor() for o in self._operators]))
        return ops.concat([self._common_batch_tensor(), ops.stack([rows, columns])], 0)

    def _to_dense(self) -> Any:
        """The outer product of two factors, with their rows and their columns side by side."""
        result = self._operators[0].to_dense()
        for operator in self._operators[1:]:
            factor = operator.to_dense()
            product = result[..., :, None, :, None] * factor[..., None, :, None, :]
            shape = ops.shape(product)
            rows, columns = shape[-4] * shape[-3], shape[-2] * shape[-1]
            result = ops.reshape(product, ops.concat([shape[:-4], [rows, columns]], 0))
        result.set_shape(self.shape)
        return result

    def _power(self, operator: Any) -> Any:
        """How often a factor's determinant counts: the size of all others."""
        size = self.domain_dimension_tensor() / operator.domain_dimension_tensor()
        return ops.cast(size, self.dtype)

    def _determinant(self) -> Any:
        first, *others = self._operators
        result = first.determinant() ** self._power(first)
        for operator in others:
            result = result * operator.determinant() ** self._power(operator)
        return result

    def _log_abs_determinant(self) -> Any:
        first, *others = self._operators
        result = first.log_abs_determinant() * self._power(first)
        for operator in others:
            result = result + operator.log_abs_determinant() * self._power(operator)
        return result

    def _trace(self) -> Any:
        result = self._operators[0].trace()
        for operator in self._operators[1:]:
            result = result * operator.trace()
        return result


class LinearOperatorLowRankUpdate(LinearOperator):
    """``base_operator + u @ diag(diag_update) @ v^H``, solved by the Woodbury identity.

    ``u`` and ``v`` are [..., n, k] (``v=None``: ``u``), ``diag_update`` [..., k] (None: ones). The
    ``is_…`` arguments are hints; see ``LinearOperator``.
    """

    def __init__(
        self,
        base_operator: Any,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(
                    "Default diagonal is the identity matrix.  However, user set "
                    "'is_diag_update_positive' to False."
                )
            is_diag_update_positive = True
        self._base, self._positive = base_operator, is_diag_update_positive
        self._cholesky_fits = bool(
            base_operator.is_positive_definite
            and base_operator.is_self_adjoint
            and is_diag_update_positive
            and v is None
        )
        if self._cholesky_fits:
            if is_positive_definite is False or is_self_adjoint is False:
                raise ValueError(
                    "Arguments imply this is a self-adjoint positive-definite operator."
                )
            is_positive_definite = is_self_adjoint = True
        elif base_operator.is_self_adjoint and v is None and not base_operator.dtype.is_complex:
            is_self_adjoint = True
        self._u = ops.convert_to_tensor(u, name="u")
        self._v = self._u if v is None else ops.convert_to_tensor(v, name="v")
        self._diag_update = None
        if diag_update is not None:
            self._diag_update = ops.convert_to_tensor(diag_update, name="diag_update")
        super().__init__(
            base_operator.dtype,
            [*base_operator.graph_parents, self._u, self._v],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
        )

    @property
    def base_operator(self) -> Any:
        return self._base

    @property
    def u(self) -> Tensor:
        return self._u

    @property
    def v(self) -> Tensor:
        return self._v

    @property
    def is_diag_update_positive(self) -> bool | None:
        return self._positive

    @property
    def diag_update(self) -> Any:
        return self._diag_update

    @property
    def diag_operator(self) -> Any:
        if self._diag_update is not None:
            return LinearOperatorDiag(self._diag_update, is_positive_definite=self._positive)
        rank = self._u.shape[-1].value
        if rank is None:
            rank = ops.shape(self._u)[-1]
        return LinearOperatorIdentity(rank, dtype=self.dtype)

    def _shape(self) -> TensorShape:
        batch = ops.broadcast_static_shape(self._base.batch_shape, self._u.shape[:-2])
        joined: TensorShape = batch.concatenate(self._base.shape[-2:])
        return joined

    def _shape_tensor(self) -> Tensor:
        batch = ops.broadcast_dynamic_shape(
            self._base.batch_shape_tensor(), ops.shape(self._u)[:-2]
        )
        return ops.concat([batch, self._base.shape_tensor()[-2:]], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = ops.matmul(right, x, adjoint_a=True)
        update = ops.matmul(left, self.diag_operator.matmul(inner, adjoint=adjoint))
        return self._base.matmul(x, adjoint=adjoint) + update

    def _capacitance(self) -> Any:
        """D⁻¹ + Vᴴ L⁻¹ U."""
        inner = ops.matmul(self._v, self._base.solve(self._u), adjoint_a=True)
        return self.diag_operator.inverse().add_to_tensor(inner)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        first = self._base.solve(rhs, adjoint=adjoint)
        capacitance = self._capacitance()
        if adjoint:
            capacitance = adjoint_of(capacitance)
        inner = ops.matmul(right, first, adjoint_a=True)
        capacitance, inner = broadcast_matrices(capacitance, inner)
        middle = solving.matrix_solve(capacitance, inner)
        return first - self._base.solve(ops.matmul(left, middle), adjoint=adjoint)

    def _determinant(self) -> Any:
        inner = decompositions.matrix_determinant(self._capacitance())
        return inner * self.diag_operator.determinant() * self._base.determinant()

    def _log_abs_determinant(self) -> Any:
        inner = decompositions.slogdet(self._capacitance())[1]
        outer = self.diag_operator.log_abs_determinant() + self._base.log_abs_determinant()
        return inner + outer

    def _diag_part(self) -> Any:
        product = self._u * ops.conj(self._v)
        if self._diag_update is not None:
            product = product * ops.expand_dims(self._diag_update, -2)
        return self._base.diag_part() + ops.reduce_sum(product, -1)
