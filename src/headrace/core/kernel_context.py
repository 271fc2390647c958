"""What a kernel can reach of the session it runs in (``rt`` among its parameters)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

__all__ = ["Runtime"]

T = TypeVar("T")


class Runtime(Protocol):
    """Resources by key, made on first use."""

    def session_resource(self, key: Hashable, factory: Callable[[], T]) -> T:
        """Lives as long as the session: random generators, queues, tables."""
        ...

    def run_resource(self, key: Hashable, factory: Callable[[], T]) -> T:
        """Lives as long as one run: TensorArrays, stacks."""
        ...
