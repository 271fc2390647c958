"""A resource of one session that runs wait for: a lock, and the end of all waiting.

Accumulators, staging areas and barriers are such resources. Their methods take the lock, wait with
``wait_until`` and call ``changed`` after each change. ``cancel`` ends all waiting: the session
calls it when it closes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define

__all__ = ["WaitingResource", "boxed", "define_op", "resource_key", "unboxed"]


class WaitingResource:
    """See the module's text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.Condition()
        self._cancelled = False

    def wait_until(self, ready: Callable[[], bool], verb: str) -> None:
        """Wait for a change after which ``ready()`` holds; the lock is held before and after."""
        self.lock.wait_for(lambda: self._cancelled or ready())
        if self._cancelled:
            raise errors.CancelledError(None, None, f"{verb} operation was cancelled")

    def changed(self) -> None:
        """Let those who wait look again; the lock is held."""
        self.lock.notify_all()

    def cancel(self) -> None:
        """The session closes: end all waiting."""
        with self.lock:
            self._cancelled = True
            self.lock.notify_all()


def resource_key(kind: str, node: KernelNode) -> tuple[str, str]:
    """By what the session finds the resource of ``node``: the shared name, or the node itself."""
    attrs = node.attrs
    return (kind, f"{attrs['container']}/{attrs['shared_name'] or node.key}")


def boxed(resource: WaitingResource) -> Array:
    """The value of a handle: an array of rank 0 with the resource."""
    handle = np.empty((), object)
    handle[()] = resource
    return handle


def unboxed(handle: Array) -> WaitingResource:
    """The resource of a handle."""
    found: WaitingResource = handle.item() if isinstance(handle, np.ndarray) else handle
    return found


def define_op(
    name: str,
    signature: str,
    kernel: Callable[..., Any],
    shape: Callable[..., Any],
    blocking: bool = False,
) -> OpDef:
    """An op on a queue, a barrier or another resource; ``blocking``: it may wait for others."""
    return define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
        blocking=blocking,
    )
