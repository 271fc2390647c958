"""``tensorflow.python.tf2``."""

from headrace.api.v1.context import executing_eagerly

__all__ = ["enabled"]


def enabled() -> bool:
    """Whether TF 2's behaviour is on."""
    return executing_eagerly()
