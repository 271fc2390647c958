"""The switches between TF 1 and TF 2 behaviour.

This API starts as TF 1's: graphs, Dimension objects, ``==`` by identity.
"""

from __future__ import annotations

from headrace.core import op_limits, shapes
from headrace.core.graph import get_default_graph, root_graph

__all__ = [
    "control_flow_v2_enabled", "disable_control_flow_v2", "disable_eager_execution",
    "disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_control_flow_v2", "enable_eager_execution", "enable_tensor_equality",
    "enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly",
]  # fmt: skip

_control_flow_v2 = [False]


def executing_eagerly() -> bool:
    """Whether an operation made here is computed at once (else it is added to a graph)."""
    return get_default_graph()._is_eager


def executing_eagerly_outside_functions() -> bool:
    """The same, of the code around the functions that are being traced."""
    root = root_graph()
    return get_default_graph()._is_eager or (root is not None and root._is_eager)


def enable_eager_execution(
    config: object = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """Operations compute when they are called, from now on, and tensors have ``numpy()``.

    Call it first: with operations in the default graph it is a ValueError. ``config``,
    ``device_policy`` and ``execution_mode`` are checked and have no further effect.
    """
    from headrace.eager import eager_context as context

    context.enable()


def disable_eager_execution() -> None:
    """Back to graphs, which is what this API starts with."""
    root = root_graph()
    if root is not None and root._is_eager:
        from headrace.eager import eager_context as context

        context.disable()


def enable_v2_tensorshape() -> None:
    """Dimensions of a TensorShape are plain numbers."""
    shapes.V2[0] = True


def disable_v2_tensorshape() -> None:
    """Dimensions of a TensorShape are Dimension objects."""
    shapes.V2[0] = False


def enable_tensor_equality() -> None:
    """From now on ``==`` compares tensors element by element, as in TF 2."""
    from headrace.eager import equality

    equality.enable()


def disable_tensor_equality() -> None:
    """From now on ``==`` compares tensors by identity, as in TF 1."""
    import sys

    if "headrace.eager.equality" in sys.modules:
        from headrace.eager import equality

        equality.disable()


def control_flow_v2_enabled() -> bool:
    """What ``enable_control_flow_v2`` and ``disable_control_flow_v2`` last set."""
    return _control_flow_v2[0]


def enable_control_flow_v2() -> None:
    """Results do not depend on how control flow is represented."""
    _control_flow_v2[0] = True


def disable_control_flow_v2() -> None:
    """Results do not depend on how control flow is represented."""
    _control_flow_v2[0] = False


def enable_v2_behavior() -> None:
    """Eager execution, TF 2's shapes and equality, resource variables."""
    from headrace.variables.variable_scope import enable_resource_variables

    enable_eager_execution()
    enable_v2_tensorshape()
    enable_tensor_equality()
    enable_resource_variables()
    enable_control_flow_v2()
    op_limits.enforce(False)


def disable_v2_behavior() -> None:
    """TF 1's behaviour, which is what this API starts with."""
    from headrace.variables.variable_scope import disable_resource_variables

    disable_eager_execution()
    disable_v2_tensorshape()
    disable_tensor_equality()
    disable_resource_variables()
    disable_control_flow_v2()
    op_limits.enforce(True)
