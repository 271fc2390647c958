"""``tensorflow.python.util.tf_export``.

Decorators that register names in TensorFlow's own API; here they change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["estimator_export", "keras_export", "tf_export"]


class tf_export:
    """``@tf_export("name")``."""

    def __init__(self, *args: str, **kwargs: object) -> None:
        self._names = args

    def __call__(self, func: Any) -> Any:
        return func

    def export_constant(self, module_name: str, name: str) -> None:
        """Nothing to do."""


keras_export: Callable[..., Any] = tf_export
estimator_export: Callable[..., Any] = tf_export
