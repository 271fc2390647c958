"""The kernel of a program's node.

kernel = bound_kernel(node)        # a function of the inputs alone
kernel(*arrays)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.opdef import KernelNode, bind_kernel
from headrace.kernels.numpy import numpy_xp
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import ArrayNamespace

__all__ = ["bound_kernel", "kernel_node"]


def kernel_node(node: Node) -> KernelNode:
    """What kernels that ask for their node are given."""
    return KernelNode(node.op.name, node.op.type, node.attrs, node.op)


def bound_kernel(
    node: Node, xp: ArrayNamespace = numpy_xp, trusting: bool = False
) -> Callable[..., Any]:
    """The op's kernel with the node's attributes; ``trusting``: the shapes of the inputs are
    known to fit.
    """
    return bind_kernel(node.opdef, kernel_node(node), xp, trusting)
