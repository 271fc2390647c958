"""The operations that layers are made of, under one name: ``from headrace.layers import layer_ops
as ops``.

Tensors get their operators (``a * b``) when the API is imported, which type checkers do not see.
Here every function is typed so that its results may be used with operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


if TYPE_CHECKING:
    from headrace.core.convert import *
    from headrace.core.infer import *
    from headrace.ops.array.array_shape import *
    from headrace.ops.array.basic import *
    from headrace.ops.array.broadcast_shapes import *
    from headrace.ops.array.casting import *
    from headrace.ops.array.edit_distances import *
    from headrace.ops.array.filling import *
    from headrace.ops.array.gathering import *
    from headrace.ops.array.image_patches import *
    from headrace.ops.array.joining import *
    from headrace.ops.array.masking import *
    from headrace.ops.array.one_hot import *
    from headrace.ops.array.padding import *
    from headrace.ops.array.partitioning import *
    from headrace.ops.array.ranges import *
    from headrace.ops.array.reversing import *
    from headrace.ops.array.selecting import *
    from headrace.ops.array.slicing import *
    from headrace.ops.array.sorting import *
    from headrace.ops.array.space_to_depth import *
    from headrace.ops.array.uniques import *
    from headrace.ops.control.assertions import *
    from headrace.ops.control.case_branches import *
    from headrace.ops.control.control_flow import *
    from headrace.ops.control.dependencies import *
    from headrace.ops.control.functional import *
    from headrace.ops.control.tensor_array import *
    from headrace.ops.control.while_loops import *
    from headrace.ops.linalg.contraction import *
    from headrace.ops.linalg.matmul import *
    from headrace.ops.math.add_n import *
    from headrace.ops.math.arg_reductions import *
    from headrace.ops.math.binary import *
    from headrace.ops.math.clip import *
    from headrace.ops.math.comparison import *
    from headrace.ops.math.cumulative import *
    from headrace.ops.math.reductions import *
    from headrace.ops.math.unary import *
    from headrace.ops.nn.activations import *
    from headrace.ops.nn.bias import *
    from headrace.ops.nn.conv_transposed_functions import *
    from headrace.ops.nn.convolution import *
    from headrace.ops.nn.cross_entropy import *
    from headrace.ops.nn.dropout import *
    from headrace.ops.nn.embedding import *
    from headrace.ops.nn.local_response import *
    from headrace.ops.nn.moments import *
    from headrace.ops.nn.normalization import *
    from headrace.ops.nn.sparse_cross_entropy import *
    from headrace.ops.random.random_ops import *


def __getattr__(name: str) -> Any:
    for module in _MODULES:
        found = getattr(module, name, None)
        if found is not None and not name.startswith("_"):
            globals()[name] = found
            return found
    raise AttributeError(f"layers use no operation {name!r}")
