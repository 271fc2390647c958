"""Maximum and average over windows of float32 images, in two and three dimensions, and their
gradients.

Channels may lie last or first, as the array has them in memory; the result lies likewise. The
gradient of a maximum computes the maxima again to learn where they are (the first largest element
of a window), which takes less time than comparing does. A NaN is passed over, and where there is no
number the lowest finite one stands: TensorFlow computes with the same code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.numpy.pooling_kernels import Axes
from headrace.kernels.onednn.memory_formats import Layouts, channels_last, implementation
from headrace.kernels.onednn.onednn_library import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    INFERENCE,
    SRC,
    TRAINING,
    WORKSPACE,
    WORKSPACE_DESC,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32, Cache, Call
from headrace.runtime import buffers
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Pooling", "forward_of"]

MAX_KEPT = 256
#: Elements of the larger array below which NumPy does it; fewer channels than these, lying first,
#: it does faster too.
MIN_SIZE, MIN_FIRST = 1 << 12, 16
_MAX, _AVERAGE = 0x1FF, 0x3FF


class _Case(NamedTuple):
    """What a primitive is made for.

    Shapes are (batch, *spatial, channels) whatever lies in memory.
    """

    what: str  # "forward" or "gradient"
    kind: int
    last: bool  # channels lie last in memory
    shape: tuple[int, ...]
    axes: Axes  # axis numbers are those of ``shape``


class _Windows:
    """Descriptions of the arrays and the windows of a case."""

    def __init__(self, api: Api, case: _Case) -> None:
        out = list(case.shape)
        n = len(out) - 2
        kernel, stride, before, after = [1] * n, [1] * n, [0] * n, [0] * n
        for a in case.axes:
            i = a.axis - 1
            out[a.axis], kernel[i], stride[i], before[i] = a.out, a.kernel, a.stride, a.before
            after[i] = max(0, (a.out - 1) * a.stride + a.kernel - a.size - a.before)
        self.results = tuple(out)
        self.src, self.dst = (_describe(api, s, case.last) for s in (case.shape, out))
        rows = (stride, kernel, [0] * n, before, after)
        self.rows = [api.ffi.new("int64_t[12]", row) for row in rows]

    def forward(self, api: Api, kind: int, prop: int) -> Any:
        found = api.description(
            "pooling_forward", prop, kind, self.src, self.dst, *self.rows, api.attributes()
        )
        if implementation(api, found).startswith("ref"):
            raise RuntimeError("oneDNN has only its reference code for this case")
        return found


def _describe(api: Api, shape: Sequence[int], last: bool) -> Any:
    if last:
        return api.tensor(*channels_last(shape))
    return api.tensor([shape[0], shape[-1], *shape[1:-1]])


class _Forward:
    def __init__(self, api: Api, case: _Case) -> None:
        windows = _Windows(api, case)
        self.results = windows.results
        description = windows.forward(api, case.kind, INFERENCE)
        self.call = Call(api, description, [(SRC, windows.src), (DST, windows.dst)])


def forward_of(api: Api, kind: str, x: Array, axes: Axes) -> tuple[Call, tuple[int, ...]] | None:
    """The call for one array that lies channels last, and its result's shape."""
    view = _view(x, axes)
    if view is None or not view.last or view.order is not None:
        return None
    number = _MAX if kind == "max" else _AVERAGE
    made = _Forward(api, _Case("forward", number, True, view.shape, view.axes))
    return made.call, made.results


class _Gradient:
    """Backward; for a maximum after a forward pass that notes where the maxima are."""

    def __init__(self, api: Api, case: _Case) -> None:
        windows = _Windows(api, case)
        self.results = windows.results
        forward = windows.forward(api, case.kind, TRAINING)
        description = api.description(
            "pooling_backward",
            case.kind,
            windows.src,
            windows.dst,
            *windows.rows,
            forward,
            api.attributes(),
        )
        places = [(DIFF_SRC, windows.src), (DIFF_DST, windows.dst)]
        self.find: Call | None = None
        if case.kind == _MAX:
            notes = api.query(forward, WORKSPACE_DESC)
            self.notes_size = int(api.c.dnnl_memory_desc_get_size(notes))
            self.maxima_size = 4 * math.prod(windows.results)
            places.append((WORKSPACE, notes))
            first = [(SRC, windows.src), (DST, windows.dst), (WORKSPACE, notes)]
            self.find = Call(api, forward, first)
        self.call = Call(api, description, places, forward)


