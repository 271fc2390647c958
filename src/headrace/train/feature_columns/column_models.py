"""``input_layer``, ``linear_model`` and ``make_parse_example_spec``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection, name_scope
from headrace.layers import layer_ops as ops
from headrace.ops.nn.embedding import safe_embedding_lookup_sparse
from headrace.ops.sparse.sparse_arranging import sparse_reshape
from headrace.train.feature_columns.column_base import (
    Builder,
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    sorted_columns,
)
from headrace.train.feature_columns.dense_columns import weight_collections as _collections
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["check_batches", "input_layer", "linear_model", "make_parse_example_spec"]


def check_batches(tensors: list[Any], columns: list[Any]) -> None:
    """ValueError if two columns are known to have different numbers of rows."""
    known = [(t.shape[0].value, c) for t, c in zip(tensors, columns) if t.shape.ndims]
    known = [(n, c) for n, c in known if n is not None]
    for n, column in known[1:]:
        if n != known[0][0]:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. "
                f"Batch size of columns ({known[0][1].name}, {column.name}): ({known[0][0]}, {n})"
            )


def _matrix(column: DenseColumn, builder: Builder, collections: list[str], train: bool) -> Any:
    tensor = column._get_dense_tensor(builder, collections, train)
    size: Any = column.variable_shape.num_elements()
    return ops.reshape(tensor, (ops.shape(tensor)[0], size))


def input_layer(
    features: dict[str, Any],
    feature_columns: Sequence[Any],
    weight_collections: object = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Any:
    """The columns side by side, in the order of their names: a matrix with one row per example.

    ``features``: name -> tensor or SparseTensor. ``cols_to_vars`` and ``cols_to_output_tensors``:
    dictionaries that are given the variables and the part of each column.
    """
    columns = sorted_columns(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical "
                f"column with an embedding_column or indicator_column. Given: {column}"
            )
    collections = _collections(weight_collections)
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        builder = Builder(features)
        outputs = []
        for column in columns:
            with variable_scope(None, default_name=column._var_scope_name):
                outputs.append(_matrix(column, builder, collections, trainable))
                if cols_to_vars is not None:
                    scope = get_variable_scope().name
                    cols_to_vars[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = outputs[-1]
        check_batches(outputs, columns)
        return ops.concat(outputs, 1)


def linear_model(
    features: dict[str, Any],
    feature_columns: Sequence[Any],
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: object = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Any:
    """The weighted sum of all columns and a bias: ``units`` numbers per row.

    ``sparse_combiner``: how several ids of one categorical column are combined ("sum", "mean" or
    "sqrtn"). ``cols_to_vars``: a dictionary that is given the variables by column, and "bias".
    """
    with variable_scope(None, "linear_model") as scope:
        model_name = _base_name(scope.name)
    columns = sorted_columns(feature_columns)
    names = {}
    for column in columns:
        with variable_scope(None, default_name=column._var_scope_name) as scope:
            names[_base_name(scope.name)] = column
    collections = _collections(weight_collections)
    found: dict[Any, Any] = {}
    with name_scope(model_name), variable_scope(model_name, auxiliary_name_scope=False):
        ordered = sorted(names)
        builder = Builder(features)
        sums = []
        for name in ordered:
            column = names[name]
            if not isinstance(column, (DenseColumn, CategoricalColumn)):
                raise ValueError(
                    "Items of feature_columns must be either a _DenseColumn or "
                    f"_CategoricalColumn. Given: {column}"
                )
            with variable_scope(None, default_name=name) as scope:
                sums.append(
                    _weighted_sum(column, builder, units, sparse_combiner, collections, trainable)
                )
                found[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope.name)
        check_batches(sums, [names[n] for n in ordered])
        total = ops.add_n(sums, name="weighted_sum_no_bias")
        bias = _variable("bias_weights", [units], trainable, collections)
        result = ops.bias_add(total, bias, name="weighted_sum")
        found["bias"] = list(bias) if hasattr(bias, "_get_variable_list") else [bias]
    if cols_to_vars is not None:
        cols_to_vars.update(found)
    return result


def _base_name(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _variable(name: str, shape: list[Any], trainable: bool, collections: list[str]) -> Any:
    made: Any = get_variable(
        name, shape=shape, initializer=zeros_initializer(), trainable=trainable
    )
    parts = list(made) if hasattr(made, "_get_variable_list") else [made]
    for collection in collections:
        if collection != GraphKeys.GLOBAL_VARIABLES:
            for part in parts:
                add_to_collection(collection, part)
    return made


def _weighted_sum(
    column: Any,
    builder: Builder,
    units: int,
    combiner: str,
    collections: list[str],
    trainable: bool,
) -> Any:
    if not isinstance(column, CategoricalColumn):
        size = column.variable_shape.num_elements()
        weights = _variable("weights", [size, units], trainable, collections)
        return ops.matmul(
            _matrix(column, builder, collections, trainable), weights, name="weighted_sum"
        )
    weights = _variable("weights", [column.num_buckets, units], trainable, collections)
    ids, scales = column._get_sparse_tensors(builder)
    ids = sparse_reshape(ids, [ops.shape(ids)[0], -1])
    if scales is not None:
        scales = sparse_reshape(scales, [ops.shape(scales)[0], -1])
    return safe_embedding_lookup_sparse(
        embedding_weights=weights,
        sparse_ids=ids,
        sparse_weights=scales,
        combiner=combiner,
        name="weighted_sum",
    )


def make_parse_example_spec(feature_columns: Sequence[Any]) -> dict[str, Any]:
    """What ``tf.parse_example`` needs for the features of the columns.

    >>> features = tf.parse_example(serialized, make_parse_example_spec(columns))
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be _FeatureColumn instances. Given: {column}"
            )
        for key, value in column.parse_example_spec.items():
            if key in spec and value != spec[key]:
                raise ValueError(
                    "feature_columns contain different parse_spec for key "
                    f"{key}. Given {value} and {spec[key]}"
                )
            spec[key] = value
    return spec
