"""TensorFlow 2's API: ``import headrace.compat.v2 as tf`` turns eager execution on and gives these
names.

Only re-exports and adapted signatures. The same names are ``tf.compat.v2`` of the v1 API, where
nothing is turned on.
"""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace import errors
from headrace.ops.math import operators as _operators
from headrace.api.v2 import (
    bitwise, debugging, dtypes, linalg, math, nn, random, signal, sparse, strings,
)  # fmt: skip
from headrace.api.v2.name_lookup import module_getattr
from headrace.core.device_spec import DeviceSpec
from headrace.api.v2.adapted import (
    case, cond, constant, convert_to_tensor, get_static_value, gradients, hessians, is_tensor,
    map_fn, numpy_function, RandomNormal as random_normal_initializer,
    RandomUniform as random_uniform_initializer, tuple, Variable, while_loop,
)
from headrace.autodiff.gradients import AggregationMethod, UnconnectedGradients
from headrace.autodiff.registry import NotDifferentiable as no_gradient, RegisterGradient
from headrace.core.convert import register_tensor_conversion_function
from headrace.core.dtypes import (
    as_dtype, bfloat16, bool, complex128, complex64, double, DType, float16, float32, float64,
    half, int16, int32, int64, int8, qint16, qint32, qint8, quint16, quint8, resource, string,
    uint16, uint32, uint64, uint8, variant,
)
from headrace.core.graph import Graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import control_dependencies, device, init_scope, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.specs import (
    IndexedSlicesSpec, SparseTensorSpec, TensorSpec, type_spec_from_value, TypeSpec,
)
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_context import (
    executing_eagerly, get_current_name_scope, inside_function, is_symbolic_tensor,
)
from headrace.autodiff.custom_gradient import custom_gradient, grad_pass_through
from headrace.eager.eager_custom_gradient import recompute_grad
from headrace.functions.function import function
from headrace.eager.module import Module
from headrace.eager.py_function import py_function
from headrace.eager.tape import GradientTape
from headrace.ops.array.reversing import (
    reverse_sequence_v2 as reverse_sequence, reverse_v2 as reverse, roll,
)
from headrace.ops.array.space_to_depth import (
    batch_to_space_v2 as batch_to_space, required_space_to_batch_paddings, space_to_batch_nd,
    space_to_batch_v2 as space_to_batch,
)
from headrace.ops.array.array_shape import (
    ensure_shape, expand_dims_v2 as expand_dims, guarantee_const, newaxis, rank, reshape, shape_n,
    shape_v2 as shape, size_v2 as size, squeeze_v2 as squeeze, transpose_v2 as transpose,
)  # fmt: skip
from headrace.ops.array.broadcast_shapes import (
    broadcast_dynamic_shape, broadcast_static_shape, broadcast_to,
)  # fmt: skip
from headrace.ops.array.coordinate_grids import meshgrid
from headrace.ops.array.filling import (
    fill, ones, ones_like_v2 as ones_like, zeros, zeros_like_v2 as zeros_like,
)  # fmt: skip
from headrace.ops.array.basic import identity, identity_n, no_op, stop_gradient
from headrace.ops.array.casting import bitcast, cast, complex, saturate_cast
from headrace.ops.control.assertions import (
    Assert, assert_equal_v2 as assert_equal, assert_greater_v2 as assert_greater,
    assert_less_v2 as assert_less, assert_rank_v2 as assert_rank,
)
from headrace.ops.math.clip import clip_by_global_norm, clip_by_norm, clip_by_value
from headrace.ops.math.comparison import (
    equal, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or,
    not_equal,
)
from headrace.ops.linalg.contraction import einsum, tensordot
from headrace.ops.control.dependencies import group
from headrace.ops.control.case_branches import (switch_case)
from headrace.ops.control.functional import foldl, foldr, scan
from headrace.ops.array.gathering import (
    gather_nd_v2 as gather_nd, gather_v2 as gather, scatter_nd, tensor_scatter_add as
    tensor_scatter_nd_add, tensor_scatter_sub as tensor_scatter_nd_sub, tensor_scatter_update as
    tensor_scatter_nd_update, unravel_index,
)
from headrace.ops.array.masking import boolean_mask_v2 as boolean_mask, sequence_mask  # fmt: skip
from headrace.ops.array.one_hot import (one_hot)
from headrace.ops.array.partitioning import (dynamic_partition, dynamic_stitch)
from headrace.variables.initializers import (
    Constant as constant_initializer, Ones as ones_initializer, Zeros as zeros_initializer,
)
from headrace.ops.array.joining import (concat, parallel_stack, split, stack, unstack)
from headrace.ops.array.padding import (pad_v2 as pad, repeat, tile)
from headrace.ops.linalg.matmul import matmul
from headrace.ops.linalg.norms import eye, norm
from headrace.ops.math.binary import (
    add, atan2, divide, maximum, minimum, multiply, pow, realdiv, scalar_mul_v2 as scalar_mul,
    subtract, truediv, truncatediv, truncatemod,
)
from headrace.ops.math.add_n import add_n
from headrace.ops.math.unary import (
    abs, acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, floor, negative, round, sigmoid,
    sign, sin, sinh, sqrt, square, tan, tanh,
)
from headrace.ops.io.printing import print_v2 as print, timestamp
from headrace.ops.array.ranges import (
    histogram_fixed_width, histogram_fixed_width_bins, linspace_v2 as linspace, range,
)
from headrace.ops.math.reductions import (
    reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod,
    reduce_sum,
)
from headrace.ops.math.arg_reductions import argmax_v2 as argmax, argmin_v2 as argmin
from headrace.ops.math.cumulative import cumsum
from headrace.ops.array.selecting import (where_v2 as where)
from headrace.ops.array.edit_distances import (edit_distance)
from headrace.ops.array.sorting import (argsort, searchsorted, sort)
from headrace.ops.array.uniques import (unique, unique_with_counts)
from headrace.ops.array.slicing import slice, strided_slice
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.strings.string_numbers import as_string
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.control.tensor_array_spec import TensorArraySpec
from headrace.variables.variable import (
    variable_creator_scope, VariableAggregation, VariableSynchronization,
)

