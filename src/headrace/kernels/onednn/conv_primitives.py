"""Convolutions of float32 arrays and their gradients, in any number of dimensions, with groups.

Images lie channels-last as NumPy has them; only filters are packed, into the order that the
primitive asks for. A filter is ``(*kernel, in / groups, out)``; with as many groups as channels it
is a depthwise one. A transposed convolution is the gradient by the input. Everything answers None
where oneDNN has no fast code or where the work is too small to gain.

    >>> y = convolutions.conv(x, w, geometry, bias=b, relu=True)  # max(0, conv(x, w) + b), one pass
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.numpy.bounds import is_bounded
from headrace.kernels.numpy.im2col import Geometry
from headrace.kernels.onednn.conv_layouts import blocks_win
from headrace.kernels.onednn.memory_formats import Layouts, Reorder, channels_last, implementation
from headrace.kernels.onednn.onednn_library import (
    ADD,
    BIAS,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_DESC,
    DST,
    DST_DESC,
    POST_OP,
    RELU,
    SRC,
    SRC1,
    SRC_DESC,
    TRAINING,
    WEIGHTS,
    WEIGHTS_DESC,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32, Cache, Call
from headrace.kernels.onednn.product_primitives import ACTIVATIONS
from headrace.runtime import buffers
from headrace.runtime.cpu_features import cpu_class
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Convolutions", "Step", "forward_case"]

#: Primitives that a thread keeps.
MAX_KEPT = 256
#: Orders of filters that are told apart by comparison; further ones count as different.
MAX_ORDERS = 4096
#: Multiply-adds below which NumPy is as fast; windows of one pixel are a plain matrix product
#: there.
MIN_WORK, MIN_POINTWISE = 1 << 16, 1 << 21
_DIRECT = 1


class _Case(NamedTuple):
    """Everything that a primitive is made for."""

    what: str  # "forward", "input" or "filter": what is computed
    images: tuple[int, ...]  # shape of the input
    out: int  # output channels
    groups: int
    geometry: Geometry
    threads: int  # how the work is cut, which the last bits depend on
    bias: bool = False
    add: bool = False
    relu: bool = False
    keeps_nan: bool = False  # the relu gives NaN for NaN, and for minus infinity

    @property
    def filter_shape(self) -> tuple[int, ...]:
        return (*self.geometry.kernel, self.images[-1] // self.groups, self.out)

    @property
    def results(self) -> tuple[int, ...]:
        return (self.images[0], *self.geometry.out, self.out)

    @property
    def large(self) -> bool:
        work = math.prod(self.results) * math.prod(self.filter_shape[:-1])
        return work >= (MIN_POINTWISE if self.geometry.pointwise else MIN_WORK)


def wants_blocks(case: _Case, cpu: str) -> bool:
    """Whether a convolution is faster with channels in blocks, copies to and fro included
    (conv_layouts.py).
    """
    g = case.geometry
    if case.what == "filter" or case.groups != 1 or g.pointwise or len(g.out) != 2:
        return False
    if (case.what == "input" and max(g.strides) > 1) or case.images[0] < 2:
        return False
    return blocks_win(cpu, case.what, max(g.out), min(case.images[-1], case.out))


class Step:
    """The primitive for a case; its filter's own order, and the way there or back.

    Arrays that the primitive wants in another order than channels last are brought into it
    (``enter``) and back (``leave``): their place among the arguments, the way, and how many bytes
    they take there.
    """

    def __init__(self, api: Api, case: _Case) -> None:
        parts = _Parts(api, case)
        description, place = parts.description()
        if implementation(api, description).startswith("ref"):
            raise RuntimeError("oneDNN has only its reference code for this case")
        what = DIFF_WEIGHTS_DESC if case.what == "filter" else WEIGHTS_DESC
        own = api.query(description, what)
        self.order = (description, own)  # the description owns the filter's order
        self.order_number: int | None = None
        self.results = case.results
        self.filter_size = int(api.c.dnnl_memory_desc_get_size(own))
        self.call = Call(
            api, description, [(at, own if md is None else md) for at, md in place], parts
        )
        self.reorder: Reorder | None = None
        if not api.c.dnnl_memory_desc_equal(own, parts.plain):
            ends = (own, parts.plain) if case.what == "filter" else (parts.plain, own)
            self.reorder = Reorder(api, *ends, keep=description)
        self.enter: list[tuple[int, Reorder, int]] = []
        self.leave: tuple[int, Reorder, int] | None = None
        if parts.src is not parts.images:
            self._find_ways(api, parts, [at for at, _ in place])

    def _find_ways(self, api: Api, parts: _Parts, places: list[int]) -> None:
        size = api.c.dnnl_memory_desc_get_size
        result = DST if SRC in places else DIFF_SRC
        for n, at in enumerate(places):
            if at in (WEIGHTS, BIAS):
                continue
            of_images = at in (SRC, DIFF_SRC)
            plain, own = (parts.images, parts.src) if of_images else (parts.outputs, parts.dst)
            if at == result:
                self.leave = (n, Reorder(api, own, plain, parts), int(size(own)))
            else:
                self.enter.append((n, Reorder(api, plain, own, parts), int(size(own))))

    def __call__(self, *arrays: Array) -> None:
        if self.leave is None:
            self.call(*arrays)
            return
        inside = list(arrays)
        for place, way, size in self.enter:
            inside[place] = buffers.empty(size, np.uint8)
            way(arrays[place], inside[place])
        place, way, size = self.leave
        inside[place] = buffers.empty(size, np.uint8)
        self.call(*inside)
        way(inside[place], arrays[place])


class _Parts:
    """The descriptions that the three primitives of a convolution are made of."""

    def __init__(self, api: Api, case: _Case) -> None:
        self.api, self.case = api, case
        g, new = case.geometry, api.ffi.new
        self.images = self.src = api.tensor(*channels_last(case.images))
        self.outputs = self.dst = api.tensor(*channels_last(case.results))
        self.bias = api.tensor((case.out,)) if case.bias else api.ffi.NULL
        dims, strides = _filter_order(case)
        self.plain, self.weights = api.tensor(dims, strides), api.free_tensor(dims)
        rows = (
            g.strides,
            [d - 1 for d in g.dilations],
            [b for b, _ in g.pads],
            [a for _, a in g.pads],
        )
        self.windows = [new("int64_t[12]", list(row)) for row in rows]
        if wants_blocks(case, cpu_class(api.isa)):
            self._take_blocks()
        after: list[tuple[Any, ...]] = [("binary", ADD, self.dst)] if case.add else []
        if case.relu:
            kind = ACTIVATIONS["hidden_relu"] if case.keeps_nan else (RELU, 0.0, 0.0)
            after.append(("eltwise", *kind))
        self.attributes = api.attributes(after)

    def _take_blocks(self) -> None:
        """The order that the primitive would choose for itself."""
        api = self.api
        free = [api.free_tensor(channels_last(s)[0]) for s in (self.case.images, self.case.results)]
        self.chosen = api.description(
            "convolution_forward",
            TRAINING,
            _DIRECT,
            free[0],
            self.weights,
            api.ffi.NULL,
            free[1],
            *self.windows,
            api.attributes(),
        )
        self.src, self.dst = (api.query(self.chosen, what) for what in (SRC_DESC, DST_DESC))

    def description(self) -> tuple[Any, list[tuple[int, Any]]]:
        """The primitive's description, and its places.

        (argument, memory description), None for the packed filter.
        """
        make, windows, attr = self.api.description, self.windows, self.attributes
        forward = make(
            "convolution_forward",
            TRAINING,
            _DIRECT,
            self.src,
            self.weights,
            self.bias if self.case.what == "forward" else self.api.ffi.NULL,
            self.dst,
            *windows,
            attr,
        )
        if self.case.what == "forward":
            more = [(BIAS, self.bias)] if self.case.bias else []
            if self.case.add:
                more.append((POST_OP | SRC1, self.dst))
            return forward, [(SRC, self.src), (WEIGHTS, None), (DST, self.dst), *more]
        if self.case.what == "input":
            backward = make(
                "convolution_backward_data",
                _DIRECT,
                self.src,
                self.weights,
                self.dst,
                *windows,
                forward,
                attr,
            )
            return backward, [(DIFF_SRC, self.src), (WEIGHTS, None), (DIFF_DST, self.dst)]
        backward = make(
            "convolution_backward_weights",
            _DIRECT,
            self.src,
            self.weights,
            self.bias,
            self.dst,
            *windows,
            forward,
            attr,
        )
        more = [(DIFF_BIAS, self.bias)] if self.case.bias else []
        return backward, [(SRC, self.src), (DIFF_WEIGHTS, None), (DIFF_DST, self.dst), *more]


def forward_case(
    x_shape: tuple[int, ...],
    w: Array,
    g: Geometry,
    groups: int,
    bias: bool,
    add: bool,
    relu: bool,
    keeps_nan: bool = False,
) -> _Case:
    more = (bias, add, relu, keeps_nan)
    return _fold_width(_Case("forward", x_shape, w.shape[-1], groups, g, thread_count(), *more))


def _fold_width(case: _Case) -> _Case:
    """The same work with the width among the channels, if windows span the whole width.

    Networks over text have such windows: (words, embedding, 1) under (3, embedding, 1, filters).
    All arrays lie in memory as before, and sums are taken over many channels instead of one, for
    which oneDNN is made (the gradient of the input: 0.06 s instead of 1.06 s on AVX2).
    """
    g = case.geometry
    whole = g.kernel[-1] == g.size[-1] > 1 and g.out[-1] == 1 and not any(g.pads[-1])
    if not whole or case.groups != 1 or len(g.out) != 2 or g.dilations[-1] != 1:
        return case
    *rows, width, channels = case.images
    geometry = g._replace(size=(g.size[0], 1), kernel=(g.kernel[0], 1), strides=(g.strides[0], 1))
    return case._replace(images=(*rows, 1, width * channels), geometry=geometry)


def _filter_order(case: _Case) -> tuple[list[int], list[int]]:
    """Dimensions and strides of (*kernel, in, out) in oneDNN's order: (groups), out, in,
    *kernel.
    """
    *kernel, inner, out = case.filter_shape
    steps = [inner * out * math.prod(kernel[i + 1 :]) for i in range(len(kernel))]
    if case.groups == 1:
        return [out, inner, *kernel], [1, out, *steps]
    own = out // case.groups
    return [case.groups, own, inner, *kernel], [own, 1, out, *steps]


class _Orders:
    """Numbers for the orders of memory that primitives want their filters in."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.lock = threading.Lock()
        self.known: list[tuple[Any, Any]] = []  # descriptions, and the orders that they hold
        self.count = 0

    def number(self, step: Step) -> int:
        if step.order_number is None:
            with self.lock:
                step.order_number = self._find(step.order)
        return step.order_number

    def _find(self, order: tuple[Any, Any]) -> int:
        equal = self.api.c.dnnl_memory_desc_equal
        for n, (_, known) in enumerate(self.known):
            if equal(known, order[1]):
                return n
        if len(self.known) < MAX_ORDERS:
            self.known.append(order)
        self.count += 1
        return self.count - 1


