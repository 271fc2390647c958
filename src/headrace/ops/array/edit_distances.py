"""``tf.edit_distance``: the Levenshtein distance of sparse sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.ops.sparse.sparse_tensor import SparseTensor

__all__ = ["edit_distance"]


# EditDistance -----------------------------------------------------------------------------------


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def _sequences(indices: Array, values: Array) -> dict[tuple[int, ...], list[Any]]:
    groups: dict[tuple[int, ...], list[Any]] = {}
    for key, v in zip(indices[:, :-1].tolist(), values.tolist()):
        groups.setdefault(tuple(key), []).append(v)
    return groups


def _edit_distance_kernel(
    xp: ArrayNamespace,
    h_indices: Array,
    h_values: Array,
    h_shape: Array,
    t_indices: Array,
    t_values: Array,
    t_shape: Array,
    *,
    normalize: bool,
) -> Array:
    for indices, values in ((h_indices, h_values), (t_indices, t_values)):
        if len(indices) != len(values):
            raise invalid(
                "indices and values rows (indexing dimension) must match. "
                f"(indices = {len(indices)}, values = {len(values)})"
            )
    for what, indices, size in (
        ("hypothesis", h_indices, h_shape),
        ("truth", t_indices, t_shape),
    ):
        if indices.ndim != 2 or size.size != indices.shape[1]:
            raise invalid(
                f"Expected {what}_shape.NumElements == #cols({what}_indices), their shapes are: "
                f"{shapes.show(size.shape)} and {shapes.show(indices.shape)}"
            )
    dims = [max(a, b) for a, b in zip(h_shape.tolist()[:-1], t_shape.tolist()[:-1])]
    out = np.zeros(dims, np.float32)
    hypotheses, truths = _sequences(h_indices, h_values), _sequences(t_indices, t_values)
    for key in {**truths, **hypotheses}:
        a, b = hypotheses.get(key, []), truths.get(key, [])
        distance = float(_levenshtein(b, a))
        if normalize:
            distance = distance / len(b) if b else (float("inf") if a else 0.0)
        out[key] = distance
    return out


def _edit_distance_shape(c: Inference) -> list[Shape]:
    for i in (0, 3):
        (length,), width = c.require_rank(i + 2, 1), c.require_rank(i, 2)[1]
        if None not in (length, width) and length != width:
            raise ValueError(f"Index rank ({width}) and shape rank ({length}) do not match.")
        rows, count = c.require_rank(i, 2)[0], c.require_rank(i + 1, 1)[0]
        if None not in (rows, count) and rows != count:
            raise ValueError(
                f"Number of elements in index ({rows}) and values ({count}) do not match."
            )
    h, t = c.value(2), c.value(5)
    if h is None or t is None:
        length = (c.shape(2) or (None,))[0]
        return [None if length is None else (None,) * (length - 1)]
    return [tuple(max(a, b) for a, b in zip(h.tolist()[:-1], t.tolist()[:-1]))]


EDIT_DISTANCE = define(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, "
    "truth_shape: int64 -> output: float32; normalize: bool=True",
    shape=_edit_distance_shape,
    kernel=_edit_distance_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def edit_distance(
    hypothesis: SparseTensor,
    truth: SparseTensor,
    normalize: bool = True,
    name: str = "edit_distance",
) -> Tensor:
    """The Levenshtein distance of the sequences along the last dimension of two SparseTensors.

    ``hypothesis`` and ``truth`` have equal first dimensions, which are those of the result
    (float32). ``normalize`` divides by the length of ``truth``.
    """
    for label, value in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not hasattr(value, "dense_shape"):
            raise TypeError(f"{label} must be a SparseTensor.")
    return apply(
        EDIT_DISTANCE,
        hypothesis.indices,
        hypothesis.values,
        hypothesis.dense_shape,
        truth.indices,
        truth.values,
        truth.dense_shape,
        normalize=normalize,
        name=name,
    )
