"""``tf.feature_column``."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.train.feature_columns.categorical_columns import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    crossed_column,
    weighted_categorical_column,
)
from headrace.train.feature_columns.column_models import (
    input_layer,
    linear_model,
    make_parse_example_spec,
)
from headrace.train.feature_columns.dense_columns import (
    embedding_column,
    indicator_column,
    shared_embedding_columns,
)
from headrace.train.feature_columns.numeric_columns import bucketized_column, numeric_column
from headrace.train.feature_columns.sequence_columns import (
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)

__all__ = [
    "bucketized_column", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file", "categorical_column_with_vocabulary_list",
    "crossed_column", "embedding_column", "indicator_column", "input_layer", "linear_model",
    "make_parse_example_spec", "numeric_column", "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column", "shared_embedding_columns",
    "weighted_categorical_column",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("feature_column", __name__)
