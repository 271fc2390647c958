"""Matrix products by the matmul primitive: batches, weights packed once, bias and activation in the
same pass.

``dnnl_sgemm`` (matmul.py) is as fast for a single plain product; the primitive wins for batches of
products, and for weights that were packed: ``pack`` brings them into the layout that the product
reads, once, and in bfloat16, int8 or int7 (bytes of which 7 bits are used) if that is asked for.
weight_types.py says what a CPU can do. An integer product quantizes its left side as it comes, with
one scale; weights have a scale for each column.

    >>> w = products.pack(weights, rows=128)
    >>> y = products.product(x, w, bias, "relu")
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.onednn import pixel_products as pixels
from headrace.kernels.onednn.memory_formats import Reorder, implementation
from headrace.kernels.onednn.onednn_library import (
    ADD,
    BFLOAT16,
    BIAS,
    DST,
    FLOAT,
    INT8,
    LINEAR,
    MUL,
    POST_OP,
    SRC,
    SRC1,
    SUB,
    WEIGHTS,
    WEIGHTS_DESC,
    Api,
    Refused,
)
from headrace.kernels.onednn.primitive import FLOAT32, Cache, Call, aligned, contiguous_float32
from headrace.kernels.onednn.product_choices import choices_for
from headrace.kernels.onednn.weight_types import FEW_ROWS, LEVELS, MAX_INNER, choose_way
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["ACTIVATIONS", "Packed", "Products", "score_steps"]

#: Element-wise functions that a product applies to its result: (kind, alpha, beta). Two differ from
#: NumPy's at odd values: relu gives 0 for NaN, gelu_erf NaN for infinity.
ACTIVATIONS: dict[str, tuple[int, float, float]] = {
    "relu": (0x20, 0.0, 0.0),
    "tanh": (0x21, 0.0, 0.0),
    "elu": (0x22, 1.0, 0.0),
    "sigmoid": (0x29, 0.0, 0.0),
    "gelu": (0x2B, 0.0, 0.0),
    "swish": (0x2C, 1.0, 0.0),
    "gelu_erf": (0x31, 0.0, 0.0),
    # x * clip(3e38 x, 0, 1): relu that keeps NaN. Negative numbers give -0, minus infinity NaN.
    "hidden_relu": (0x34, 3e38, 0.0),
}
KINDS = {"float32": FLOAT, "bfloat16": BFLOAT16, "int8": INT8, "int7": INT8}
#: Primitives kept for plain arrays, and for each packed weight.
MAX_KEPT, MAX_KEPT_PACKED = 128, 8
_SCALES = 4096

#: What may be done to scores: with a number, and with an array.
_LINEAR_STEPS: dict[str, Callable[[float], tuple[Any, ...]]] = {
    "*": lambda x: ("eltwise", LINEAR, x, 0.0),
    "/": lambda x: ("eltwise", LINEAR, 1 / x if x else float("inf"), 0.0),
    "+": lambda x: ("eltwise", LINEAR, 1.0, x),
    "-": lambda x: ("eltwise", LINEAR, 1.0, -x),
}
ARRAY_STEPS = {"*": MUL, "+": ADD, "-": SUB}


class _Case(NamedTuple):
    """What a product's primitive is made for.

    Strides count elements, those of packed weights are None.
    """

    left: tuple[int, ...]
    left_strides: tuple[int, ...]
    right: tuple[int, ...]
    right_strides: tuple[int, ...] | None
    kind: str = "float32"
    bias: bool = False
    activation: str | None = None
    out_strides: tuple[int, ...] | None = None
    after: tuple[tuple[Any, ...], ...] = ()
    pixels: bool = False  # as a convolution (pixel_products.py)


#: Shapes and strides (in bytes) of both sides, of the target if there is one, and what is done to
#: the result.
_BatchKey = tuple[
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[Any, Any] | None,
    tuple[Any, ...],
]


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights in oneDNN's layout, with the primitives that use them."""

    shape: tuple[int, int]
    kind: str
    data: Any
    owner: Any  # the description that owns the layout
    scales: Any = None  # int8: what turns a column back into floats
    pixels: bool = False  # the filter of a convolution (pixel_products.py)
    calls: Cache[Any, Call | None] = field(default_factory=lambda: Cache(MAX_KEPT_PACKED))

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


