"""Random numbers in a run that is bound to memory.

A dropout layer or the noise of an autoencoder stands in the middle of a training step. What draws
the numbers changes its generator, and a bound run may turn out not to fit (an input is NaN, a
shape has changed) and be done again by the generic code. So a draw of a bound run notes what it
took, and ``give_back`` returns that: the generic run draws the same numbers, as if the bound run
had never begun.

    draw = Draw(node)
    draw(rt, shape)                # the numbers; noted in rt.drawn
    give_back(rt)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.lower.session_state import RunContext
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.numpy.philox import Guarded, Maker, Philox

__all__ = ["Draw", "give_back"]


class Draw:
    """A node that draws, as a function of the run's context and the node's inputs."""

    __slots__ = ("_kernel",)

    def __init__(self, node: Node) -> None:
        self._kernel = bound_kernel(node)

    def __call__(self, rt: RunContext, *inputs: Any) -> Array:
        drawn: Array = self._kernel(*inputs, rt=_Noting(rt))
        return drawn


def give_back(rt: RunContext) -> None:
    """The draws of a run that came to nothing, the last one first."""
    while rt.drawn:
        generator, start, count = rt.drawn.pop()
        generator.give_back(start, count)


class _Noting:
    """The context that the kernel of a draw sees. Its one resource is the generator."""

    __slots__ = ("_rt",)

    def __init__(self, rt: RunContext) -> None:
        self._rt = rt

    def session_resource(self, key: Hashable, factory: Callable[[], Guarded]) -> _Noted:
        return _Noted(self._rt.session_resource(key, factory), self._rt.drawn)


class _Noted:
    """A generator that notes what it gives."""

    __slots__ = ("_drawn", "_generator")

    def __init__(self, generator: Guarded, drawn: list[tuple[Guarded, Philox, int]]) -> None:
        self._generator, self._drawn = generator, drawn

    def numbers(self, make: Maker, count: int, dtype: np.dtype[Any]) -> Array:
        made, start = self._generator.drawn(make, count, dtype)
        self._drawn.append((self._generator, start, count))
        return made
