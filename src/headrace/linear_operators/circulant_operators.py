"""Circulant operators: products with them are Fourier transforms times a ``spectrum``."""

from __future__ import annotations

from typing import Any

from headrace.core import dtypes
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.linear_operators.operator_base import LinearOperator
from headrace.ops.linalg.matmul import adjoint as adjoint_of
from headrace.ops.math import fft as transforms

__all__ = [
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
]

_FORWARD = {1: transforms.fft, 2: transforms.fft2d, 3: transforms.fft3d}
_BACKWARD = {1: transforms.ifft, 2: transforms.ifft2d, 3: transforms.ifft3d}


class _Circulant(LinearOperator):
    """A (nested) circulant matrix; ``spectrum`` is the transform of its first column."""

    _depth = 1

    def __init__(
        self,
        spectrum: object,
        input_output_dtype: object = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        self._spectrum = ops.convert_to_tensor(spectrum, name="spectrum")
        rank = self._spectrum.shape.ndims
        if rank is not None and rank < self._depth:
            raise ValueError(
                f"Argument spectrum must have at least {self._depth} dimensions.  Found: "
                f"{self._spectrum}"
            )
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("A [[nested] block] circulant operator is always square.")
        super().__init__(
            input_output_dtype,
            [self._spectrum],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    @property
    def spectrum(self) -> Tensor:
        return self._spectrum

    @property
    def block_depth(self) -> int:
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        shape: TensorShape = self._spectrum.shape[-self._depth :]
        return shape

    def block_shape_tensor(self) -> Tensor:
        """The shape of one spectrum as a tensor."""
        return ops.shape(self._spectrum)[-self._depth :]

    def _shape(self) -> TensorShape:
        size = self.block_shape.num_elements()
        joined: TensorShape = self._spectrum.shape[: -self._depth].concatenate([size, size])
        return joined

    def _shape_tensor(self) -> Tensor:
        shape = ops.shape(self._spectrum)
        size = ops.reduce_prod(shape[-self._depth :])
        return ops.concat([shape[: -self._depth], ops.stack([size, size])], 0)

    def _complex_spectrum(self) -> Tensor:
        return ops.cast(self._spectrum, _complex_of(self.dtype))

    def _apply(self, x: Tensor, spectrum: Any) -> Tensor:
        """Columns as blocks in the last dimensions, transformed, multiplied, transformed back."""
        vectors = ops.matrix_transpose(ops.cast(x, spectrum.dtype))
        shape = ops.shape(vectors)
        blocks = ops.reshape(vectors, ops.concat([shape[:-1], self.block_shape_tensor()], 0))
        spectrum = ops.expand_dims(spectrum, -self._depth - 1)
        product = _BACKWARD[self._depth](spectrum * _FORWARD[self._depth](blocks))
        done = ops.shape(product)[: -self._depth]
        flat = ops.reshape(product, ops.concat([done, shape[-1:]], 0))
        return ops.cast(ops.matrix_transpose(flat), self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        spectrum = self._complex_spectrum()
        return self._apply(x, ops.conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        spectrum = self._complex_spectrum()
        return self._apply(rhs, 1.0 / (ops.conj(spectrum) if adjoint else spectrum))

    def _inverse(self) -> Any:
        """Its results are complex, whatever those of this one are: as in TensorFlow."""
        return type(self)(
            1.0 / self._spectrum,
            is_non_singular=self.is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
        )

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """The first column, as a block."""
        with self._scope(name):
            return ops.cast(_BACKWARD[self._depth](self._complex_spectrum()), self.dtype)

    @property
    def _block_axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    def _determinant(self) -> Tensor:
        product = ops.reduce_prod(self._spectrum, axis=self._block_axes)
        return ops.cast(product, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        total = ops.reduce_sum(ops.log(ops.abs(self._spectrum)), axis=self._block_axes)
        return ops.cast(total, self.dtype)

    def _trace(self) -> Tensor:
        return ops.cast(ops.reduce_sum(self._spectrum, axis=self._block_axes), self.dtype)

    def _diag_part(self) -> Tensor:
        size = self.shape_tensor()[-1]
        value = self._trace() / ops.cast(size, self.dtype)
        ones = ops.ones(ops.stack([size]), dtype=self.dtype)
        return ops.expand_dims(value, -1) * ones


def _complex_of(dtype: Any) -> Any:
    if dtype.is_complex:
        return dtype
    return dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix, given by its ``spectrum``: products and solves go through the FFT.

    ``spectrum`` is [..., N], the transform of the first column; the leading axes are a batch. A
    real spectrum means a self-adjoint operator. ``input_output_dtype`` is the type of what it is
    applied to; the ``is_…`` arguments promise properties that solving and determinants use.
    """


class LinearOperatorCirculant2D(_Circulant):
    """A block circulant matrix with circulant blocks.

    ``spectrum`` is [..., N0, N1]: the operator applies to vectors of N0 * N1 numbers, as a
    convolution of pictures that wrap around. The other arguments are ``LinearOperatorCirculant``'s.
    """

    _depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """A block circulant matrix of three levels, given by its ``spectrum`` ``[..., N0, N1, N2]``.

    The operator applies to vectors of N0 * N1 * N2 numbers, as a convolution of volumes that wrap
    around. The other arguments are ``LinearOperatorCirculant``'s.
    """

    _depth = 3
