"""The operations that layers are made of, under one name: ``from headrace.layers import layer_ops
as ops``.

Tensors get their operators (``a * b``) when the API is imported, which type checkers do not see.
Here every function is typed so that its results may be used with operators.
"""

from __future__ import annotations

from typing import Any

from headrace.core import convert as _convert
from headrace.core import infer as _infer
from headrace.ops.array import array_shape as _shape
from headrace.ops.array import basic as _basic
from headrace.ops.array import broadcast_shapes as _broadcast
from headrace.ops.array import casting as _casting
from headrace.ops.array import edit_distances as _edit_distances
from headrace.ops.array import filling as _filling
from headrace.ops.array import gathering as _gathering
from headrace.ops.array import image_patches as _image_patches
from headrace.ops.array import joining as _joining
from headrace.ops.array import masking as _masking
from headrace.ops.array import one_hot as _one_hot
from headrace.ops.array import padding as _padding
from headrace.ops.array import partitioning as _partitioning
from headrace.ops.array import ranges as _ranges
from headrace.ops.array import reversing as _arranging
from headrace.ops.array import selecting as _selecting
from headrace.ops.array import slicing as _slicing
from headrace.ops.array import sorting as _sorting
from headrace.ops.array import space_to_depth as _space_arranging
from headrace.ops.array import uniques as _uniques
from headrace.ops.control import assertions as _assertions
from headrace.ops.control import case_branches as _case_branches
from headrace.ops.control import control_flow as _control
from headrace.ops.control import dependencies as _dependencies
from headrace.ops.control import functional as _functional
from headrace.ops.control import tensor_array as _tensor_array
from headrace.ops.control import while_loops as _while_loops
from headrace.ops.linalg import contraction as _contraction
from headrace.ops.linalg import matmul as _matmul
from headrace.ops.math import add_n as _sums
from headrace.ops.math import arg_reductions as _arg_reductions
from headrace.ops.math import binary as _binary
from headrace.ops.math import clip as _clip
from headrace.ops.math import comparison as _comparison
from headrace.ops.math import cumulative as _cumulative
from headrace.ops.math import reductions as _reductions
from headrace.ops.math import unary as _unary
from headrace.ops.nn import activations as _activations
from headrace.ops.nn import bias as _bias
from headrace.ops.nn import conv_transposed_functions as _conv_transposed_functions
from headrace.ops.nn import convolution as _convolution
from headrace.ops.nn import cross_entropy as _cross_entropy
from headrace.ops.nn import dropout as _dropout
from headrace.ops.nn import embedding as _embedding
from headrace.ops.nn import local_response as _local_response
from headrace.ops.nn import moments as _moments
from headrace.ops.nn import normalization as _normalization
from headrace.ops.nn import sparse_cross_entropy as _sparse_cross_entropy
from headrace.ops.random import random_ops as _random

_MODULES = (
    _convert,
    _infer,
    _arranging,
    _space_arranging,
    _image_patches,
    _shape,
    _basic,
    _casting,
    _gathering,
    _masking,
    _joining,
    _padding,
    _filling,
    _broadcast,
    _ranges,
    _selecting,
    _slicing,
    _assertions,
    _control,
    _dependencies,
    _functional,
    _tensor_array,
    _contraction,
    _matmul,
    _binary,
    _sums,
    _clip,
    _comparison,
    _reductions,
    _arg_reductions,
    _cumulative,
    _unary,
    _activations,
    _dropout,
    _convolution,
    _cross_entropy,
    _sparse_cross_entropy,
    _bias,
    _embedding,
    _normalization,
    _random,
    _one_hot,
    _partitioning,
    _uniques,
    _sorting,
    _edit_distances,
    _while_loops,
    _case_branches,
    _moments,
    _local_response,
    _conv_transposed_functions,
)


def __getattr__(name: str) -> Any:
    for module in _MODULES:
        found = getattr(module, name, None)
        if found is not None and not name.startswith("_"):
            globals()[name] = found
            return found
    raise AttributeError(f"layers use no operation {name!r}")