#: Modules that are imported when first used.
LAZY_MODULES = {
    "autodiff": "headrace.api.v2.autodiff",
    "autograph": "headrace.autograph",
    "compat": "headrace.api.v2.compat",
    "config": "headrace.api.v2.config",
    "data": "headrace.api.v2.data",
    "experimental": "headrace.api.v2.experimental",
    "graph_util": "headrace.api.v2.graph_util",
    "image": "headrace.api.v2.image",
    "initializers": "headrace.api.v2.initializers",
    "io": "headrace.api.v2.io",
    "keras": "headrace.api.v2.keras",
    "lookup": "headrace.api.v2.lookup",
    "nest": "headrace.core.nest",
    "optimizers": "headrace.api.v2.optimizers",
    "quantization": "headrace.api.v1.quantization",
    "queue": "headrace.api.v1.queue",
    "ragged": "headrace.api.v2.ragged",
    "raw_ops": "headrace.api.raw_ops",
    "sets": "headrace.api.v2.sets",
    "saved_model": "headrace.api.v2.saved_model",
    "audio": "headrace.api.v1.audio",
    "summary": "headrace.api.v2.summary",
    "sysconfig": "headrace.api.platform.sysconfig",
    "test": "headrace.api.v2.test",
    "train": "headrace.api.v2.train",
    "version": "headrace.api.version",
}
#: Names in other modules that ``tf`` itself has.
LAZY_NAMES = {
    "function": "headrace.functions.function",
    "get_logger": "headrace.api.platform.tf_logging",
    "make_ndarray": "headrace.formats.tensor_proto",
    "make_tensor_proto": "headrace.formats.tensor_proto",
    "py_function": "headrace.eager.py_function",
    "RaggedTensor": "headrace.ops.ragged.ragged_tensor",
    "RaggedTensorSpec": "headrace.ops.ragged.ragged_spec",
}

__version__ = "2.15.0"