class Convolutions:
    """Convolution and its two gradients; None where NumPy should do it."""

    def __init__(self, api: Api, layouts: Layouts) -> None:
        self.api = api
        self.layouts = layouts
        self.steps: Cache[_Case, Any] = Cache(MAX_KEPT)
        self.orders = _Orders(api)

    def conv(
        self,
        x: Array,
        w: Array,
        g: Geometry,
        groups: int = 1,
        bias: Array | None = None,
        add: Array | None = None,
        relu: bool = False,
        packed: Any = None,
    ) -> Array | None:
        """``conv(x, w) + bias + add``, then ``max(0, …)`` if ``relu``, in one pass over memory.

        ``bias`` is a vector over the output's channels, ``add`` an array of the output's shape (a
        shortcut that goes round the layer); either may be left out. ``packed`` may be what
        :meth:`pack` gave for the same filter, shapes and options: the filter is then not packed
        again.
        """
        more = [a for a in (bias, add) if a is not None]
        if not _taken(x, w, *more):
            return None
        if relu and not is_bounded(x, w, more):
            out = self.conv(x, w, g, groups, bias, add)
            return out if out is None else np.maximum(0, out, out=out)
        case = forward_case(x.shape, w, g, groups, bias is not None, add is not None, relu)
        if add is not None and add.shape != case.results:
            return None
        step = self._step(case)
        if not step:
            return None
        if packed is None:
            packed = self._packed(step, w)
        out = buffers.empty(case.results, np.float32)
        contiguous = self.layouts.contiguous
        step(contiguous(x), packed, out, *[contiguous(a) for a in more])
        return out

    def filter_order(
        self,
        x_shape: tuple[int, ...],
        w: Any,
        g: Geometry,
        groups: int = 1,
        bias: bool = False,
        add: bool = False,
        relu: bool = False,
        keeps_nan: bool = False,
    ) -> int | None:
        """The number of the order in which ``pack`` gives the filter.

        Filters of one number are the same bytes, whatever images they are for. None where there is
        no primitive.
        """
        step = self._step(forward_case(x_shape, w, g, groups, bias, add, relu, keeps_nan))
        return self.orders.number(step) if step else None

    def pack(
        self,
        x_shape: tuple[int, ...],
        w: Any,
        g: Geometry,
        groups: int = 1,
        bias: bool = False,
        add: bool = False,
        relu: bool = False,
        keeps_nan: bool = False,
    ) -> Any:
        """The filter in the order that ``conv`` wants it for such images, to be kept.

        None where there is no primitive.
        """
        step = self._step(forward_case(x_shape, w, g, groups, bias, add, relu, keeps_nan))
        if not step or not _taken(w):
            return None
        if step.reorder is None:
            return np.array(
                w, order="C"
            )  # (to hold the variable itself would keep it from being overwritten)
        w = np.ascontiguousarray(w)
        out = np.empty(step.filter_size, np.uint8)
        step.reorder(w, out)
        return out

    def conv_input_grad(
        self, x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry, groups: int = 1
    ) -> Array | None:
        """The gradient of the input, which is also the transposed convolution."""
        if not _taken(w, gradient):
            return None
        case = _fold_width(_Case("input", tuple(x_shape), w.shape[-1], groups, g, thread_count()))
        step = self._step(case)
        if not step:
            return None
        out = buffers.empty(tuple(x_shape), np.float32)
        step(out, self._packed(step, w), self.layouts.contiguous(gradient))
        return out

    def conv_filter_grad(
        self, x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry, groups: int = 1
    ) -> Array | None:
        """The gradient of the filter."""
        found = self._filter_grad(x, w_shape, gradient, g, groups, False)
        return None if found is None else found[0]

    def conv_filter_and_bias_grad(
        self, x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry, groups: int = 1
    ) -> tuple[Array, Array] | None:
        """The gradients of the filter and of a bias that was added to the result, in one pass."""
        found = self._filter_grad(x, w_shape, gradient, g, groups, True)
        return None if found is None else (found[0], found[1])

    def _filter_grad(
        self,
        x: Array,
        w_shape: Sequence[int],
        gradient: Array,
        g: Geometry,
        groups: int,
        bias: bool,
    ) -> tuple[Array, ...] | None:
        if not _taken(x, gradient):
            return None
        case = _fold_width(_Case("filter", x.shape, w_shape[-1], groups, g, thread_count(), bias))
        step = self._step(case)
        if not step:
            return None
        out = buffers.empty(tuple(w_shape), np.float32)
        sums = [np.empty(case.out, np.float32)] if bias else []
        own = out if step.reorder is None else self.layouts.block(step.filter_size)
        contiguous = self.layouts.contiguous
        step.call(contiguous(x), own, contiguous(gradient), *sums)
        if step.reorder is not None:
            step.reorder(own, out)
        return (out, *sums)

    def _step(self, case: _Case) -> Any:
        """The primitive for a case; False where there is none."""
        return case.large and self.steps.get(case, self._make)

    def _make(self, case: _Case) -> Any:
        self.api.set_threads(case.threads)  # OpenMP's setting belongs to the calling thread
        try:
            return Step(self.api, case)
        except RuntimeError:
            return False

    def _packed(self, step: Step, w: Array) -> Any:
        w = np.ascontiguousarray(w)
        if step.reorder is None:
            return w
        block = self.layouts.block(step.filter_size)
        step.reorder(w, block)
        return block


def _taken(*arrays: Any) -> bool:
    return all(x.dtype == FLOAT32 and x.size for x in arrays)
