"""Warps of ``tf.contrib.image``: by a field of displacements, or by some points and a spline.

>>> warped = dense_image_warp(image, flow)  # warped[y, x] = image[y - flow[0], x - flow[1]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.ops.array.coordinate_grids import meshgrid
from headrace.ops.linalg.diagonals import matrix_diag_part
from headrace.ops.linalg.norms import eye
from headrace.ops.linalg.solving import matrix_solve

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["dense_image_warp", "interpolate_spline", "sparse_image_warp"]

_TINY = 1e-10


def dense_image_warp(
    image: TensorLike, flow: Tensor, name: str | None = "dense_image_warp"
) -> Tensor:
    """``image`` (batch, height, width, channels), each pixel taken from where ``flow`` (batch,
    height, width, 2) says: its place minus the flow, bilinear, clamped to the image.
    """
    with name_scope(name):
        image, flow = ops.convert_to_tensor(image), ops.convert_to_tensor(flow)
        shape = ops.shape(image)
        batch, height, width, channels = (shape[k] for k in range(4))
        x, y = meshgrid(ops.range(width), ops.range(height))
        places = ops.expand_dims(ops.cast(ops.stack([y, x], axis=2), flow.dtype), axis=0)
        queries = ops.reshape(places - flow, [batch, height * width, 2])
        found = _bilinear(image, queries)
        return ops.reshape(found, [batch, height, width, channels])


def _bilinear(grid: Any, queries: Tensor) -> Tensor:
    """Values of ``grid`` at points (batch, points, [y, x])."""
    if len(grid.shape.as_list()) != 4:
        raise ValueError(f"Grid must be 4 dimensional. Received size: {grid.shape}")
    shape = ops.shape(grid)
    batch, height, width, channels = (shape[k] for k in range(4))
    large = [
        ops.assert_greater_equal(height, 2, message="Grid height must be at least 2."),
        ops.assert_greater_equal(width, 2, message="Grid width must be at least 2."),
    ]
    with ops.control_dependencies(large):
        axes = ops.unstack(queries, axis=2)
    floors, weights = [], []
    for place, size in zip(axes, (height, width), strict=True):
        last = ops.cast(size - 2, queries.dtype)
        floor = ops.minimum(ops.maximum(ops.constant(0.0, queries.dtype), ops.floor(place)), last)
        weight = ops.cast(place - floor, grid.dtype)
        zero, one = ops.constant(0.0, grid.dtype), ops.constant(1.0, grid.dtype)
        weights.append(ops.expand_dims(ops.minimum(ops.maximum(zero, weight), one), 2))
        floors.append(ops.cast(floor, dtypes.int32))
    rows = ops.reshape(grid, [batch * height * width, channels])
    first = ops.reshape(ops.range(batch) * height * width, [batch, 1])

    def corner(down: int, right: int) -> Tensor:
        index = first + (floors[0] + down) * width + (floors[1] + right)
        return ops.reshape(ops.gather(rows, index), [batch, ops.shape(queries)[1], channels])

    top, bottom = (
        weights[1] * (corner(down, 1) - corner(down, 0)) + corner(down, 0) for down in (0, 1)
    )
    return weights[0] * (bottom - top) + top


def interpolate_spline(
    train_points: TensorLike,
    train_values: TensorLike,
    query_points: TensorLike,
    order: int,
    regularization_weight: float = 0.0,
    name: str | None = "interpolate_spline",
) -> Tensor:
    """A polyharmonic spline through known values, at other points.

    Points are (batch, n, d), values (batch, n, k); the result is (batch, queries, k). ``order`` 1
    is linear, 2 thin plates. ``regularization_weight`` lets it miss the values.
    """
    with name_scope(name):
        points, values, queries = (
            ops.convert_to_tensor(v) for v in (train_points, train_values, query_points)
        )
        radial, affine = _solved(points, values, order, regularization_weight)
        near = ops.matmul(_kernel(_distances(queries, points), order), radial)
        ones = ops.ones_like(queries[..., :1], dtype=points.dtype)
        return near + ops.matmul(ops.concat([queries, ones], 2), affine)


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances (batch, n, m)."""
    x_norm = ops.expand_dims(ops.reduce_sum(ops.square(x), 2), 2)
    y_norm = ops.expand_dims(ops.reduce_sum(ops.square(y), 2), 1)
    return x_norm - 2 * ops.matmul(x, y, adjoint_b=True) + y_norm


