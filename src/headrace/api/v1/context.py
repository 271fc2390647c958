"""The switches between TF 1 and TF 2 behaviour. This API is TF 1's: turning TF 2's off does nothing, turning it on is refused."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "control_flow_v2_enabled", "disable_control_flow_v2", "disable_eager_execution", "disable_tensor_equality",
    "disable_v2_behavior", "disable_v2_tensorshape", "enable_control_flow_v2", "enable_eager_execution",
    "enable_tensor_equality", "enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly",
]  # fmt: skip


def executing_eagerly() -> bool:
    """Always False: operations are added to a graph, and a session runs it."""
    return False


def control_flow_v2_enabled() -> bool:
    return False


def disable_eager_execution() -> None:
    """Graphs are what this API makes anyway."""


def disable_v2_behavior() -> None:
    """This API has TF 1's behaviour anyway."""


def disable_v2_tensorshape() -> None:
    """Dimensions are Dimension objects anyway."""


def disable_tensor_equality() -> None:
    """``==`` compares tensors by identity anyway."""


def disable_control_flow_v2() -> None:
    """Results do not depend on how control flow is represented."""


def enable_control_flow_v2() -> None:
    """Results do not depend on how control flow is represented."""


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"{what} is TF 2's behaviour, which this API (TensorFlow 1.15, graphs and sessions) does not have"
    )


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> NoReturn:
    _refuse("eager execution")


def enable_v2_behavior() -> NoReturn:
    _refuse("enable_v2_behavior")


def enable_v2_tensorshape() -> NoReturn:
    _refuse("enable_v2_tensorshape")


def enable_tensor_equality() -> NoReturn:
    _refuse("comparing tensors by value with ==")
