"""Primitives for arrays that stay where they are: everything about a call is settled before the
first one is made.

A plan that is bound to shapes (lower/bound_runs.py) keeps its values in the same memory from run to
run. Each of its steps then is a primitive with its arguments, and running it is one call of C. The
calls that are made here belong to their caller alone; ``aim`` says where an argument lies, and is
called again only for weights that have changed.

    >>> call = fixed.product(x, w, y, bias=True, activation=None, add=None, packed=packed)
    >>> for place, array in enumerate((x, packed.data, y, bias)): call.aim(place, array)
    >>> fixed.execute(*fixed.instruction(call))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.kernels.numpy.im2col import Geometry
from headrace.kernels.numpy.pooling_kernels import Axes
from headrace.kernels.onednn import conv_primitives as conv
from headrace.kernels.onednn import lstm_primitives as lstm
from headrace.kernels.onednn import pool_primitives as pool
from headrace.kernels.onednn import product_primitives as products
from headrace.kernels.onednn.elementwise_primitives import Elementwise
from headrace.kernels.onednn.memory_formats import Reorder, implementation
from headrace.kernels.onednn.norm_primitives import AFFINE
from headrace.kernels.onednn.onednn_library import (
    ADD,
    DST,
    INFERENCE,
    POST_OP,
    SCALE,
    SHIFT,
    SRC,
    SRC1,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32, Call, aligned, contiguous_float32
from headrace.kernels.onednn.softmax_primitives import SOFTMAX, mend

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.onednn.product_primitives import Packed

__all__ = ["Fixed"]


def _halves(name: str, number: Array) -> bool:
    """Multiplication with a power of two, which is exact."""
    return name == "Mul" and abs(math.frexp(float(number))[0]) == 0.5


def _flattened(arg: Array, rows: int, columns: int) -> Array | None:
    """A number as it is; an array for all examples as one row; None for others."""
    if getattr(arg, "size", 1) == 1:
        return arg
    fits = arg.shape[-2:] == (rows, columns) and arg.size == rows * columns
    return arg.reshape(1, -1) if fits and contiguous_float32(arg) else None


class Fixed:
    """Makers of calls; each answers None where oneDNN has no fast code for such arrays."""

    def __init__(self, api: Api, makers: products.Products, layers: lstm.Lstms) -> None:
        self.api = api
        self.products, self.layers = makers, layers
        self.elementwise = Elementwise(api)
        self.execute = api.c.dnnl_primitive_execute
        self.set_handle = api.c.dnnl_memory_set_data_handle
        self.buffer = api.ffi.from_buffer
        self.aligned = aligned
        self.mend = mend
        self.score_steps = products.score_steps

    def instruction(self, call: Call) -> tuple[Any, Any, int, Any]:
        """The arguments of ``execute``."""
        return call.primitive, self.api.stream, len(call.arguments), call.arguments

    def give_scratch(self, calls: Iterable[Call]) -> Array | None:
        """One block of scratch memory for calls that run one after the other.

        To be held as long as they are.
        """
        wanting = [c for c in calls if c.scratch_size]
        block = aligned(max([c.scratch_size for c in wanting], default=0))
        for call in wanting:
            self.set_handle(call.scratch, self.api.pointer(block))
        return block

    def product(
        self,
        x: Array,
        w: Array,
        out: Array,
        bias: bool,
        activation: str | None,
        add: bool,
        packed: Packed | None,
    ) -> Call | None:
        """``activation(x @ w + bias) + add``.

        Places: x, weights, out, add, bias. ``packed`` is what ``pack`` gave for w, or None.
        """
        if x.dtype is not FLOAT32 or (packed is None and w.dtype is not FLOAT32):
            return None
        after = (("binary", ADD, out.shape),) if add else ()
        steps = None if packed is not None else tuple(s // 4 for s in w.strides)
        left = tuple(s // 4 for s in x.strides)
        case = products._Case(
            x.shape, left, w.shape, steps, "float32", bias, activation, None, after
        )
        made = self.products
        if packed is None:
            return made._make(case)
        if packed.pixels and left != (w.shape[0], 1):
            return None
        return made.make_with_packed(case, packed)

    def same_layout(self, packed: Packed, other: Packed) -> bool:
        """Whether weights that were packed again lie as the first did."""
        a, b = self.products.layout_of(packed), self.products.layout_of(other)
        return bool(self.api.c.dnnl_memory_desc_equal(a, b))

    def batch_product(
        self, a: Array, b: Array, out: Array | None = None, after: tuple[Any, ...] = ()
    ) -> tuple[Call, tuple[int, ...]] | None:
        """``a @ b`` over leading axes, and the result's shape.

        Places: a, b, out, and arrays of ``after``.
        """
        into = None if out is None else (out.shape, out.strides)
        return self.products._make_batch((a.shape, a.strides, b.shape, b.strides, into, after))

    def masked(
        self, shape: tuple[int, ...], steps: Sequence[tuple[str, Any]]
    ) -> tuple[tuple[Any, ...], Call, list[Any]] | None:
        """Steps over scores of many examples, with arrays that are the same for each: what the
        product does, and the call for the rest.

        Places: scores, the first array, scores, further arrays (which are given too).
        """
        first = next((n for n, (_, arg) in enumerate(steps) if getattr(arg, "size", 1) > 1), None)
        if first is None:
            return None
        before, (name, array), behind = list(steps[:first]), steps[first], list(steps[first + 1 :])
        if name == "Mul" and len(before) == 1 and _halves(*before[0]):
            before, behind = [], [*before, *behind]  # the same bits in either order
        rows, columns = shape[-2:]
        flat = [(n, _flattened(a, rows, columns)) for n, a in [(name, array), *behind]]
        if any(a is None for _, a in flat):
            return None
        head = products.score_steps(before, len(shape))
        rest = products.score_steps(flat[1:], 2)
        kind = products.ARRAY_STEPS.get(name)
        if head is None or rest is None or kind is None:
            return None
        api = self.api
        scores, mask = (
            api.tensor((math.prod(shape[:-2]), rows * columns)),
            api.tensor((1, rows * columns)),
        )
        after = [(*s[:2], mask) if s[0] == "binary" else s for s in rest[0]]
        description = api.description("binary", kind, scores, mask, scores, api.attributes(after))
        if implementation(api, description).startswith("ref"):
            return None
        places = [(SRC, scores), (SRC1, mask), (DST, scores)]
        places += [
            (POST_OP * (n + 1) | SRC1, mask) for n, s in enumerate(after) if s[0] == "binary"
        ]
        return head[0], Call(api, description, places), [flat[0][1], *rest[1]]

    def conv(
        self,
        x: Array,
        w: Array,
        g: Geometry,
        bias: bool,
        add: bool,
        relu: bool,
        keeps_nan: bool = False,
    ) -> conv.Step | None:
        """Places: x, filter, out, bias, add.

        ``enter`` and ``leave`` say which of them have to be brought into another order.
        """
        case = conv.forward_case(x.shape, w, g, 1, bias, add, relu, keeps_nan)
        try:
            return conv.Step(self.api, case) if case.large else None
        except RuntimeError:
            return None

    def pool(self, kind: str, x: Array, axes: Axes) -> tuple[Call, tuple[int, ...]] | None:
        """Maximum ("max") or average ("avg") of a channels-last array, and the result's shape.

        Places: x, out.
        """
        try:
            return pool.forward_of(self.api, kind, x, axes)
        except RuntimeError:
            return None

    def layer_norm(self, rows: int, columns: int, epsilon: float) -> Call:
        """Places: x, out, scale, offset."""
        api = self.api
        desc, vector = api.tensor((rows, columns)), api.vector(columns)
        description = api.description(
            "layer_normalization_forward",
            INFERENCE,
            desc,
            desc,
            api.vector(rows),
            epsilon,
            AFFINE,
            api.attributes(),
        )
        return Call(api, description, [(SRC, desc), (DST, desc), (SCALE, vector), (SHIFT, vector)])

    def softmax(self, rows: int, columns: int) -> Call:
        """Places: x, out. What it gives for rows with NaN is to be mended."""
        api = self.api
        desc = api.tensor((rows, columns))
        description = api.description(
            "softmax_forward", INFERENCE, SOFTMAX, desc, desc, 1, api.attributes()
        )
        return Call(api, description, [(SRC, desc), (DST, desc)])

    def gradient(self, op: str, size: int) -> Call:
        """Of an element-wise function; places: where it is taken, what comes back, out."""
        return self.elementwise._make_gradient((op, size))

    def copy(self, source: Array, target: Array) -> Call:
        """A copy between two orders of memory; places: source, target."""
        api = self.api
        ends = [api.tensor(a.shape, [s // 4 for s in a.strides]) for a in (source, target)]
        return Reorder(api, *ends)

    def lstm(self, steps: int, rows: int, inputs: int, hidden: int) -> tuple[Call, int] | None:
        """Places: x, h, c, weights of the input, of the state, bias, outputs, last h, last c, and
        so many bytes more.
        """
        made = self.layers._make(lstm._Key(steps, rows, inputs, hidden))
        return None if made is None else (made.call, made.notes_size)
