"""TensorFlow 1.15's API: ``import headrace.api.v1 as tf`` (``import headrace`` gives the same
names).

Only re-exports. Parts that are not about graphs (files, flags, tests) and protocol messages are
imported when first used, so that the import stays light; a name that is not here raises an
AttributeError that says what it is and what is near.
"""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace import errors
from headrace import formats as _formats
from headrace.api import version
from headrace.api.lazy_names import LAZY_MODULES, LAZY_NAMES
from headrace.api.missing import module_getattr
from headrace.api.platform.messages import MESSAGES
from headrace.ops.math import operators as _operators
from headrace.core.device_spec import DeviceSpec
from headrace.api.platform.compat import dimension_at_index
from headrace.api.v1.context import (
    control_flow_v2_enabled, disable_control_flow_v2, disable_eager_execution,
    disable_tensor_equality, disable_v2_behavior, disable_v2_tensorshape,
    enable_control_flow_v2, enable_eager_execution, enable_tensor_equality, enable_v2_behavior,
    enable_v2_tensorshape, executing_eagerly,
)
from headrace.api.version import (
    COMPILER_VERSION, GIT_VERSION, GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER, HEADRACE_VERSION, VERSION,
)
from headrace.autodiff.custom_gradient import custom_gradient, grad_pass_through
from headrace.autodiff.gradients import AggregationMethod, gradients, hessians, UnconnectedGradients
from headrace.autodiff.registry import (
    NoGradient, NotDifferentiable, NotDifferentiable as no_gradient, RegisterGradient,
)
from headrace.core.convert import convert_to_tensor, is_tensor, register_tensor_conversion_function
from headrace.core.dtypes import (
    as_dtype, bfloat16, bool, complex128, complex64, double, DType, float16, float32, float64,
    half, int16, int32, int64, int8, qint16, qint32, qint8, QUANTIZED_DTYPES, quint16, quint8,
    resource, string, uint16, uint32, uint64, uint8, variant,
)
from headrace.core.graph import get_default_graph, Graph, reset_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import constant_value as get_static_value
from headrace.core.scopes import (
    add_to_collection, add_to_collections, colocate_with, container, control_dependencies,
    device, get_all_collection_keys, get_collection, get_collection_ref, get_default_session,
    init_scope, name_scope, op_scope,
)
from headrace.core.opdef import LOADERS
from headrace.core.seeds import get_seed, set_random_seed
from headrace.core.shapes import Dimension, dimension_value, TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.errors import OpError
from headrace.ops.array.reversing import reverse, reverse_sequence, reverse_v2, roll
from headrace.ops.array.space_to_depth import (
    batch_to_space, batch_to_space_nd, depth_to_space, required_space_to_batch_paddings,
    space_to_batch, space_to_batch_nd, space_to_depth,
)
from headrace.ops.array.image_patches import extract_image_patches
from headrace.ops.array.array_shape import (
    ensure_shape, expand_dims, guarantee_const, matrix_transpose, newaxis, rank, reshape, shape,
    shape_n, size, squeeze, transpose,
)  # fmt: skip
from headrace.ops.array.broadcast_shapes import (
    broadcast_dynamic_shape, broadcast_static_shape, broadcast_to,
)  # fmt: skip
from headrace.ops.array.coordinate_grids import meshgrid
from headrace.ops.array.filling import (fill, ones, ones_like, zeros, zeros_like)
from headrace.ops.array.basic import (
    constant, identity, identity_n, no_op, placeholder, placeholder_with_default, stop_gradient,
)
from headrace.ops.array.casting import (
    angle, bitcast, cast, complex, conj, imag, real, saturate_cast, to_bfloat16, to_complex128,
    to_complex64, to_double, to_float, to_int32, to_int64,
)
from headrace.ops.math.clip import (
    check_numerics, clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value,
    global_norm, verify_tensor_all_finite,
)
from headrace.ops.math.comparison import (
    equal, greater, greater_equal, is_finite, is_inf, is_nan, less, less_equal, logical_and,
    logical_not, logical_or, logical_xor, not_equal,
)
from headrace.ops.linalg.contraction import einsum_v1 as einsum
from headrace.ops.linalg.contraction import tensordot
from headrace.ops.control.dependencies import group, tuple
from headrace.ops.control.control_flow import (cond)
from headrace.ops.control.case_branches import (case, switch_case)
from headrace.ops.control.while_loops import (while_loop)
from headrace.ops.linalg.diagonals import (
    diag, diag_part, matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag,
)
from headrace.ops.control.functional import foldl, foldr, map_fn, scan
from headrace.ops.control.parallel_loops import vectorized_map
from headrace.ops.array.gathering import (
    batch_gather, gather, gather_nd, invert_permutation, scatter_nd, tensor_scatter_add,
    tensor_scatter_add as tensor_scatter_nd_add, tensor_scatter_sub, tensor_scatter_sub as
    tensor_scatter_nd_sub, tensor_scatter_update, tensor_scatter_update as tensor_scatter_nd_update,
    unravel_index,
)
from headrace.ops.array.masking import boolean_mask, sequence_mask  # fmt: skip
from headrace.ops.array.one_hot import (one_hot)
from headrace.ops.array.partitioning import (dynamic_partition, dynamic_stitch)
from headrace.variables.initializers import (
    constant_initializer, glorot_normal_initializer, glorot_uniform_initializer,
    ones_initializer, orthogonal_initializer, random_normal_initializer,
    random_uniform_initializer, truncated_normal_initializer, uniform_unit_scaling_initializer,
    variance_scaling_initializer, zeros_initializer,
)
from headrace.ops.array.joining import (
    concat, concat as concat_v2, pack, parallel_stack, split, stack, unpack, unstack,
)  # fmt: skip
from headrace.ops.array.padding import (pad, repeat, tile)
from headrace.ops.linalg.matmul import batch_matmul, matmul, sparse_matmul
from headrace.ops.linalg.norms import eye, norm, trace
from headrace.ops.math.binary import (
    add, atan2, div, div_no_nan, divide, floor_div, floordiv, floormod, maximum, minimum, mod,
    mul, multiply, pow, realdiv, scalar_mul, squared_difference, sub, subtract, truediv,
    truncatediv, truncatemod,
)
from headrace.ops.math.add_n import accumulate_n, add_n
from headrace.ops.math.unary import (
    abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, exp, expm1, floor, inv, log,
    log1p, log_sigmoid, neg, negative, reciprocal, rint, round, rsqrt, sigmoid, sign, sin, sinh,
    sqrt, square, tan, tanh,
)
from headrace.ops.random.random_ops import (
    multinomial, random_crop, random_normal, random_shuffle, random_uniform, truncated_normal,
)
from headrace.ops.array.ranges import (
    bincount, confusion_matrix, cross, histogram_fixed_width, histogram_fixed_width_bins,
    lin_space, linspace, range,
)
from headrace.ops.math.reductions import (
    count_nonzero, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min,
    reduce_prod, reduce_sum,
)
from headrace.ops.math.arg_reductions import arg_max, arg_min, argmax, argmin
from headrace.ops.math.cumulative import cumprod, cumsum
from headrace.ops.math.segments import (
    segment_max, segment_mean, segment_min, segment_prod, segment_sum, sparse_segment_mean,
    sparse_segment_sqrt_n, sparse_segment_sum, unsorted_segment_max, unsorted_segment_mean,
    unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sqrt_n, unsorted_segment_sum,
)
from headrace.ops.array.selecting import (where, where as select, where_v2)
from headrace.ops.array.edit_distances import (edit_distance)
from headrace.ops.array.sorting import (
    argsort, is_non_decreasing, is_strictly_increasing, searchsorted, sort,
)  # fmt: skip
from headrace.ops.array.uniques import (setdiff1d, unique, unique_with_counts)
from headrace.ops.array.slicing import slice, strided_slice
from headrace.ops.state.ref_state import assign, assign_add, assign_sub, count_up_to
from headrace.ops.state.ref_scatter import (
    batch_scatter_update, scatter_add, scatter_div, scatter_max, scatter_min, scatter_mul,
    scatter_nd_add, scatter_nd_sub, scatter_nd_update, scatter_sub, scatter_update,
)
from headrace.ops.control.tensor_array import TensorArray
from headrace.variables.variable_lists import (
    all_variables, assert_variables_initialized, global_variables, global_variables_initializer,
    initialize_all_tables, initialize_all_variables, initialize_local_variables,
    initialize_variables, is_variable_initialized, local_variables, local_variables_initializer,
    model_variables, moving_average_variables, report_uninitialized_variables,
    tables_initializer, trainable_variables, variables_initializer,
)
from headrace.variables.variable_scope import (
    AUTO_REUSE, disable_resource_variables, enable_resource_variables, get_local_variable,
    get_variable, get_variable_scope, no_regularizer, resource_variables_enabled,
    variable_creator_scope, variable_op_scope, variable_scope, VariableScope,
)
from headrace.variables.variable import Variable, VariableAggregation, VariableSynchronization
from headrace.session.session import InteractiveSession, Session