def _own_distances(x: Tensor) -> Tensor:
    """Squared distances of points from each other; the diagonal is exactly zero."""
    products = ops.matmul(x, x, adjoint_b=True)
    norms = ops.expand_dims(matrix_diag_part(products), 2)
    return norms - 2 * products + ops.transpose(norms, [0, 2, 1])


def _kernel(squared: Tensor, order: int) -> Any:
    """The radial function of the order, of squared distances."""
    if order == 1:
        return ops.sqrt(ops.maximum(squared, _TINY))
    if order == 2:
        return 0.5 * squared * ops.log(ops.maximum(squared, _TINY))
    if order == 4:
        return 0.5 * ops.square(squared) * ops.log(ops.maximum(squared, _TINY))
    squared = ops.maximum(squared, _TINY)
    power = ops.pow(squared, 0.5 * order)
    return 0.5 * power * ops.log(squared) if order % 2 == 0 else power


def _solved(points: Tensor, values: Tensor, order: int, weight: float) -> tuple[Any, Any]:
    """Weights of the radial functions and of the affine part."""
    depth, width = (dimension_value(v.shape[-1]) for v in (points, values))
    if depth is None:
        raise ValueError(
            "The dimensionality of the input points (d) must be statically-inferrable."
        )
    if width is None:
        raise ValueError(
            "The dimensionality of the output values (k) must be statically-inferrable."
        )
    batch, count, _ = ops.unstack(ops.shape(points), num=3)
    radial = _kernel(_own_distances(points), order)
    if weight > 0:
        radial = radial + weight * ops.expand_dims(eye(count, dtype=points.dtype), 0)
    affine = ops.concat([points, ops.ones_like(points[..., :1], dtype=points.dtype)], 2)
    left = ops.concat([radial, ops.transpose(affine, [0, 2, 1])], 1)
    corner = ops.zeros([batch, depth + 1, depth + 1], points.dtype)
    system = ops.concat([left, ops.concat([affine, corner], 1)], 2)
    right = ops.concat([values, ops.zeros([batch, depth + 1, width], points.dtype)], 1)
    solution = matrix_solve(system, right)
    return solution[:, :count, :], solution[:, count:, :]


def sparse_image_warp(
    image: Any,
    source_control_point_locations: TensorLike,
    dest_control_point_locations: TensorLike,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str | None = "sparse_image_warp",
) -> tuple[Tensor, Tensor]:
    """The image warped so that source points come to lie on their destinations.

    Points are (batch, n, [y, x]). With ``num_boundary_points`` so many points of each edge stay
    where they are. Gives the image and the flow (see ``dense_image_warp``).
    """
    image = ops.convert_to_tensor(image)
    source = ops.convert_to_tensor(source_control_point_locations)
    points = ops.convert_to_tensor(dest_control_point_locations)
    flows = points - source
    with name_scope(name):
        batch, height, width, _ = image.shape.as_list()
        y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
        places = np.stack([y, x], -1).reshape(1, height * width, 2).repeat(batch, 0)
        if num_boundary_points > 0:
            edge = _edge_points(height, width, num_boundary_points + 1)[None].repeat(batch, 0)
            points = ops.concat([points, ops.constant(edge, points.dtype)], 1)
            flows = ops.concat([flows, ops.constant(np.zeros_like(edge), points.dtype)], 1)
        flat = interpolate_spline(
            points,
            flows,
            ops.constant(places, image.dtype),
            interpolation_order,
            regularization_weight,
        )
        flow = ops.reshape(flat, [batch, height, width, 2])
        return dense_image_warp(image, flow), flow


def _edge_points(height: int, width: int, count: int) -> np.ndarray[Any, Any]:
    """Points of a grid of ``count`` by ``count`` that lie on the edge of the image."""
    rows, columns = np.linspace(0, height - 1, count), np.linspace(0, width - 1, count)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    edge = (x == 0) | (x == width - 1) | (y == 0) | (y == height - 1)
    return np.stack([y[edge], x[edge]], axis=-1)
