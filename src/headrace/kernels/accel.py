"""Where a kernel library plugs in under the NumPy kernels.

The array modules ask here for a faster version of a heavy function; a library (see
``headrace.kernels``) registers how it is loaded. It is loaded by the first call that is large
enough to want it, and "not there" is an answer with a reason.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from headrace.runtime import thread_pool as pool

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.numpy.im2col import Geometry
    from headrace.kernels.numpy.pooling_kernels import Axes
    from headrace.kernels.packed_weights import WeightsForm

__all__ = [
    "Library",
    "ask",
    "here",
    "library",
    "loaded",
    "limited_threads",
    "register",
    "status",
    "tell_threads",
]


class WindowedLibrary(Protocol):
    """Convolution and pooling: ``g`` is a Geometry of im2col.py, ``axes`` are those of
    pooling.py.
    """

    def conv(
        self,
        x: Array,
        w: Array,
        g: Geometry,
        groups: int = 1,
        bias: Array | None = None,
        add: Array | None = None,
        relu: bool = False,
        packed: object | None = None,
    ) -> Array | None: ...

    def conv_input_grad(
        self, x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry, groups: int = 1
    ) -> Array | None: ...

    def conv_filter_grad(
        self, x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry, groups: int = 1
    ) -> Array | None: ...

    def conv_filter_and_bias_grad(
        self, x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry, groups: int = 1
    ) -> tuple[Array, Array] | None: ...

    def filter_order(
        self,
        x_shape: tuple[int, ...],
        w: Array,
        g: Geometry,
        groups: int = 1,
        bias: bool = False,
        add: bool = False,
        relu: bool = False,
        keeps_nan: bool = False,
    ) -> int | None: ...

    def pack_filter(
        self,
        x_shape: Sequence[int],
        w: Array,
        g: Geometry,
        groups: int = 1,
        bias: bool = False,
        add: bool = False,
        relu: bool = False,
        keeps_nan: bool = False,
    ) -> object: ...

    def max_pool(self, x: Array, axes: Axes) -> Array | None: ...

    def max_pool_grad(self, x: Array, g: Array, axes: Axes) -> Array | None: ...

    def avg_pool(self, x: Array, axes: Axes) -> Array | None: ...

    def avg_pool_grad(self, shape: tuple[int, ...], g: Array, axes: Axes) -> Array | None: ...


class RowLibrary(Protocol):
    """Element-wise functions, sums of rows, softmax over the last axis, normalisation with
    channels last.
    """

    def unary(self, op: str, x: Array, out: Array | None = None) -> Array | None: ...

    def gradient(self, op: str, y: Array, dy: Array) -> Array | None: ...

    def relu_grad(self, gradients: Array, features: Array) -> Array | None: ...

    def row_sums(self, x: Array) -> Array | None: ...

    def softmax(self, x: Array, out: Array | None = None) -> Array | None: ...

    def softmax_grad(self, y: Array, dy: Array) -> Array | None: ...

    def log_softmax(self, x: Array) -> Array | None: ...

    def log_softmax_grad(self, y: Array, dy: Array) -> Array | None: ...

    def batch_norm(
        self, x: Array, scale: Array, offset: Array, epsilon: float
    ) -> tuple[Array, Array, Array] | None: ...

    def batch_norm_inference(
        self, x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float
    ) -> Array | None: ...

    def batch_norm_grad(
        self,
        dy: Array,
        x: Array,
        scale: Array,
        mean: Array,
        variance: Array,
        epsilon: float,
        training: bool,
    ) -> tuple[Array, Array, Array] | None: ...

    def layer_norm(
        self, x: Array, scale: Array, offset: Array, epsilon: float
    ) -> tuple[Array, Array, Array] | None: ...

    def layer_norm_grad(
        self, dy: Array, x: Array, scale: Array, mean: Array, variance: Array, epsilon: float
    ) -> tuple[Array, Array, Array] | None: ...


class Library(WindowedLibrary, RowLibrary, Protocol):
    """What a kernel library offers.

    Each function answers None or False where it does not want the case.
    """

    name: str
    fixed: (
        Any  # primitives for arrays that stay where they are (kernels/onednn/bound_primitives.py)
    )

    def set_threads(self, n: int) -> None: ...

    def matmul(
        self, a: Array, b: Array, out: Array | None, accumulate: bool = False
    ) -> Array | None: ...

    def matmul_bias(self, a: Array, b: Array, bias: Array) -> Array | None: ...

    def few_rows(self, a: Array, b: Array, bias: Array) -> Array | None: ...

    def batch_matmul(self, a: Array, b: Array, out: Array | None = None) -> Array | None: ...

    def scores(self, q: Array, keys: Array, steps: Array) -> Array | None: ...

    def gates(
        self, weights: Array, rows: int, factor: Array, before: Array, after: Array
    ) -> Callable[[Any, Any], None] | None: ...

    def pack_lstm(
        self, kernel: Array, inputs: int, order: tuple[int, ...], steps: int, rows: int
    ) -> object: ...

    def lstm(
        self, x: Array, h: Array, c: Array, packed: Array, bias: Array
    ) -> tuple[Array, ...] | None: ...

    def steps_product(self, weights: Array, rows: int) -> Callable[..., Array] | None: ...

    def weights_form(self, asked: str) -> WeightsForm: ...

    def is_slow_inside(self, activation: str, elements: int) -> bool: ...

    def as_pixels(self, rows: int, shape: tuple[int, ...], kind: str = "float32") -> bool: ...

    def pack(
        self,
        weights: Array,
        rows: int,
        kind: str = "float32",
        bias: bool = True,
        activation: str | None = None,
    ) -> object: ...

    def product(
        self,
        a: Array,
        weights: object,
        bias: Array | None = None,
        activation: str | None = None,
        out: Array | None = None,
    ) -> Array | None: ...

    def adam(
        self,
        var: Array,
        m: Array,
        v: Array,
        rate: float | Array,
        beta1: float | Array,
        beta2: float | Array,
        epsilon: float | Array,
        grad: Array,
    ) -> bool: ...


_loader: Callable[[], Library] | None = None
_library: Library | None = None
_reason = "no kernel library is registered"
_decided = False
_lock = threading.Lock()


def register(loader: Callable[[], Library]) -> None:
    """``loader()`` returns the library or raises ImportError with the reason why it cannot be
    used.
    """
    global _loader, _decided, _library
    _loader, _library, _decided = loader, None, False


class _Here(threading.local):
    """``in_block`` is set while this thread computes one of several blocks.

    The library's threads would only be in the way.
    """

    in_block = False


here = _Here()


def library() -> Library | None:
    """The kernel library, loaded at the first call; None if there is none, and within a block."""
    if not _decided:
        _decide()
    return None if here.in_block else _library


def loaded() -> bool:
    """Whether it is known if there is a library: something was large enough to want it."""
    return _decided


def ask(function: str, *args: object) -> Array | None:
    """What a function of the library answers; None where there is no library."""
    found = library()
    return None if found is None else getattr(found, function)(*args)


def _decide() -> None:
    global _library, _reason, _decided
    with _lock:
        if _decided:
            return
        if _loader is not None:
            try:
                _library = _loader()
                _reason = _library.name
            except (ImportError, OSError, AttributeError) as error:
                _library, _reason = None, str(error)
        _decided = True


def status() -> str:
    """The library's name and version, or why there is none."""
    library()
    return _reason


def _after_fork() -> None:
    """A library's threads do not survive a fork, and waiting for them would never end.

    The child computes with NumPy.
    """
    global _library, _reason, _decided, _lock
    _lock = threading.Lock()
    if _library is not None:
        _library, _decided, _reason = None, True, f"{_reason} does not survive a fork"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """What the calling thread runs inside, the library's part too, is spread over ``n`` threads."""
    try:
        with pool.limited(n):
            tell_threads()
            yield
    finally:
        tell_threads()


def tell_threads() -> None:
    """OpenMP's number of threads belongs to the thread that calls."""
    if _library is not None:
        _library.set_threads(pool.thread_count())