__version__ = VERSION
__git_version__ = GIT_VERSION
__compiler_version__ = COMPILER_VERSION

__all__ = [
    "__compiler_version__", "__git_version__", "__version__", "abs", "accumulate_n", "acos",
    "acosh", "add", "add_check_numerics_ops", "add_n", "add_to_collection",
    "add_to_collections", "AggregationMethod", "all_variables", "angle", "arg_max", "arg_min",
    "argmax", "argmin", "argsort", "as_dtype", "as_string", "asin", "asinh", "Assert",
    "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less",
    "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative",
    "assert_non_positive", "assert_none_equal", "assert_positive", "assert_proper_iterable",
    "assert_rank", "assert_rank_at_least", "assert_rank_in", "assert_same_float_dtype",
    "assert_scalar", "assert_type", "assert_variables_initialized", "assign", "assign_add",
    "assign_sub", "atan", "atan2", "atanh", "AUTO_REUSE", "batch_gather", "batch_matmul",
    "batch_scatter_update", "batch_to_space", "batch_to_space_nd", "betainc", "bfloat16",
    "bincount", "bitcast", "bitwise", "bool", "boolean_mask", "broadcast_dynamic_shape",
    "broadcast_static_shape", "broadcast_to", "case", "cast", "ceil", "check_numerics",
    "cholesky", "cholesky_solve", "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm",
    "clip_by_value", "colocate_with", "COMPILER_VERSION", "complex", "complex128", "complex64",
    "concat", "concat_v2", "cond", "confusion_matrix", "conj", "constant",
    "constant_initializer", "container", "control_dependencies", "control_flow_v2_enabled",
    "convert_to_tensor", "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor", "cos", "cosh", "count_nonzero",
    "count_up_to", "create_partitioned_variables", "cross", "cumprod", "cumsum",
    "custom_gradient", "debugging", "decode_base64", "decode_raw", "depth_to_space", "device",
    "DeviceSpec", "diag", "diag_part", "digamma", "Dimension", "dimension_at_index",
    "dimension_value", "disable_control_flow_v2", "disable_eager_execution",
    "disable_resource_variables", "disable_tensor_equality", "disable_v2_behavior",
    "disable_v2_tensorshape", "div", "div_no_nan", "divide", "double", "DType", "dtypes",
    "dynamic_partition", "dynamic_stitch", "edit_distance", "einsum", "enable_control_flow_v2",
    "enable_eager_execution", "enable_resource_variables", "enable_tensor_equality",
    "enable_v2_behavior", "enable_v2_tensorshape", "encode_base64", "ensure_shape", "equal",
    "erf", "erfc", "errors", "executing_eagerly", "exp", "expand_dims", "expm1",
    "extract_image_patches", "eye", "fft", "fft2d", "fft3d", "fill", "fixed_size_partitioner",
    "float16", "float32", "float64", "floor", "floor_div", "floordiv", "floormod", "foldl",
    "foldr", "gather", "gather_nd", "get_all_collection_keys", "get_collection",
    "get_collection_ref", "get_default_graph", "get_default_session", "get_local_variable",
    "get_seed", "get_static_value", "get_variable", "get_variable_scope", "GIT_VERSION",
    "global_norm", "global_variables", "global_variables_initializer",
    "glorot_normal_initializer", "glorot_uniform_initializer", "grad_pass_through", "gradients",
    "Graph", "GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER", "GraphKeys", "greater", "greater_equal", "group",
    "guarantee_const", "half", "HEADRACE_VERSION", "hessians", "histogram_fixed_width",
    "histogram_fixed_width_bins", "identity", "identity_n", "ifft", "ifft2d", "ifft3d",
    "igamma", "igammac", "imag", "IndexedSlices", "init_scope", "initialize_all_tables",
    "initialize_all_variables", "initialize_local_variables", "initialize_variables",
    "initializers", "int16", "int32", "int64", "int8", "InteractiveSession", "inv",
    "invert_permutation", "io", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_numeric_tensor", "is_strictly_increasing", "is_tensor", "is_variable_initialized",
    "lbeta", "less", "less_equal", "lgamma", "lin_space", "linalg", "linspace",
    "local_variables", "local_variables_initializer", "log", "log1p", "log_sigmoid",
    "logical_and", "logical_not", "logical_or", "logical_xor", "losses",
    "make_template", "manip", "map_fn", "math", "matmul", "matrix_band_part",
    "matrix_determinant", "matrix_diag", "matrix_diag_part", "matrix_inverse",
    "matrix_set_diag", "matrix_solve", "matrix_solve_ls", "matrix_transpose",
    "matrix_triangular_solve", "maximum", "meshgrid", "min_max_variable_partitioner", "minimum",
    "mod", "model_variables", "moving_average_variables", "mul", "multinomial", "multiply",
    "name_scope", "neg", "negative", "nest", "newaxis", "nn", "no_gradient", "no_op",
    "no_regularizer", "NoGradient", "norm", "not_equal", "NotDifferentiable", "numpy_function",
    "one_hot", "ones", "ones_initializer", "ones_like", "op_scope", "Operation", "OpError",
    "orthogonal_initializer", "pack", "pad", "parallel_stack", "placeholder",
    "placeholder_with_default", "polygamma", "pow", "Print", "print", "py_func", "qint16",
    "qint32", "qint8", "qr", "QUANTIZED_DTYPES", "quint16", "quint8", "random", "random_crop",
    "random_gamma", "random_normal", "random_normal_initializer", "random_poisson",
    "random_shuffle", "random_uniform", "random_uniform_initializer", "range", "rank", "real",
    "realdiv", "reciprocal", "reduce_all", "reduce_any", "reduce_join", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "regex_replace",
    "register_tensor_conversion_function", "RegisterGradient", "repeat",
    "report_uninitialized_variables", "required_space_to_batch_paddings", "reset_default_graph",
    "reshape", "resource", "resource_variables_enabled", "reverse", "reverse_sequence",
    "reverse_v2", "rint", "roll", "round", "rsqrt", "saturate_cast", "scalar_mul", "scan",
    "scatter_add", "scatter_div", "scatter_max", "scatter_min", "scatter_mul", "scatter_nd",
    "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "scatter_sub", "scatter_update",
    "searchsorted", "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    "select", "self_adjoint_eig", "self_adjoint_eigvals", "sequence_mask", "Session",
    "set_random_seed", "setdiff1d", "shape", "shape_n", "sigmoid", "sign", "signal", "sin",
    "sinh", "size", "slice", "sort", "space_to_batch", "space_to_batch_nd", "space_to_depth",
    "sparse", "sparse_add", "sparse_concat", "sparse_fill_empty_rows", "sparse_mask",
    "sparse_matmul", "sparse_maximum", "sparse_merge", "sparse_minimum", "sparse_placeholder",
    "sparse_reduce_max", "sparse_reduce_max_sparse", "sparse_reduce_sum",
    "sparse_reduce_sum_sparse", "sparse_reorder", "sparse_reset_shape", "sparse_reshape",
    "sparse_retain", "sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum",
    "sparse_slice", "sparse_softmax", "sparse_split", "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense", "sparse_to_dense", "sparse_to_indicator", "sparse_transpose",
    "SparseTensor", "SparseTensorValue", "spectral", "split", "sqrt", "square",
    "squared_difference", "squeeze", "stack", "stop_gradient", "strided_slice", "string",
    "string_join", "string_split", "string_strip", "string_to_hash_bucket",
    "string_to_hash_bucket_fast", "string_to_hash_bucket_strong", "string_to_number", "strings",
    "sub", "substr", "subtract", "svd", "switch_case", "tables_initializer", "tan", "tanh",
    "Tensor", "tensor_scatter_add", "tensor_scatter_nd_add", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "tensor_scatter_sub", "tensor_scatter_update", "TensorArray",
    "tensordot", "TensorShape", "tile", "to_bfloat16", "to_complex128", "to_complex64",
    "to_double", "to_float", "to_int32", "to_int64", "trace", "train", "trainable_variables",
    "transpose", "truediv", "truncated_normal", "truncated_normal_initializer", "truncatediv",
    "truncatemod", "tuple", "uint16", "uint32", "uint64", "uint8", "UnconnectedGradients",
    "uniform_unit_scaling_initializer", "unique", "unique_with_counts", "unpack",
    "unravel_index", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "unstack",
    "Variable", "variable_axis_size_partitioner", "variable_creator_scope", "variable_op_scope",
    "variable_scope", "VariableAggregation", "variables_initializer", "VariableScope",
    "VariableSynchronization", "variance_scaling_initializer", "variant", "vectorized_map",
    "verify_tensor_all_finite", "VERSION", "version", "where", "where_v2", "while_loop",
    "zeros", "zeros_initializer", "zeros_like", "zeta",
]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from typing import Any as _Any

    from headrace import autograph as autograph
    from headrace.api import contrib as contrib
    from headrace.api import raw_ops as raw_ops
    from headrace.api.platform import app as app
    from headrace.api.platform import flags as flags
    from headrace.api.platform import gfile as gfile
    from headrace.api.platform import resource_loader as resource_loader
    from headrace.api.platform import sysconfig as sysconfig
    from headrace.api.platform import test as test
    from headrace.api.platform import tf_logging as logging
    from headrace.api.platform.op_libraries import (
        load_file_system_library as load_file_system_library,
    )
    from headrace.api.platform.op_libraries import load_library as load_library
    from headrace.api.platform.op_libraries import load_op_library as load_op_library
    from headrace.api.platform.sysconfig import CXX11_ABI_FLAG as CXX11_ABI_FLAG
    from headrace.api.platform.sysconfig import MONOLITHIC_BUILD as MONOLITHIC_BUILD
    from headrace.api.platform.tf_logging import get_logger as get_logger
    from headrace.api.v1 import audio as audio
    from headrace.api.v1 import bitwise as bitwise
    from headrace.api.v1 import compat as compat
    from headrace.api.v1 import config as config
    from headrace.api.v1 import data as data
    from headrace.api.v1 import debugging as debugging
    from headrace.api.v1 import distribute as distribute
    from headrace.api.v1 import distributions as distributions
    from headrace.api.v1 import dtypes as dtypes
    from headrace.api.v1 import estimator as estimator
    from headrace.api.v1 import feature_column as feature_column
    from headrace.api.v1 import graph_util as graph_util
    from headrace.api.v1 import image as image
    from headrace.api.v1 import initializers as initializers
    from headrace.api.v1 import io as io
    from headrace.api.v1 import layers as layers
    from headrace.api.v1 import linalg as linalg
    from headrace.api.v1 import lookup as lookup
    from headrace.api.v1 import losses as losses
    from headrace.api.v1 import manip as manip
    from headrace.api.v1 import math as math
    from headrace.api.v1 import metrics as metrics
    from headrace.api.v1 import nest as nest
    from headrace.api.v1 import nn as nn
    from headrace.api.v1 import profiler as profiler
    from headrace.api.v1 import python as python
    from headrace.api.v1 import python_io as python_io
    from headrace.api.v1 import quantization as quantization
    from headrace.api.v1 import queue as queue
    from headrace.api.v1 import ragged as ragged
    from headrace.api.v1 import random as random
    from headrace.api.v1 import saved_model as saved_model
    from headrace.api.v1 import sets as sets
    from headrace.api.v1 import signal as signal
    from headrace.api.v1 import sparse as sparse
    from headrace.api.v1 import spectral as spectral
    from headrace.api.v1 import strings as strings
    from headrace.api.v1 import summary as summary
    from headrace.api.v1 import tpu as tpu
    from headrace.api.v1 import train as train
    from headrace.core.specs import IndexedSlicesSpec as IndexedSlicesSpec
    from headrace.core.specs import SparseTensorSpec as SparseTensorSpec
    from headrace.core.specs import TensorSpec as TensorSpec
    from headrace.core.specs import TypeSpec as TypeSpec
    from headrace.eager.eager_custom_gradient import recompute_grad as recompute_grad
    from headrace.eager.module import Module as Module
    from headrace.eager.py_function import py_function as py_function
    from headrace.eager.tape import GradientTape as GradientTape
    from headrace.formats.graphdef_reader import import_graph_def as import_graph_def
    from headrace.formats.tensor_proto import make_ndarray as make_ndarray
    from headrace.formats.tensor_proto import make_tensor_proto as make_tensor_proto
    from headrace.functions.function import function as function
    from headrace.functions.wrapped_function import wrap_function as wrap_function
    from headrace.ops.control.assertions import Assert as Assert
    from headrace.ops.control.assertions import add_check_numerics_ops as add_check_numerics_ops
    from headrace.ops.control.assertions import assert_equal as assert_equal
    from headrace.ops.control.assertions import assert_greater as assert_greater
    from headrace.ops.control.assertions import assert_greater_equal as assert_greater_equal
    from headrace.ops.control.assertions import assert_integer as assert_integer
    from headrace.ops.control.assertions import assert_less as assert_less
    from headrace.ops.control.assertions import assert_less_equal as assert_less_equal
    from headrace.ops.control.assertions import assert_near as assert_near
    from headrace.ops.control.assertions import assert_negative as assert_negative
    from headrace.ops.control.assertions import assert_non_negative as assert_non_negative
    from headrace.ops.control.assertions import assert_non_positive as assert_non_positive
    from headrace.ops.control.assertions import assert_none_equal as assert_none_equal
    from headrace.ops.control.assertions import assert_positive as assert_positive
    from headrace.ops.control.assertions import assert_proper_iterable as assert_proper_iterable
    from headrace.ops.control.assertions import assert_rank as assert_rank
    from headrace.ops.control.assertions import assert_rank_at_least as assert_rank_at_least
    from headrace.ops.control.assertions import assert_rank_in as assert_rank_in
    from headrace.ops.control.assertions import assert_same_float_dtype as assert_same_float_dtype
    from headrace.ops.control.assertions import assert_scalar as assert_scalar
    from headrace.ops.control.assertions import assert_type as assert_type
    from headrace.ops.control.assertions import is_numeric_tensor as is_numeric_tensor
    from headrace.ops.control.py_func import numpy_function as numpy_function
    from headrace.ops.control.py_func import py_func as py_func
    from headrace.ops.control.tensor_array_spec import TensorArraySpec as TensorArraySpec
    from headrace.ops.io.decoding import decode_compressed as decode_compressed
    from headrace.ops.io.decoding import parse_tensor as parse_tensor
    from headrace.ops.io.decoding import serialize_tensor as serialize_tensor
    from headrace.ops.io.decoding_csv import decode_csv as decode_csv
    from headrace.ops.io.file_ops import matching_files as matching_files
    from headrace.ops.io.file_ops import read_file as read_file
    from headrace.ops.io.file_ops import write_file as write_file
    from headrace.ops.io.parsing_features import FixedLenFeature as FixedLenFeature
    from headrace.ops.io.parsing_features import FixedLenSequenceFeature as FixedLenSequenceFeature
    from headrace.ops.io.parsing_features import SparseFeature as SparseFeature
    from headrace.ops.io.parsing_features import VarLenFeature as VarLenFeature
    from headrace.ops.io.parsing_features import parse_example as parse_example
    from headrace.ops.io.parsing_features import parse_single_example as parse_single_example
    from headrace.ops.io.parsing_features import (
        parse_single_sequence_example as parse_single_sequence_example,
    )
    from headrace.ops.io.printing import Print as Print
    from headrace.ops.io.printing import print_v2 as print
    from headrace.ops.io.printing import timestamp as timestamp
    from headrace.ops.io.sparse_rows import deserialize_many_sparse as deserialize_many_sparse
    from headrace.ops.io.sparse_rows import serialize_many_sparse as serialize_many_sparse
    from headrace.ops.io.sparse_rows import serialize_sparse as serialize_sparse
    from headrace.ops.linalg.decompositions import cholesky as cholesky
    from headrace.ops.linalg.decompositions import matrix_determinant as matrix_determinant
    from headrace.ops.linalg.decompositions import matrix_inverse as matrix_inverse
    from headrace.ops.linalg.decompositions import qr as qr
    from headrace.ops.linalg.decompositions import self_adjoint_eig as self_adjoint_eig
    from headrace.ops.linalg.decompositions import self_adjoint_eigvals as self_adjoint_eigvals
    from headrace.ops.linalg.decompositions import svd as svd
    from headrace.ops.linalg.solving import cholesky_solve as cholesky_solve
    from headrace.ops.linalg.solving import matrix_solve as matrix_solve
    from headrace.ops.linalg.solving import matrix_solve_ls as matrix_solve_ls
    from headrace.ops.linalg.solving import matrix_triangular_solve as matrix_triangular_solve
    from headrace.ops.math.fft import fft as fft
    from headrace.ops.math.fft import fft2d as fft2d
    from headrace.ops.math.fft import fft3d as fft3d
    from headrace.ops.math.fft import ifft as ifft
    from headrace.ops.math.fft import ifft2d as ifft2d
    from headrace.ops.math.fft import ifft3d as ifft3d
    from headrace.ops.math.special import betainc as betainc
    from headrace.ops.math.special import digamma as digamma
    from headrace.ops.math.special import erf as erf
    from headrace.ops.math.special import erfc as erfc
    from headrace.ops.math.special import igamma as igamma
    from headrace.ops.math.special import igammac as igammac
    from headrace.ops.math.special import lbeta as lbeta
    from headrace.ops.math.special import lgamma as lgamma
    from headrace.ops.math.special import polygamma as polygamma
    from headrace.ops.math.special import zeta as zeta
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_args as fake_quant_with_min_max_args,
    )
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
    )
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_vars as fake_quant_with_min_max_vars,
    )
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
    )
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
    )
    from headrace.ops.nn.fake_quantization import (
        fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,  # noqa: E501
    )
    from headrace.ops.queues.accumulators import ConditionalAccumulator as ConditionalAccumulator
    from headrace.ops.queues.accumulators import (
        ConditionalAccumulatorBase as ConditionalAccumulatorBase,
    )
    from headrace.ops.queues.accumulators import (
        SparseConditionalAccumulator as SparseConditionalAccumulator,
    )
    from headrace.ops.queues.file_readers import FixedLengthRecordReader as FixedLengthRecordReader
    from headrace.ops.queues.file_readers import IdentityReader as IdentityReader
    from headrace.ops.queues.file_readers import ReaderBase as ReaderBase
    from headrace.ops.queues.file_readers import TextLineReader as TextLineReader
    from headrace.ops.queues.file_readers import TFRecordReader as TFRecordReader
    from headrace.ops.queues.file_readers import WholeFileReader as WholeFileReader
    from headrace.ops.queues.queues import FIFOQueue as FIFOQueue
    from headrace.ops.queues.queues import PaddingFIFOQueue as PaddingFIFOQueue
    from headrace.ops.queues.queues import PriorityQueue as PriorityQueue
    from headrace.ops.queues.queues import QueueBase as QueueBase
    from headrace.ops.queues.queues import RandomShuffleQueue as RandomShuffleQueue
    from headrace.ops.ragged.ragged_spec import RaggedTensorSpec as RaggedTensorSpec
    from headrace.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
    from headrace.ops.random.gamma_poisson import random_gamma as random_gamma
    from headrace.ops.random.gamma_poisson import random_poisson as random_poisson
    from headrace.ops.sparse.sparse_arithmetic import sparse_add as sparse_add
    from headrace.ops.sparse.sparse_arithmetic import sparse_maximum as sparse_maximum
    from headrace.ops.sparse.sparse_arithmetic import sparse_minimum as sparse_minimum
    from headrace.ops.sparse.sparse_arithmetic import sparse_reduce_max as sparse_reduce_max
    from headrace.ops.sparse.sparse_arithmetic import (
        sparse_reduce_max_sparse as sparse_reduce_max_sparse,
    )
    from headrace.ops.sparse.sparse_arithmetic import sparse_reduce_sum as sparse_reduce_sum
    from headrace.ops.sparse.sparse_arithmetic import (
        sparse_reduce_sum_sparse as sparse_reduce_sum_sparse,
    )
    from headrace.ops.sparse.sparse_arithmetic import sparse_softmax as sparse_softmax
    from headrace.ops.sparse.sparse_arranging import sparse_concat as sparse_concat
    from headrace.ops.sparse.sparse_arranging import (
        sparse_fill_empty_rows as sparse_fill_empty_rows,
    )
    from headrace.ops.sparse.sparse_arranging import sparse_mask as sparse_mask
    from headrace.ops.sparse.sparse_arranging import sparse_merge as sparse_merge
    from headrace.ops.sparse.sparse_arranging import sparse_reorder as sparse_reorder
    from headrace.ops.sparse.sparse_arranging import sparse_reset_shape as sparse_reset_shape
    from headrace.ops.sparse.sparse_arranging import sparse_reshape as sparse_reshape
    from headrace.ops.sparse.sparse_arranging import sparse_retain as sparse_retain
    from headrace.ops.sparse.sparse_arranging import sparse_slice as sparse_slice
    from headrace.ops.sparse.sparse_arranging import sparse_split as sparse_split
    from headrace.ops.sparse.sparse_arranging import sparse_to_indicator as sparse_to_indicator
    from headrace.ops.sparse.sparse_arranging import sparse_transpose as sparse_transpose
    from headrace.ops.sparse.sparse_tensor import SparseTensor as SparseTensor
    from headrace.ops.sparse.sparse_tensor import SparseTensorValue as SparseTensorValue
    from headrace.ops.sparse.sparse_tensor import (
        convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices,
    )
    from headrace.ops.sparse.sparse_tensor import (
        convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
    )
    from headrace.ops.sparse.sparse_tensor import sparse_placeholder as sparse_placeholder
    from headrace.ops.sparse.sparse_tensor import (
        sparse_tensor_dense_matmul as sparse_tensor_dense_matmul,
    )
    from headrace.ops.sparse.sparse_tensor import sparse_tensor_to_dense as sparse_tensor_to_dense
    from headrace.ops.sparse.sparse_tensor import sparse_to_dense as sparse_to_dense
    from headrace.ops.strings.string_encoding import decode_base64 as decode_base64
    from headrace.ops.strings.string_encoding import encode_base64 as encode_base64
    from headrace.ops.strings.string_encoding import string_to_hash_bucket as string_to_hash_bucket
    from headrace.ops.strings.string_encoding import (
        string_to_hash_bucket_fast as string_to_hash_bucket_fast,
    )
    from headrace.ops.strings.string_encoding import (
        string_to_hash_bucket_strong as string_to_hash_bucket_strong,
    )
    from headrace.ops.strings.string_numbers import as_string as as_string
    from headrace.ops.strings.string_numbers import decode_raw as decode_raw
    from headrace.ops.strings.string_numbers import string_to_number as string_to_number
    from headrace.ops.strings.string_ops import reduce_join as reduce_join
    from headrace.ops.strings.string_ops import regex_replace as regex_replace
    from headrace.ops.strings.string_ops import string_join as string_join
    from headrace.ops.strings.string_ops import string_split as string_split
    from headrace.ops.strings.string_ops import string_strip as string_strip
    from headrace.ops.strings.string_ops import substr as substr
    from headrace.variables.make_template import make_template as make_template
    from headrace.variables.partitioners import (
        create_partitioned_variables as create_partitioned_variables,
    )
    from headrace.variables.partitioners import fixed_size_partitioner as fixed_size_partitioner
    from headrace.variables.partitioners import (
        min_max_variable_partitioner as min_max_variable_partitioner,
    )
    from headrace.variables.partitioners import (
        variable_axis_size_partitioner as variable_axis_size_partitioner,
    )
    AttrValue: _Any
    ConfigProto: _Any
    Event: _Any
    GPUOptions: _Any
    GraphDef: _Any
    GraphOptions: _Any
    HistogramProto: _Any
    LogMessage: _Any
    MetaGraphDef: _Any
    NameAttrList: _Any
    NodeDef: _Any
    OptimizerOptions: _Any
    RunMetadata: _Any
    RunOptions: _Any
    SessionLog: _Any
    Summary: _Any
    SummaryMetadata: _Any
    TensorInfo: _Any
    __all__ += [
        "AttrValue", "CXX11_ABI_FLAG", "ConditionalAccumulator", "ConditionalAccumulatorBase",
        "ConfigProto", "Event", "FIFOQueue", "FixedLenFeature", "FixedLenSequenceFeature",
        "FixedLengthRecordReader", "GPUOptions", "GradientTape", "GraphDef", "GraphOptions",
        "HistogramProto", "IdentityReader", "IndexedSlicesSpec", "LogMessage", "MONOLITHIC_BUILD",
        "MetaGraphDef", "Module", "NameAttrList", "NodeDef", "OptimizerOptions", "PaddingFIFOQueue",
        "PriorityQueue", "QueueBase", "RaggedTensor", "RaggedTensorSpec", "RandomShuffleQueue",
        "ReaderBase", "RunMetadata", "RunOptions", "SessionLog", "SparseConditionalAccumulator",
        "SparseFeature", "SparseTensorSpec", "Summary", "SummaryMetadata", "TFRecordReader",
        "TensorArraySpec", "TensorInfo", "TensorSpec", "TextLineReader", "TypeSpec",
        "VarLenFeature", "WholeFileReader", "app", "audio", "autograph", "compat", "config",
        "contrib", "data", "decode_compressed", "decode_csv", "deserialize_many_sparse",
        "distribute", "distributions", "estimator", "fake_quant_with_min_max_args",
        "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars",
        "fake_quant_with_min_max_vars_gradient", "fake_quant_with_min_max_vars_per_channel",
        "fake_quant_with_min_max_vars_per_channel_gradient", "feature_column", "flags", "function",
        "get_logger", "gfile", "graph_util", "image", "import_graph_def", "layers",
        "load_file_system_library", "load_library", "load_op_library", "logging", "lookup",
        "make_ndarray", "make_tensor_proto", "matching_files", "metrics", "parse_example",
        "parse_single_example", "parse_single_sequence_example", "parse_tensor", "profiler",
        "py_function", "python", "python_io", "quantization", "queue", "ragged", "raw_ops",
        "read_file", "recompute_grad", "resource_loader", "saved_model", "serialize_many_sparse",
        "serialize_sparse", "serialize_tensor", "sets", "summary", "sysconfig", "test", "timestamp",
        "tpu", "wrap_function", "write_file",
    ]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("", __name__, MESSAGES, LAZY_MODULES, LAZY_NAMES)


def _load_data_ops() -> None:
    from headrace.data.ops.load_dataset_ops import load_ops

    load_ops()


LOADERS.insert(0, _load_data_ops)  # asked last: few programs look a dataset op up by its name


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY_MODULES, *LAZY_NAMES, *MESSAGES})