class Products:
    """Products of float32 arrays; every function answers None where the arrays do not suit."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.choices = choices_for(api.isa)
        self.calls: Cache[_Case, Call | None] = Cache(MAX_KEPT)
        self.batched: Cache[_BatchKey, tuple[Call, tuple[int, ...]] | None] = Cache(MAX_KEPT)

    # plain and batched ----------------------------------------------------------------------

    def batch_matmul(self, a: Array, b: Array, out: Array | None = None) -> Array | None:
        """``a @ b`` over leading axes, which broadcast."""
        if a.dtype is not FLOAT32 or b.dtype is not FLOAT32:
            return None
        into = None if out is None else (out.shape, out.strides)
        made = self.batched.get(
            (a.shape, a.strides, b.shape, b.strides, into, ()), self._make_batch
        )
        if made is None:
            return None
        call, shape = made
        if out is None:
            out = buffers.empty(shape, np.float32)
        elif out.dtype is not FLOAT32:
            return None
        call(a, b, out)
        return out

    def scores(self, q: Array, keys: Array, steps: Sequence[tuple[str, Any]]) -> Array | None:
        """``q @ keys`` over leading axes and then, in the same pass, ``steps``.

        Numbers or arrays that multiply or are added.
        """
        found = score_steps(steps, q.ndim)
        if found is None:
            return None
        after, arrays = found
        key = (q.shape, q.strides, keys.shape, keys.strides, None, after)
        made = self.batched.get(key, self._make_batch)
        if made is None:
            return None
        out = buffers.empty(made[1], np.float32)
        made[0](q, keys, out, *arrays)
        return out

    def _make_batch(self, key: _BatchKey) -> tuple[Call, tuple[int, ...]] | None:
        """The primitive for two arrays that lie so, and its result's shape."""
        a, a_strides, b, b_strides, into, after = key
        rank = max(len(a), len(b))
        left, right = _raised(a, a_strides, rank), _raised(b, b_strides, rank)
        if left is None or right is None:
            return None
        if any(p != q and 1 not in (p, q) for p, q in zip(left[0][:-2], right[0][:-2])):
            return None
        case = _Case(left[0], left[1], right[0], right[1], after=after)
        shape = _result_shape(case)
        if into is not None:
            if into[0] != shape or into[1][-1] != 4:
                return None
            case = case._replace(out_strides=tuple([s // 4 for s in into[1]]))
        call = self._make(case)
        return None if call is None else (call, shape)

    def matmul_bias(self, a: Array, b: Array, bias: Array) -> Array | None:
        """``a @ b + bias`` in one pass, where that is faster.

        Right sides that stay in a core's cache.
        """
        rows, elements = self.choices.bias_rows, self.choices.bias_elements
        if a.shape[0] < rows or b.size > elements or not contiguous_float32(a, b, bias):
            return None
        case = _Case(a.shape, (a.shape[1], 1), b.shape, (b.shape[1], 1), bias=True)
        out = buffers.empty((a.shape[0], b.shape[1]), np.float32)
        call = self.calls.get(case, self._make)
        assert call is not None  # a bias is always possible
        call(a, b, out, bias)
        return out

    # packed ---------------------------------------------------------------------------------

    def pack(
        self,
        weights: Array,
        rows: int,
        kind: str = "float32",
        bias: bool = True,
        activation: str | None = None,
    ) -> Packed | None:
        """Weights (columns in, columns out) for products with about ``rows`` rows, as float32,
        bfloat16, int8 or int7.

        None where oneDNN has no fast code for them on this machine, or its result could be wrong.
        """
        api = self.api
        if weights.ndim != 2 or weights.dtype is not FLOAT32 or not weights.size:
            return None
        k, n = weights.shape
        if kind in LEVELS and (k > MAX_INNER or not self._exact(kind)):
            return None
        case = _Case((rows, k), (k, 1), (k, n), None, kind, bias, activation)
        if self.as_pixels(rows, weights.shape, kind):
            found = self._pack_filter(weights, case._replace(pixels=True))
            if found is not None:
                return found
        description = self._fast_description(case, api.free_tensor((k, n), KINDS[kind]))
        if description is None:
            return None
        layout = api.query(description, WEIGHTS_DESC)
        plain, scales = _as_kind(np.ascontiguousarray(weights), kind)
        data = aligned(api.c.dnnl_memory_desc_get_size(layout))
        Reorder(api, api.tensor((k, n), None, KINDS[kind]), layout)(plain, data)
        return Packed((k, n), kind, data, description, scales)

    def as_pixels(self, rows: int, shape: tuple[int, ...], kind: str = "float32") -> bool:
        """Whether so many rows times such packed weights are a convolution on this CPU."""
        return kind == "float32" and len(shape) == 2 and self.choices.as_pixels(rows, *shape)

    def _pack_filter(self, weights: Array, case: _Case) -> Packed | None:
        api = self.api
        k, n = weights.shape
        description = self._fast_description(case, api.free_tensor(pixels.filter_dims(k, n)))
        if description is None:
            return None
        layout = api.query(description, WEIGHTS_DESC)
        data = aligned(api.c.dnnl_memory_desc_get_size(layout))
        plain = np.ascontiguousarray(weights)
        Reorder(api, pixels.plain_filter(api, k, n), layout)(plain, data)
        return Packed((k, n), case.kind, data, description, pixels=True)

    def _fast_description(self, case: _Case, weights: object) -> Any:
        """None where oneDNN refuses the case or has only slow code for it."""
        try:
            description = self._description(case, weights)
        except Refused:
            return None
        return None if _slow(self.api, description, case) else description

    def _exact(self, kind: str) -> bool:
        """Whether sums of products of such integers are exact with this CPU's instructions."""
        return kind == "int7" or choose_way(kind, self.api.isa).kind == "int8"

    def product(
        self,
        a: Array,
        weights: Packed,
        bias: Array | None = None,
        activation: str | None = None,
        out: Array | None = None,
    ) -> Array | None:
        """``activation(a @ weights + bias)`` in float32 for a float32 matrix ``a`` and packed
        weights.
        """
        k, n = weights.shape
        if a.dtype is not FLOAT32 or a.ndim != 2 or a.shape[1] != k or not a.size:
            return None
        if bias is not None and not (bias.shape == (n,) and contiguous_float32(bias)):
            return None
        if out is None:
            out = buffers.empty((a.shape[0], n), np.float32)
        elif not out.flags.c_contiguous:
            return None
        key = (a.shape[0], bias is not None, activation)
        call = weights.calls.get(key, partial(self._make_packed, weights))
        if call is None:
            return None
        left, scale = _as_kind_of_left(np.ascontiguousarray(a), weights.kind)
        if left is None:
            return None
        arrays = [left, weights.data, out]
        if bias is not None:
            arrays.append(bias)
        if scale is not None:
            arrays += [scale, weights.scales]
        call(*arrays)
        return out

    # primitives -----------------------------------------------------------------------------

    def _description(self, case: _Case, weights: Any) -> Any:
        api = self.api
        shape = _result_shape(case)
        null = api.ffi.NULL
        after: list[Any] = []
        if case.activation is not None:
            after.append(("eltwise", *ACTIVATIONS[case.activation]))
        if case.pixels:
            steps = [*after, *case.after]
            return pixels.describe(api, case.left, shape[-1], weights, case.bias, steps)
        for step in case.after:
            binary = step[0] == "binary"
            after.append(("binary", step[1], api.tensor(step[2])) if binary else step)
        scales = [(SRC, 0), (WEIGHTS, 2)] if case.kind in LEVELS else []
        bias = api.tensor((1, shape[-1])) if case.bias else null
        left = api.tensor(case.left, case.left_strides, KINDS[case.kind])
        attributes = api.attributes(after, scales)
        out = api.tensor(shape, case.out_strides)
        return api.description("matmul", left, weights, bias, out, attributes)

    def _make(self, case: _Case) -> Call | None:
        weights = self.api.tensor(case.right, case.right_strides)
        description = self._description(case, weights)
        special = case.after or case.out_strides is not None
        if special and implementation(self.api, description).startswith("ref"):
            return None
        return self._call(case, description, weights, None)

    def layout_of(self, packed: Packed) -> Any:
        """How packed weights lie; it belongs to them."""
        return self.api.query(packed.owner, WEIGHTS_DESC)

    def _make_packed(self, packed: Packed, key: tuple[int, bool, str | None]) -> Call | None:
        k, n = packed.shape
        case = _Case((key[0], k), (k, 1), (k, n), None, packed.kind, key[1], key[2])
        return self.make_with_packed(case, packed)

    def make_with_packed(self, case: _Case, packed: Packed) -> Call | None:
        """The product of a case with packed weights; None where there is no fast code."""
        case = case._replace(pixels=packed.pixels)
        weights = self.layout_of(packed)
        description = self._fast_description(case, weights)
        if description is None:
            return None
        return self._call(case, description, weights, packed.owner)

    def _call(self, case: _Case, description: object, weights: object, keep: object) -> Call:
        api = self.api
        shape = _result_shape(case)
        tensor = partial(pixels.as_image, api) if case.pixels else api.tensor
        if case.pixels:
            ends = [tensor(case.left), tensor(shape)]
        else:
            left = api.tensor(case.left, case.left_strides, KINDS[case.kind])
            ends = [left, api.tensor(shape, case.out_strides)]
        places = [(SRC, ends[0]), (WEIGHTS, weights), (DST, ends[1])]
        for n, step in enumerate(case.after):
            if step[0] == "binary":
                places.append((POST_OP * (n + 1) | SRC1, tensor(step[2])))
        if case.bias:
            places.append((BIAS, api.tensor((1, shape[-1])[case.pixels :])))
        if case.kind in LEVELS:
            places.append((_SCALES | SRC, api.vector(1)))
            places.append((_SCALES | WEIGHTS, api.vector(shape[-1])))
        return Call(api, description, places, keep)


def score_steps(
    steps: Sequence[tuple[str, Any]], rank: int
) -> tuple[tuple[Any, ...], list[Any]] | None:
    """What is done after a product in its own pass, and the arrays that it takes.

    None if that is not possible.
    """
    after: list[tuple[Any, ...]] = []
    arrays = []
    for name, arg in steps:
        if getattr(arg, "size", 1) == 1:
            after.append(_LINEAR_STEPS[name](float(arg)))
        elif arg.ndim == rank and name in ARRAY_STEPS and contiguous_float32(arg):
            after.append(("binary", ARRAY_STEPS[name], arg.shape))
            arrays.append(arg)
        else:
            return None
    return tuple(after), arrays


def _result_shape(case: _Case) -> tuple[int, ...]:
    batch = tuple(max(p, q) for p, q in zip(case.left[:-2], case.right[:-2]))
    return (*batch, case.left[-2], case.right[-1])


def _raised(
    shape: tuple[int, ...], steps: tuple[int, ...], rank: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shape and strides (in elements) with axes of length 1 in front.

    None for memory that a product cannot walk.
    """
    strides = []
    for size, stride in zip(shape, steps):
        if size == 0 or stride % 4 or (size > 1 and stride <= 0):
            return None
        strides.append(stride // 4)
    if 1 not in strides[-2:]:
        return None
    more = rank - len(shape)
    outer = shape[0] * strides[0]
    return (1,) * more + shape, (outer,) * more + tuple(strides)


def _slow(api: Api, description: object, case: _Case) -> bool:
    if case.pixels:
        return not pixels.is_fast(api, description)
    name = implementation(api, description)
    if name.startswith("ref"):
        return True
    return case.kind == "bfloat16" and name.startswith("gemm") and case.left[0] > FEW_ROWS


def _bfloat16() -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16


def _as_kind(weights: Array, kind: str) -> tuple[Any, Any]:
    if kind == "float32":
        return weights, None
    if kind == "bfloat16":
        return weights.astype(_bfloat16()), None
    scales = np.maximum(np.abs(weights).max(0), np.float32(1e-30)) / np.float32(LEVELS[kind])
    return np.rint(weights / scales).astype(np.int8), scales


def _as_kind_of_left(a: Array, kind: str) -> tuple[Any, Any]:
    """The left side as the weights' kind; int8 with one scale for all of it."""
    if kind == "float32":
        return a, None
    if kind == "bfloat16":
        return a.astype(_bfloat16()), None
    largest = max(float(a.max()), -float(a.min()), 1e-30)
    if not math.isfinite(largest):
        return None, None  # such a row would spoil the others
    scale = np.array([largest / 127], np.float32)
    return np.rint(a * np.float32(127 / largest)).astype(np.int8), scale
