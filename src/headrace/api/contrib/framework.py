"""``tf.contrib.framework``.

Argument scopes and variables of tf_slim, nested structures, the global step.
"""

from headrace.api.contrib.framework_ops import (
    assert_same_float_dtype,
    assert_scalar,
    assert_scalar_int,
    convert_to_tensor_or_sparse_tensor,
    get_graph_from_inputs,
    get_name_scope,
    get_placeholders,
    is_tensor,
    prepend_name_scope,
    py_func,
    reduce_sum_n,
    remove_squeezable_dimensions,
    smart_case,
    strip_name_scope,
    with_same_shape,
    with_shape,
)
from headrace.api.hosting import hosted_getattr
from headrace.core import nest
from headrace.core.specs import TensorSpec
from headrace.layers.smart_cond import constant_value as smart_constant_value
from headrace.layers.smart_cond import smart_cond
from headrace.ops.array.sorting import argsort, sort
from headrace.train.global_step import (
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)

__all__ = [
    "TensorSpec", "argsort", "assert_same_float_dtype", "assert_scalar", "assert_scalar_int",
    "convert_to_tensor_or_sparse_tensor", "create_global_step", "get_global_step",
    "get_graph_from_inputs", "get_name_scope", "get_or_create_global_step", "get_placeholders",
    "is_tensor", "nest", "prepend_name_scope", "py_func", "reduce_sum_n",
    "remove_squeezable_dimensions", "smart_case", "smart_cond", "smart_constant_value", "sort",
    "strip_name_scope", "with_same_shape", "with_shape",
]  # fmt: skip

_CHECKPOINTS = (
    "checkpoints_iterator", "init_from_checkpoint", "list_variables", "load_checkpoint",
    "load_variable",
)  # fmt: skip

_hosted = hosted_getattr(
    "contrib.framework",
    __name__,
    ["tf_slim.ops.arg_scope", "tf_slim.ops.variables", "tf_slim.ops.framework_ops"],
)


_VOCABULARIES = (
    "load_and_remap_matrix_initializer", "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer", "load_variable_slot_initializer",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _VOCABULARIES:
        from headrace.train import vocabulary_loading

        return getattr(vocabulary_loading, name)
    if name in _CHECKPOINTS:
        from headrace.api.v1 import train

        return getattr(train, name)
    return _hosted(name)
