"""Where a kernel library plugs in under the NumPy kernels.

The array modules ask here for a faster version of a heavy function; a library (see
``headrace.kernels``) registers how it is loaded. It is loaded by the first call that is large
enough to want it, and "not there" is an answer with a reason.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from headrace.runtime import thread_pool as pool

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
        x: Any,
        w: Any,
        g: Any,
        groups: int = 1,
        bias: Any = None,
        add: Any = None,
        relu: bool = False,
        packed: Any = None,
    ) -> Any: ...

    def conv_input_grad(
        self, x_shape: Any, w: Any, gradient: Any, g: Any, groups: int = 1
    ) -> Any: ...

    def conv_filter_grad(
        self, x: Any, w_shape: Any, gradient: Any, g: Any, groups: int = 1
    ) -> Any: ...

    def conv_filter_and_bias_grad(
        self, x: Any, w_shape: Any, gradient: Any, g: Any, groups: int = 1
    ) -> Any: ...

    def pack_filter(
        self,
        x_shape: Any,
        w: Any,
        g: Any,
        groups: int = 1,
        bias: bool = False,
        add: bool = False,
        relu: bool = False,
    ) -> Any: ...

    def max_pool(self, x: Any, axes: Any) -> Any: ...

    def max_pool_grad(self, x: Any, g: Any, axes: Any) -> Any: ...

    def avg_pool(self, x: Any, axes: Any) -> Any: ...

    def avg_pool_grad(self, shape: Any, g: Any, axes: Any) -> Any: ...


class RowLibrary(Protocol):
    """Element-wise functions, sums of rows, softmax over the last axis, normalisation with
    channels last.
    """

    def unary(self, op: str, x: Any, out: Any = None) -> Any: ...

    def gradient(self, op: str, y: Any, dy: Any) -> Any: ...

    def relu_grad(self, gradients: Any, features: Any) -> Any: ...

    def row_sums(self, x: Any) -> Any: ...

    def softmax(self, x: Any, out: Any = None) -> Any: ...

    def softmax_grad(self, y: Any, dy: Any) -> Any: ...

    def log_softmax(self, x: Any) -> Any: ...

    def log_softmax_grad(self, y: Any, dy: Any) -> Any: ...

    def batch_norm(self, x: Any, scale: Any, offset: Any, epsilon: float) -> Any: ...

    def batch_norm_inference(
        self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float
    ) -> Any: ...

    def batch_norm_grad(
        self, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, epsilon: float, training: bool
    ) -> Any: ...

    def layer_norm(self, x: Any, scale: Any, offset: Any, epsilon: float) -> Any: ...

    def layer_norm_grad(
        self, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, epsilon: float
    ) -> Any: ...


class Library(WindowedLibrary, RowLibrary, Protocol):
    """What a kernel library offers.

    Each function answers None or False where it does not want the case.
    """

    name: str
    fixed: (
        Any  # primitives for arrays that stay where they are (kernels/onednn/bound_primitives.py)
    )

    def set_threads(self, n: int) -> None: ...

    def matmul(self, a: Any, b: Any, out: Any, accumulate: bool = False) -> Any: ...

    def matmul_bias(self, a: Any, b: Any, bias: Any) -> Any: ...

    def few_rows(self, a: Any, b: Any, bias: Any) -> Any: ...

    def batch_matmul(self, a: Any, b: Any, out: Any = None) -> Any: ...

    def scores(self, q: Any, keys: Any, steps: Any) -> Any: ...

    def gates(self, weights: Any, rows: int, factor: Any, before: Any, after: Any) -> Any: ...

    def pack_lstm(
        self, kernel: Any, inputs: int, order: tuple[int, ...], steps: int, rows: int
    ) -> Any: ...

    def lstm(self, x: Any, h: Any, c: Any, packed: Any, bias: Any) -> Any: ...

    def steps_product(self, weights: Any, rows: int) -> Any: ...

    def weights_way(self, asked: str) -> Any: ...

    def pack(
        self,
        weights: Any,
        rows: int,
        kind: str = "float32",
        bias: bool = True,
        activation: str | None = None,
    ) -> Any: ...

    def product(
        self, a: Any, weights: Any, bias: Any = None, activation: str | None = None, out: Any = None
    ) -> Any: ...

    def adam(
        self,
        var: Any,
        m: Any,
        v: Any,
        rate: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        grad: Any,
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


def ask(function: str, *args: Any) -> Any:
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
