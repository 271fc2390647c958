"""Several diagonals of matrices at once: MatrixDiagV2, MatrixDiagPartV2, MatrixSetDiagV2, and V3.

Diagonals ``k[0]`` to ``k[1]`` (0 is the main one, positive ones are above it) lie in the rows of a
matrix, the highest first. Shorter ones are padded; V2 aligns all of them to the left, V3 as
``align`` says, superdiagonals first.

    matrix_diag_part(tf.constant([[1, 2], [3, 4]]), k=(-1, 1))       # [[2, 0], [1, 4], [3, 0]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.core import convert, shapes
from headrace.core.build import apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Dim, Shape
from headrace.core.tensor import Operation
from headrace.ops.linalg import diagonals as main

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["matrix_diag_part_v2", "matrix_diag_v2", "matrix_set_diag_v2"]

LEFT_LEFT, RIGHT_LEFT = "LEFT_LEFT", "RIGHT_LEFT"


class Band(NamedTuple):
    """The diagonals ``low`` to ``high``."""

    low: int
    high: int

    @property
    def number(self) -> int:
        return self.high - self.low + 1

    def longest(self, rows: int, cols: int) -> int:
        return min(rows + min(self.high, 0), cols - max(self.low, 0))

    def places(
        self, rows: int, cols: int, width: int, align: str
    ) -> tuple[Array, Array, Array, Array]:
        """Row and column in the matrix, number and place of the diagonal, of every element."""
        above, below = align.split("_")
        found = []
        for d in range(self.number):
            k = self.high - d
            length = min(rows + min(k, 0), cols - max(k, 0))
            left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
            i = np.arange(length)
            offset = 0 if left else width - length
            found.append(np.stack([i - min(k, 0), i + max(k, 0), np.full(length, d), i + offset]))
        row, col, number, place = np.concatenate(found, 1)
        return row, col, number, place


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _band(k: Any) -> Band:
    """``k`` as a band: a number, or one or two of them."""
    given = np.asarray(k)
    if given.ndim > 1:
        raise _invalid(f"diag_index must be a scalar or vector, received shape: {given.shape}")
    if not 0 < given.size < 3:
        raise _invalid(f"diag_index must have only one or two elements, received {given.size}")
    low, high = int(given.ravel()[0]), int(given.ravel()[-1])
    if low > high:
        raise _invalid(f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    return Band(low, high)


def _checked_band(k: Any, rows: int, cols: int) -> Band:
    band = _band(k)
    for what, value in (("lower", band.low), ("upper", band.high)):
        if value and not -rows < value < cols:
            raise _invalid(
                f"{what}_diag_index is out of bound: {value}. It must be between {-rows} and {cols}"
            )
    return band


def _matrix(x: Array) -> tuple[int, int]:
    if x.ndim < 2:
        raise _invalid(f"input must be at least 2-dim, received shape: {shapes.show(x.shape)}")
    return x.shape[-2], x.shape[-1]


# kernels ----------------------------------------------------------------------------------------


def _written(
    xp: ArrayNamespace, matrices: Array, band: Band, diagonals: Array, align: str
) -> Array:
    """``matrices`` with the diagonals of the band; ``diagonals`` has an axis for them."""
    rows, cols = matrices.shape[-2:]
    row, col, number, place = band.places(rows, cols, diagonals.shape[-1], align)
    return xp.index_set(matrices, (..., row, col), diagonals[..., number, place])


def _with_axis(diagonals: Array, band: Band) -> Array:
    """Diagonals with an axis for their number, which a single one lacks."""
    return diagonals[..., None, :] if band.number == 1 else diagonals


def _scalar(value: Any, what: str) -> Any:
    if np.ndim(value):
        raise _invalid(f"{what} must be a scalar, received shape: {shapes.show(np.shape(value))}")
    return value


def _extents(band: Band, width: int, num_rows: int, num_cols: int) -> tuple[int, int]:
    """Rows and columns of a matrix with diagonals of ``width``; -1: as few as there can be."""
    least_rows, least_cols = width - min(band.high, 0), width + max(band.low, 0)
    if num_rows == num_cols == -1:
        return (max(least_rows, least_cols),) * 2
    rows = least_rows if num_rows == -1 else num_rows
    cols = least_cols if num_cols == -1 else num_cols
    if rows < least_rows:
        raise _invalid("The number of rows is too small.")
    if cols < least_cols:
        raise _invalid("The number of columns is too small.")
    if rows != least_rows and cols != least_cols:
        raise _invalid(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
            "and diagonal."
        )
    return rows, cols


def _diag_kernel(
    xp: ArrayNamespace,
    diagonal: Array,
    k: Any,
    num_rows: Any,
    num_cols: Any,
    padding: Any,
    *,
    align: str,
) -> Array:
    if diagonal.ndim < 1:
        raise _invalid(f"diagonal must be at least 1-dim, received shape: {[*diagonal.shape]}")
    band = _band(k)
    if band.number > 1 and (diagonal.ndim < 2 or diagonal.shape[-2] != band.number):
        raise _invalid(
            "The number of diagonals provided in the input does not match the lower_diag_index "
            "and upper_diag_index range."
        )
    wanted = [int(_scalar(n, w)) for n, w in ((num_rows, "num_rows"), (num_cols, "num_cols"))]
    rows, cols = _extents(band, diagonal.shape[-1], *wanted)
    diagonals = _with_axis(diagonal, band)
    empty = xp.zeros((*diagonals.shape[:-2], rows, cols), diagonal.dtype)
    return _written(xp, empty + _scalar(padding, "padding_value"), band, diagonals, align)


def _part_kernel(xp: ArrayNamespace, x: Array, k: Any, padding: Any, *, align: str) -> Array:
    rows, cols = _matrix(x)
    band = _checked_band(k, rows, cols)
    width = band.longest(rows, cols)
    row, col, number, place = band.places(rows, cols, width, align)
    empty = xp.zeros((*x.shape[:-2], band.number, width), x.dtype) + _scalar(
        padding, "padding_value"
    )
    found = xp.index_set(empty, (..., number, place), x[..., row, col])
    return found[..., 0, :] if band.number == 1 else found


def _set_kernel(xp: ArrayNamespace, x: Array, diagonal: Array, k: Any, *, align: str) -> Array:
    rows, cols = _matrix(x)
    band = _checked_band(k, rows, cols)
    wanted = (*x.shape[:-2], band.number, band.longest(rows, cols))
    if band.number == 1:
        wanted = (*wanted[:-2], wanted[-1])
    elif diagonal.ndim < 2 or diagonal.shape[-2] != band.number:
        raise _invalid(
            "The number of diagonals provided in `diagonal` is not consistent with "
            "`lower_diag_index` and `upper_diag_index`"
        )
    if diagonal.shape != wanted:
        raise _invalid(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape"
            f"[:-1] is not equal to the longests diagonal in range: input shape "
            f"{shapes.show(x.shape)} and diagonal shape {shapes.show(diagonal.shape)}, "
            f"expected {shapes.show(wanted)}"
        )
    return _written(xp, xp.array(x), band, _with_axis(diagonal, band), align)


# shapes -----------------------------------------------------------------------------------------


def _known_band(c: Inference, i: int) -> Band | None:
    rank = c.rank(i)
    if rank is not None and rank > 1:
        raise ValueError(f"diag_index must be a scalar or vector, received tensor of rank {rank}")
    value = c.value(i)
    if value is None:
        return None
    try:
        return _band(value)
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None


def _known_number(c: Inference, i: int) -> int | None:
    c.require_rank(i, 0)
    value = c.value(i)
    return None if value is None else int(value)


def _diag_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 1)
    band, rows, cols = _known_band(c, 1), _known_number(c, 2), _known_number(c, 3)
    c.require_rank(4, 0)
    if shape is None or band is None:
        return [None]
    batch = shape[:-1]
    if band.number > 1:
        if len(shape) < 2:
            return [None]  # the run tells what is wrong, as in TensorFlow
        if shape[-2] not in (None, band.number):
            raise ValueError(
                "The number of rows of `diagonal` doesn't match the number of diagonals implied "
                f"from `d_lower` and `d_upper`: {shape[-2]} and {band.number}"
            )
        batch = shape[:-2]
    width = shape[-1]
    if width is None or rows is None or cols is None:
        unknown = -1
        return [
            (*batch, *(None if n in (None, unknown) else n for n in (rows, cols)))
        ]  # fmt: skip
    try:
        return [(*batch, *_extents(band, width, rows, cols))]
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None


def _width(band: Band, rows: Dim, cols: Dim) -> Dim:
    if rows is None or cols is None:
        return None
    try:
        _checked_band([band.low, band.high], rows, cols)
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None
    return band.longest(rows, cols)


def _part_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 2)
    band = _known_band(c, 1)
    c.require_rank(2, 0)
    if shape is None or band is None:
        return [None]
    width = _width(band, shape[-2], shape[-1])
    return [(*shape[:-2], width) if band.number == 1 else (*shape[:-2], band.number, width)]


def _set_shape(c: Inference) -> list[Shape]:
    shape, diagonal = c.require_rank_at_least(0, 2), c.require_rank_at_least(1, 1)
    band = _known_band(c, 2)
    if shape is None or diagonal is None or band is None:
        return [shape]
    wanted = len(shape) - (band.number == 1)
    if len(diagonal) != wanted:
        raise ValueError(f"Shape must be rank {wanted} but is rank {len(diagonal)}")
    _width(band, shape[-2], shape[-1])
    if band.number > 1 and diagonal[-2] not in (None, band.number):
        raise ValueError(f"Dimensions must be equal, but are {diagonal[-2]} and {band.number}")
    return [shape]


# gradients --------------------------------------------------------------------------------------


def _attrs(op: Operation) -> dict[str, str]:
    return {"align": op._attrs["align"]} if "align" in op._attrs else {}


def _version(op: Operation) -> str:
    return "V3" if "align" in op._attrs else "V2"


def _zero(op: Operation) -> Any:
    return np.zeros((), op._inputs[0]._dtype.as_numpy_dtype)


def _diag_grad(op: Operation, g: Tensor) -> list[Any]:
    part = "MatrixDiagPart" + _version(op)
    found = apply_op(part, g, op._inputs[1], _zero(op), **_attrs(op))
    return [found, None, None, None, None]


def _part_grad(op: Operation, g: Tensor) -> list[Any]:
    zeros = apply_op("ZerosLike", op._inputs[0])
    made = apply_op("MatrixSetDiag" + _version(op), zeros, g, op._inputs[1], **_attrs(op))
    return [made, None, None]


def _set_grad(op: Operation, g: Tensor) -> list[Any]:
    k, diagonal, attrs = op._inputs[2], op._inputs[1], _attrs(op)
    zeros = apply_op("ZerosLike", diagonal)
    return [
        apply_op("MatrixSetDiag" + _version(op), g, zeros, k, **attrs),
        apply_op("MatrixDiagPart" + _version(op), g, k, _zero(op), **attrs),
        None,
    ]


# definitions ------------------------------------------------------------------------------------


def _define_all(version: str, align: str) -> None:
    """The three ops of a version: V2 is aligned to the left, V3 as its attribute says."""
    pick = _aligned_left if version == "V2" else _unchanged
    define(
        "MatrixDiag" + version,
        "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T; "
        "T: type" + align,
        shape=_diag_shape,
        kernel=pick(_diag_kernel),
        grad=_diag_grad,
        known_inputs=(1, 2, 3),
    )
    define(
        "MatrixDiagPart" + version,
        "input: T, k: int32, padding_value: T -> diagonal: T; T: type" + align,
        shape=_part_shape,
        kernel=pick(_part_kernel),
        grad=_part_grad,
        known_inputs=(1,),
    )
    define(
        "MatrixSetDiag" + version,
        "input: T, diagonal: T, k: int32 -> output: T; T: type" + align,
        shape=_set_shape,
        kernel=pick(_set_kernel),
        grad=_set_grad,
        known_inputs=(2,),
    )


def _unchanged(kernel: Callable[..., Array]) -> Callable[..., Array]:
    return kernel


def _aligned_left(kernel: Callable[..., Array]) -> Callable[..., Array]:
    def aligned(xp: ArrayNamespace, *inputs: Array) -> Array:
        return kernel(xp, *inputs, align=LEFT_LEFT)

    return aligned


_define_all("V2", "")
_define_all("V3", f", align: str='{RIGHT_LEFT}'")


# what users of TensorFlow 2's API call ------------------------------------------------------------


def matrix_diag_v2(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: TensorLike = 0,
    num_rows: TensorLike = -1,
    num_cols: TensorLike = -1,
    padding_value: TensorLike = 0,
    align: str = RIGHT_LEFT,
) -> Tensor:
    """Matrices with ``diagonal`` on diagonal ``k`` or on several: ``tf.matrix_diag``.

    ``align`` says where shorter diagonals above and below the main one lie.
    """
    if main.are_numbers((k, num_rows, num_cols, padding_value), (0, -1, -1, 0)):
        return main.matrix_diag(diagonal, name)
    x = convert.convert_to_tensor(diagonal, name="diagonal")
    sizes = (k, num_rows, num_cols, main.padding_for(x, padding_value))
    return apply_op("MatrixDiagV3", x, *sizes, align=align, name=name or "diag")


def matrix_diag_part_v2(
    input: TensorLike,
    name: str | None = "diag_part",
    k: TensorLike = 0,
    padding_value: TensorLike = 0,
    align: str = RIGHT_LEFT,
) -> Tensor:
    """Diagonal ``k`` of the last two axes, or several: ``tf.matrix_diag_part``.

    ``k`` is a number (above the main diagonal where positive) or a pair, the lowest and the highest
    diagonal: then the result has an axis more, the highest diagonal first. Shorter diagonals are
    filled up with ``padding_value``; ``align`` says on which side those above and below the main
    diagonal lie.

        tf.linalg.diag_part([[1, 2], [3, 4]], k=(0, 1))    # [[0, 2], [1, 4]]
    """
    if main.are_numbers((k, padding_value), (0, 0)):
        return main.matrix_diag_part(input, name)
    x = convert.convert_to_tensor(input, name="input")
    padding = main.padding_for(x, padding_value)
    return apply_op("MatrixDiagPartV3", x, k, padding, align=align, name=name or "diag_part")


def matrix_set_diag_v2(
    input: TensorLike,
    diagonal: TensorLike,
    name: str | None = "set_diag",
    k: TensorLike = 0,
    align: str = RIGHT_LEFT,
) -> Tensor:
    """Matrices with diagonal ``k``, or several, replaced: ``tf.matrix_set_diag``.

    ``k`` is a number or a pair, the lowest and the highest diagonal, as in ``diag_part``, whose
    result has the shape that ``diagonal`` must have; ``align`` says where its shorter rows lie.

        tf.linalg.set_diag([[1, 2], [3, 4]], [9], k=1)    # [[1, 9], [3, 4]]
    """
    if main.are_numbers((k,), (0,)):
        return main.matrix_set_diag(input, diagonal, name)
    x = convert.convert_to_tensor(input, name="input")
    return apply_op("MatrixSetDiagV3", x, diagonal, k, align=align, name=name or "set_diag")
