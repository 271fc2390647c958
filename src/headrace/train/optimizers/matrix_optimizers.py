"""``tf.contrib.opt``: optimizers that precondition gradients with matrices, GGT and Shampoo.

GGT multiplies the moment of all gradients with the inverse root of the covariance of the last
``window`` moments (https://arxiv.org/abs/1806.02958). Shampoo keeps a matrix for each dimension of
a variable, the sum of the gradients' outer products along it, and multiplies the gradient with a
power of each (https://arxiv.org/abs/1802.09568).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import float32, int32
from headrace.core.scopes import colocate_with, control_dependencies, name_scope
from headrace.ops.array.array_shape import expand_dims, reshape, transpose
from headrace.ops.array.basic import identity
from headrace.ops.array.filling import zeros, zeros_like
from headrace.ops.array.gathering import gather, scatter_nd
from headrace.ops.array.joining import concat
from headrace.ops.array.selecting import where
from headrace.ops.control.control_flow import cond
from headrace.ops.control.dependencies import group
from headrace.ops.control.while_loops import while_loop
from headrace.ops.linalg.contraction import tensordot
from headrace.ops.linalg.decompositions import svd
from headrace.ops.linalg.diagonals import diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.linalg.norms import eye, norm
from headrace.ops.math.binary import floormod, maximum, minimum
from headrace.ops.math.binary import pow as power
from headrace.ops.math.comparison import greater, logical_and
from headrace.ops.math.reductions import reduce_max, reduce_min, reduce_sum
from headrace.ops.math.unary import abs as absolute
from headrace.ops.math.unary import sqrt
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.tensor_helpers import cast

if TYPE_CHECKING:
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.tensor import Tensor

__all__ = ["GGTOptimizer", "ShampooOptimizer"]

_Loop = tuple[Any, ...]


class GGTOptimizer(Optimizer):
    """Full-matrix preconditioning from a window of moments.

    ``eps`` truncates small eigenvalues of the covariance, ``svd_eps`` is added to it, ``sigma_eps``
    to its roots. Gradients of embeddings (IndexedSlices) are refused.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: Any = 1e-4,
        svd_eps: Any = 1e-6,
        sigma_eps: Any = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._window = learning_rate, beta1, window
        self._eps, self._svd_eps, self._sigma_eps = eps, svd_eps, sigma_eps
        self._ordered: list[Any] = []
        self._flat: dict[str, Any] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        self._ordered = sorted(var_list, key=lambda v: str(v.name))
        first = var_list[0]
        dtype, size = first.dtype.base_dtype, sum(_size(v) for v in var_list)
        self._step = self._create_non_slot_variable(cast(0.0, dtype), "global_step", first)
        buffer = zeros([self._window, size], dtype=dtype)
        self._buffer = self._create_non_slot_variable(buffer, "grad_buffer", first)
        self._moment = self._create_non_slot_variable(zeros([size], dtype=dtype), "moment1", first)
        self._grad = self._create_non_slot_variable(zeros([size], dtype=dtype), "flat_grad", first)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        self._flat[var.name] = reshape(grad, [-1])
        return self._flat[var.name]

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """All variables are updated together."""
        dtype = self._ordered[0].dtype.base_dtype
        flat = concat([self._flat.pop(v.name) for v in self._ordered], 0)
        beta1 = cast(self._beta1, dtype)
        moved = beta1 * self._moment + (1.0 - beta1) * flat
        step = self._step + 1.0
        row = floormod(cast(step - 1.0, int32), self._window)
        rows = _one_row(self._window, row, dtype)
        buffer = self._buffer * (1.0 - rows) + rows * expand_dims(moved, 0)
        change = self._change(buffer, moved, minimum(step, cast(self._window, dtype)))
        rate = cast(self._call_if_callable(self._learning_rate), dtype)
        at, updates = 0, []
        with control_dependencies([change, buffer]):
            kept = ((self._step, step), (self._grad, flat), (self._moment, moved))
            updates += [v.assign(value) for v, value in (*kept, (self._buffer, buffer))]
        for v in self._ordered:
            part = reshape(change[at : at + _size(v)], v.get_shape())
            updates.append(v.assign_sub(rate * part))
            at += _size(v)
        return group(*update_ops, *updates, name=name_scope)

    def _change(self, buffer: Any, moment: Any, count: Any) -> Any:
        """What a rate of one subtracts from all variables, as a column."""
        dtype = moment.dtype
        m = transpose(buffer / sqrt(count))
        damping = cast(eye(self._window), dtype) * cast(self._svd_eps, dtype)
        sigma, u, _ = svd(matmul(m, m, transpose_a=True) + damping)
        roots = sqrt(sigma)
        column = expand_dims(moment, -1)
        turned = matmul(u, matmul(m, column, transpose_a=True), transpose_a=True)

        def back(weights: Any) -> Any:
            return matmul(m, matmul(u, matmul(diag(weights), turned)))

        head = back(1.0 / power(roots + cast(self._sigma_eps, dtype), 3.0))
        least = reduce_min(roots)
        tail = (column - back(1.0 / sigma)) / least
        return cond(least > cast(self._eps, dtype), lambda: head + tail, lambda: identity(head))


