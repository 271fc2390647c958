"""The modes of ``tf.contrib.eager``, its Saver, and ``run``.

Headrace computes on one device and at once, so the modes differ in nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.api.v1.context import enable_eager_execution, executing_eagerly
from headrace.train.saver import Saver as GraphSaver

__all__ = [
    "ASYNC", "DEVICE_PLACEMENT_EXPLICIT", "DEVICE_PLACEMENT_SILENT", "DEVICE_PLACEMENT_WARN",
    "SYNC", "Saver", "async_clear_error", "async_wait", "execution_mode",
    "get_optimizer_variables", "run", "set_execution_mode",
]  # fmt: skip

#: What to do where a tensor is on another device: there is one.
DEVICE_PLACEMENT_EXPLICIT, DEVICE_PLACEMENT_WARN, DEVICE_PLACEMENT_SILENT = 0, 1, 2
SYNC, ASYNC = 0, 1


def set_execution_mode(mode: int | None) -> None:
    """SYNC, ASYNC or None: operations are computed when they are called in either mode."""
    if mode not in (None, SYNC, ASYNC):
        raise ValueError(f"Execution mode should be None/tf.contrib.eager.SYNC/ASYNC. Got {mode}")


@contextlib.contextmanager
def execution_mode(mode: int | None) -> Iterator[None]:
    """Set the execution mode (``SYNC``, ``ASYNC`` or None) for the statements of a block."""
    set_execution_mode(mode)
    yield


def async_wait() -> None:
    """Nothing is under way, so there is nothing to wait for."""


def async_clear_error() -> None:
    """Errors are raised where they happen, so none is kept."""


class Saver:
    """Saves and restores variables of an eager program by their names."""

    def __init__(self, var_list: Sequence[Any] | dict[str, Any]) -> None:
        if not executing_eagerly():
            raise RuntimeError(
                "tfe.Saver can only be used when eager execution is enabled. "
                "Use tf.train.Saver when building graphs."
            )
        self._saver: Any = GraphSaver(var_list=var_list)

    def save(self, file_prefix: str, global_step: object = None) -> Any:
        """Write a checkpoint; its path is returned."""
        return self._saver.save(None, file_prefix, write_meta_graph=False, global_step=global_step)

    def restore(self, file_prefix: str) -> None:
        """Read the variables of a checkpoint."""
        self._saver.restore(None, file_prefix)


def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """The variables of an optimizer."""
    found: list[Any] = optimizer.variables()
    return found


def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """Switch to eager execution and run ``main`` with the flags parsed, as ``tf.app.run`` does."""
    from headrace.api.platform.app import run as run_app

    enable_eager_execution()
    chosen = getattr(sys.modules["__main__"], "main", None) if main is None else main
    run_app(chosen, argv)