__all__ = [
    "__version__", "abs", "acos", "acosh", "add", "add_n", "AggregationMethod", "argmax", "argmin",
    "argsort", "as_dtype", "as_string", "asin", "asinh", "Assert", "assert_equal",
    "assert_greater", "assert_less", "assert_rank", "atan", "atan2", "atanh", "batch_to_space",
    "bfloat16", "bitcast", "bitwise", "bool", "boolean_mask", "broadcast_dynamic_shape",
    "broadcast_static_shape", "broadcast_to", "case", "cast", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "complex", "complex128", "complex64", "concat", "cond",
    "constant", "constant_initializer", "control_dependencies", "convert_to_tensor", "cos", "cosh",
    "cumsum", "custom_gradient", "debugging", "device", "DeviceSpec", "divide", "double", "DType",
    "dtypes", "dynamic_partition", "dynamic_stitch", "edit_distance", "einsum", "ensure_shape",
    "equal", "errors", "executing_eagerly", "exp", "expand_dims", "eye", "fill", "float16",
    "float32", "float64", "floor", "foldl", "foldr", "function", "gather", "gather_nd",
    "get_current_name_scope", "get_static_value", "grad_pass_through", "gradients", "GradientTape",
    "Graph", "greater", "greater_equal", "group", "guarantee_const", "half", "hessians",
    "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n",
    "IndexedSlices", "IndexedSlicesSpec", "init_scope", "inside_function", "int16", "int32",
    "int64", "int8", "is_symbolic_tensor", "is_tensor", "less", "less_equal", "linalg", "linspace",
    "logical_and", "logical_not", "logical_or", "map_fn", "math", "matmul", "maximum", "meshgrid",
    "minimum", "Module", "multiply", "name_scope", "negative", "newaxis", "nn", "no_gradient",
    "no_op", "norm", "not_equal", "numpy_function", "one_hot", "ones", "ones_initializer",
    "ones_like", "Operation", "pad", "parallel_stack", "pow", "print", "py_function", "qint16",
    "qint32", "qint8", "quint16", "quint8", "random", "random_normal_initializer",
    "random_uniform_initializer", "range", "rank", "realdiv", "recompute_grad", "reduce_all",
    "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "register_tensor_conversion_function", "RegisterGradient", "repeat",
    "required_space_to_batch_paddings", "reshape", "resource", "reverse", "reverse_sequence",
    "roll", "round", "saturate_cast", "scalar_mul", "scan", "scatter_nd", "searchsorted",
    "sequence_mask", "shape", "shape_n", "sigmoid", "sign", "signal", "sin", "sinh", "size",
    "slice", "sort", "space_to_batch", "space_to_batch_nd", "sparse", "SparseTensor",
    "SparseTensorSpec", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient",
    "strided_slice", "string", "strings", "subtract", "switch_case", "tan", "tanh", "Tensor",
    "tensor_scatter_nd_add", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "TensorArray",
    "TensorArraySpec",
    "tensordot", "TensorShape", "TensorSpec", "tile", "timestamp", "transpose", "truediv",
    "truncatediv",
    "truncatemod", "tuple", "type_spec_from_value", "TypeSpec", "uint16", "uint32", "uint64",
    "uint8", "UnconnectedGradients", "unique", "unique_with_counts", "unravel_index", "unstack",
    "Variable", "variable_creator_scope", "VariableAggregation", "VariableSynchronization",
    "variant", "where", "while_loop", "zeros", "zeros_initializer", "zeros_like",
]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace import autograph as autograph
    from headrace.api import raw_ops as raw_ops
    from headrace.api import version as version
    from headrace.api.platform import sysconfig as sysconfig
    from headrace.api.platform.tf_logging import get_logger as get_logger
    from headrace.api.v1 import audio as audio
    from headrace.api.v1 import quantization as quantization
    from headrace.api.v1 import queue as queue
    from headrace.api.v2 import autodiff as autodiff
    from headrace.api.v2 import compat as compat
    from headrace.api.v2 import config as config
    from headrace.api.v2 import data as data
    from headrace.api.v2 import experimental as experimental
    from headrace.api.v2 import graph_util as graph_util
    from headrace.api.v2 import image as image
    from headrace.api.v2 import initializers as initializers
    from headrace.api.v2 import io as io
    from headrace.api.v2 import keras as keras
    from headrace.api.v2 import lookup as lookup
    from headrace.api.v2 import optimizers as optimizers
    from headrace.api.v2 import ragged as ragged
    from headrace.api.v2 import saved_model as saved_model
    from headrace.api.v2 import sets as sets
    from headrace.api.v2 import summary as summary
    from headrace.api.v2 import test as test
    from headrace.api.v2 import train as train
    from headrace.core import nest as nest
    from headrace.formats.tensor_proto import make_ndarray as make_ndarray
    from headrace.formats.tensor_proto import make_tensor_proto as make_tensor_proto
    from headrace.ops.ragged.ragged_spec import RaggedTensorSpec as RaggedTensorSpec
    from headrace.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
    __all__ += [
        "RaggedTensor", "RaggedTensorSpec", "audio", "autodiff", "autograph", "compat", "config",
        "data", "experimental", "get_logger", "graph_util", "image", "initializers", "io", "keras",
        "lookup", "make_ndarray", "make_tensor_proto", "nest", "optimizers", "quantization",
        "queue", "ragged", "raw_ops", "saved_model", "sets", "summary", "sysconfig", "test",
        "train", "version",
    ]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("", __name__, modules=LAZY_MODULES, names=LAZY_NAMES)