def _size(variable: Any) -> int:
    return math.prod(variable.get_shape().as_list())


def _one_row(count: int, row: Any, dtype: Any) -> Any:
    """A column with a one at ``row``."""
    return expand_dims(gather(cast(eye(count), dtype), row), -1)


def _at(parameter: Any, step: Any) -> Any:
    """A hyperparameter, which may be a function of the step."""
    return parameter(step) if callable(parameter) else parameter


class ShampooOptimizer(Optimizer):
    """One preconditioner matrix for each dimension of a variable.

    Dimensions larger than ``max_matrix_size`` have a diagonal one. ``gbar_*`` weigh the average of
    gradients, ``mat_gbar_*`` that of their outer products; these and the rate may be functions of
    the step. Powers are computed every ``svd_interval`` steps, by iteration with
    ``use_iterative_root``; ``alpha`` is their total.
    """

    def __init__(
        self,
        global_step: Any = 0,
        max_matrix_size: int = 768,
        gbar_decay: Any = 0.0,
        gbar_weight: Any = 1.0,
        mat_gbar_decay: Any = 1.0,
        mat_gbar_weight: Any = 1.0,
        learning_rate: Any = 1.0,
        svd_interval: Any = 1,
        precond_update_interval: Any = 1,
        epsilon: float = 1e-4,
        alpha: Any = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step = cast(global_step, float32)
        self._max_matrix_size, self._epsilon, self._alpha = max_matrix_size, epsilon, alpha
        self._gbar_decay, self._gbar_weight = gbar_decay, gbar_weight
        self._mat_gbar_decay, self._mat_gbar_weight = mat_gbar_decay, mat_gbar_weight
        self._learning_rate = learning_rate
        self._svd_interval, self._update_interval = svd_interval, precond_update_interval
        self._use_iterative_root = use_iterative_root

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            with colocate_with(v):
                self._zeros_slot(v, "gbar", self._name)
                for i, size in enumerate(v.get_shape().as_list()):
                    first = zeros([size])
                    if size <= self._max_matrix_size:
                        first = zeros([size, size])
                        if callable(self._svd_interval) or self._svd_interval > 1:
                            self._get_or_make_slot(v, eye(size), f"H_{i}", self._name)
                    self._get_or_make_slot(v, first, f"Gbar_{i}", self._name)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._updated(grad, var, None)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._updated(grad, handle, None)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._updated_rows(grad.values, grad.indices, var)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._updated_rows(grad, indices, handle)

    def _updated_rows(self, values: Any, indices: Any, var: Any) -> Any:
        shape = var.get_shape().as_list()
        if shape[0] > self._max_matrix_size and self._gbar_decay == 0.0:
            return self._updated(values, var, indices)
        dense = scatter_nd(expand_dims(indices, 1), values, cast(shape, indices.dtype))
        return self._updated(dense, var, None)

    def _averaged(self, var: Any, decay: Any, decay_now: Any, rest: Any) -> Any:
        """``decay * var + rest``, kept in ``var`` unless the old value does not count."""
        if not callable(decay) and decay == 0.0:
            return rest
        if not callable(decay) and decay == 1.0:
            return convert_to_tensor(var.assign_add(rest))
        return convert_to_tensor(var.assign_add((decay_now - 1) * var + rest))

    def _updated(self, grad: Any, var: Any, indices: Any) -> Any:
        """The operation that updates a variable, or its rows ``indices``."""
        step = self._global_step + 1
        made = grad
        if indices is None:
            weighted = _at(self._gbar_weight, step) * grad
            decay = _at(self._gbar_decay, step)
            made = self._averaged(self.get_slot(var, "gbar"), self._gbar_decay, decay, weighted)
        for i, size in enumerate(var.get_shape().as_list()):
            if size <= self._max_matrix_size:
                matrix = self._matrix(grad, var, i, step)
                made = tensordot(made, matrix, axes=([0], [0]), name=f"precond_{i}")
            else:
                rank = var.get_shape().ndims
                turned = transpose(made, [*range(1, rank), 0])
                made = turned * self._diagonal(grad, var, i, step, indices if i == 0 else None)
        change = _at(self._learning_rate, step) * made
        if indices is None:
            return var.assign_sub(change)
        return var.assign_sub(scatter_nd(expand_dims(indices, 1), change, _shape(var, indices)))

    def _exponent(self, var: Any, step: Any) -> Any:
        return -_at(self._alpha, step) / var.get_shape().ndims

    def _matrix(self, grad: Any, var: Any, i: int, step: Any) -> Any:
        """The preconditioner along dimension ``i``."""
        shape = var.get_shape().as_list()
        kept = self.get_slot(var, f"Gbar_{i}")
        every, exponent = _at(self._update_interval, step), self._exponent(var, step)
        axes = [j for j in range(len(shape)) if j != i]

        def updated() -> Any:
            outer = tensordot(grad, grad, axes=(axes, axes), name=f"grad_outer_{i}")
            rest = _at(self._mat_gbar_weight, step) * every * outer
            decay = _at(self._mat_gbar_decay, step)
            return self._averaged(kept, self._mat_gbar_decay, decay, rest)

        due = floormod(step, cast(every, float32)) < 1
        summed = cond(due, updated, lambda: convert_to_tensor(kept)) / float(shape[i])
        if not callable(self._svd_interval) and self._svd_interval == 1:
            return self._power(summed, shape[i], exponent)
        slot = self.get_slot(var, f"H_{i}")
        interval = cast(_at(self._svd_interval, step), float32)
        return cond(
            floormod(step, interval) < 1,
            lambda: convert_to_tensor(slot.assign(self._power(summed, shape[i], exponent))),
            lambda: convert_to_tensor(slot),
        )

    def _diagonal(self, grad: Any, var: Any, i: int, step: Any, indices: Any) -> Any:
        """The preconditioner of a large dimension: a factor for each of its elements."""
        shape = var.get_shape().as_list()
        kept, exponent = self.get_slot(var, f"Gbar_{i}"), self._exponent(var, step)
        axes = [j for j in range(len(shape)) if j != i]
        squares = grad * grad
        if axes:
            squares = reduce_sum(squares, axes) / (1.0 if indices is not None else float(shape[i]))
        rest = _at(self._mat_gbar_weight, step) * squares
        if indices is not None:
            if self._mat_gbar_decay != 1.0:
                raise ValueError("sparse gradients of large variables need mat_gbar_decay=1.0")
            spread = scatter_nd(expand_dims(indices, 1), rest, _shape(kept, indices))
            summed = gather(convert_to_tensor(kept.assign_add(spread)), indices)
        else:
            decay = _at(self._mat_gbar_decay, step)
            summed = self._averaged(kept, self._mat_gbar_decay, decay, rest)
        return where(greater(summed, 0.0), power(summed, exponent), zeros_like(summed))

    def _power(self, matrix: Any, size: int, exponent: Any) -> Any:
        with name_scope("matrix_iterative_power"):
            if self._use_iterative_root:
                root = _square_root(matrix, size, self._epsilon)
                return _inverse_root(root, size, 2 * exponent)
            if size == 1:
                return power(matrix + self._epsilon, exponent)
            values, u, v = svd(matrix + self._epsilon * eye(size), full_matrices=True)
            factors = power(maximum(values, self._epsilon), exponent)
            return matmul(v * factors, transpose(u))


def _shape(var: Any, indices: Any) -> Any:
    return cast(var.get_shape().as_list(), indices.dtype)


def _square_root(matrix: Any, size: int, ridge: float, limit: int = 100) -> Any:
    """The root of a positive matrix, by the coupled Newton iteration of Higham."""
    unit = eye(size)
    matrix = matrix + ridge * unit
    length = sqrt(reduce_sum(matrix * matrix))

    def going_on(i: Any, *state: Any) -> Any:
        return logical_and(i < limit, state[-2] < state[-1])

    def better(i: Any, y: Any, _: Any, z: Any, error: Any, __: Any) -> _Loop:
        factor = 0.5 * (3.0 * unit - matmul(z, y))
        new_y, new_z = matmul(y, factor), matmul(factor, z)
        root = new_y * sqrt(length)
        rest = matrix - matmul(root, root)
        return i + 1, new_y, y, new_z, sqrt(reduce_sum(rest * rest)) / length, error

    first = matrix / length
    found = while_loop(going_on, better, [0, first, first, unit, length, length + 1.0])
    return found[2] * sqrt(length)


def _inverse_root(matrix: Any, size: int, exponent: float, limit: int = 100) -> Any:
    """``matrix ** exponent`` for an exponent of -1/p, by the Newton iteration of Guo and Higham."""
    if size == 1:
        return power(matrix, exponent)
    unit = eye(size)
    p = -1.0 / exponent
    if p != int(p) or p <= 0:
        raise ValueError(f"use_iterative_root needs exponents of -1/p, p a number: got {exponent}")
    scale = (1 + p) / (2 * norm(matrix))

    def going_on(i: Any, m: Any, _: Any) -> Any:
        return logical_and(i < limit, reduce_max(absolute(m - unit)) > 1e-6)

    def better(i: Any, m: Any, x: Any) -> _Loop:
        factor = (1 - exponent) * unit + exponent * m
        return i + 1, matmul(_whole_power(factor, int(p)), m), matmul(x, factor)

    start = [0, matrix * scale, unit * power(scale, -exponent)]
    return while_loop(going_on, better, start)[2]


def _whole_power(matrix: Any, p: int) -> Any:
    found: Any = None
    multiply: Callable[[Any, Any], Any] = matmul
    while p > 0:
        if p % 2:
            found = matrix if found is None else multiply(matrix, found)
        p //= 2
        matrix = multiply(matrix, matrix)
    return found
