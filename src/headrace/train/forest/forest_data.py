"""What a forest is fed with: one matrix of features, and the text that describes its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.layers import layer_ops as ops
from headrace.ops.sparse.sparse_arranging import sparse_concat
from headrace.ops.sparse.sparse_tensor import SparseTensor, sparse_tensor_to_dense

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["parse_data", "parse_labels"]

_FLOAT, _CATEGORICAL = 0, 1


class _Column(NamedTuple):
    name: str
    kind: int
    size: Any

    def text(self) -> str:
        return f"name: {self.name} original_type: {self.kind} size: {self.size}"


class _Spec:
    """The columns of dense and sparse features, as text for the ops."""

    def __init__(self, dense: list[_Column], sparse: list[_Column]) -> None:
        self.dense, self.sparse = dense, sparse
        self.dense_features_size = sum(c.size for c in dense)

    def SerializeToString(self) -> str:
        dense, sparse = ("".join(f"{{{c.text()}}}" for c in p) for p in (self.dense, self.sparse))
        return (
            f"dense_features_size: {self.dense_features_size} dense: [{dense}] sparse: [{sparse}]"
        )


def _kind(tensor: Any) -> int:
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.int32, dtypes.int64):
        return _CATEGORICAL
    return _FLOAT


def _as_float(tensor: Any) -> Any:
    if tensor.dtype == dtypes.string:
        raise NotImplementedError(
            "tensor_forest: string features are not supported by Headrace; give numbers (for "
            "example of tf.strings.to_hash_bucket_fast)"
        )
    return ops.cast(tensor, dtypes.float32) if tensor.dtype.is_integer else tensor


def parse_data(data: object) -> tuple[Any, Any, Any]:
    """(dense features or None, sparse features or None, their description)."""
    if isinstance(data, dict):
        return _parse_dict(data)
    if isinstance(data, SparseTensor):
        return None, data, _Spec([], [_Column("sparse_features", _kind(data), -1)])
    data = ops.convert_to_tensor(data)
    width = data.get_shape()[1]
    return data, None, _Spec([_Column("dense_features", _kind(data), width)], [])


def _parse_dict(data: dict[str, Any]) -> tuple[Any, Any, Any]:
    columns, dense, sparse = [], [], []
    for name in sorted(data):
        value = data[name]
        if not isinstance(value, SparseTensor):
            shape = value.get_shape()
            columns.append(_Column(name, _kind(value), 1 if len(shape) == 1 else shape[1].value))
            dense.append(_as_float(value))
        elif value.dtype != dtypes.float32:  # (TensorFlow leaves sparse numbers out, too)
            sparse.append(SparseTensor(value.indices, _as_float(value.values), value.dense_shape))
    spec = _Spec(columns, [_Column("all_sparse", _CATEGORICAL, -1)] if sparse else [])
    joined = ops.concat(dense, 1) if dense else None
    return joined, sparse_concat(1, sparse) if sparse else None, spec


def parse_labels(labels: TensorLike) -> Any:
    """Labels as floats; a dictionary's are joined as columns."""
    if isinstance(labels, dict):
        labels = ops.concat([labels[name] for name in sorted(labels)], 1)
    elif isinstance(labels, SparseTensor):
        labels = sparse_tensor_to_dense(labels, default_value=-1)
    return ops.cast(labels, dtypes.float32)