class Pooling:
    """Pooling functions as in :mod:`headrace.kernels.numpy.pooling_kernels`.

    None where NumPy should do it.
    """

    def __init__(self, api: Api, layouts: Layouts) -> None:
        self.api = api
        self.layouts = layouts
        self.steps: Cache[_Case, Any] = Cache(MAX_KEPT)

    def max_pool(self, x: Array, axes: Axes) -> Array | None:
        return self._forward(_MAX, x, axes)

    def avg_pool(self, x: Array, axes: Axes) -> Array | None:
        return self._forward(_AVERAGE, x, axes)

    def _forward(self, kind: int, x: Array, axes: Axes) -> Array | None:
        view = _view(x, axes)
        if view is None:
            return None
        step = self.steps.get(_Case("forward", kind, view.last, view.shape, view.axes), self._make)
        if not step:
            return None
        out = buffers.empty(view.memory(step.results), np.float32)
        step.call(x.transpose(view.order) if view.order else x, out)
        return view.back(out)

    def max_pool_grad(self, x: Array, g: Array, axes: Axes) -> Array | None:
        """The output is not asked for: it is computed again."""
        return self._gradient(_MAX, x, x.shape, g, axes)

    def avg_pool_grad(self, shape: tuple[int, ...], g: Array, axes: Axes) -> Array | None:
        return self._gradient(_AVERAGE, g, shape, g, axes)

    def _gradient(
        self, kind: int, like: Array, shape: tuple[int, ...], g: Array, axes: Axes
    ) -> Array | None:
        """``like`` says how the result lies in memory; for a maximum it is the input."""
        view = _view(like, axes, shape)
        if view is None or g.dtype != FLOAT32:
            return None
        step = self.steps.get(_Case("gradient", kind, view.last, view.shape, view.axes), self._make)
        if not step:
            return None
        ordered = [a.transpose(view.order) if view.order else a for a in (like, g)]
        ordered[1] = self.layouts.contiguous(ordered[1])
        out = buffers.empty(view.memory(view.shape), np.float32)
        if step.find is None:
            step.call(out, ordered[1])
        else:
            block = self.layouts.block(step.notes_size + step.maxima_size)
            maxima, notes = block[: step.maxima_size], block[step.maxima_size :]
            step.find(ordered[0], maxima, notes)
            step.call(out, ordered[1], notes)
        return view.back(out)

    def _make(self, case: _Case) -> Any:
        self.api.set_threads(thread_count())
        try:
            return (_Forward if case.what == "forward" else _Gradient)(self.api, case)
        except RuntimeError:
            return False


class _View(NamedTuple):
    """How an array is seen: ``order`` makes it contiguous."""

    last: bool
    shape: tuple[int, ...]  # (batch, *spatial, channels)
    axes: Axes
    order: tuple[int, ...] | None

    def memory(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that such an array has as it lies in memory."""
        return shape if self.last else (shape[0], shape[-1], *shape[1:-1])

    def back(self, out: Array) -> Array | None:
        return out if self.order is None else out.transpose(np.argsort(self.order))


def _view(x: Array, axes: Axes, shape: tuple[int, ...] | None = None) -> _View | None:
    """Channels last in memory, or first.

    None for what does not lie in either way, is small or pools other axes.
    """
    whole = x.shape if shape is None else shape
    n = len(whole)
    if x.dtype != FLOAT32 or n not in (4, 5) or not x.size or math.prod(whole) < MIN_SIZE:
        return None
    pooled = [a.axis for a in axes]
    if x.flags.c_contiguous and min(pooled, default=0) > 0 and max(pooled) < n - 1:
        return _View(True, whole, axes, None)
    if min(pooled, default=0) < 2:
        return None
    shifted = tuple(a._replace(axis=a.axis - 1) for a in axes)
    seen = (whole[0], *whole[2:], whole[1])
    if x.flags.c_contiguous:
        return _View(False, seen, shifted, None) if whole[1] >= MIN_FIRST else None
    order = (0, *range(2, n), 1)
    if x.transpose(order).flags.c_contiguous:
        return _View(True, seen, shifted, order)
    return None
