"""``tf.config``.

The devices of this machine. There is one, the processor; settings of GPUs have nothing to act on.
"""

from __future__ import annotations

import typing as _typing
from typing import NamedTuple

from headrace.api.missing import module_getattr
from headrace.api.v1.config import experimental, threading

__all__ = [
    "PhysicalDevice", "experimental", "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly", "functions_run_eagerly", "get_soft_device_placement",
    "list_logical_devices", "list_physical_devices", "run_functions_eagerly",
    "set_soft_device_placement", "threading",
]  # fmt: skip


class PhysicalDevice(NamedTuple):
    """A device of this machine: its ``name`` and ``device_type``, as ``list_physical_devices``
    gives.
    """

    name: str
    device_type: str


_PROCESSOR = PhysicalDevice("/physical_device:CPU:0", "CPU")
_soft_placement = [True]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type: one CPU, and none of any other type."""
    return [_PROCESSOR] if device_type in (None, "CPU") else []


list_logical_devices = list_physical_devices


def get_soft_device_placement() -> bool:
    """What ``set_soft_device_placement`` set: may operations on absent devices run here?"""
    return _soft_placement[0]


def set_soft_device_placement(enabled: object) -> None:
    """Remembered; every op runs on the processor either way."""
    _soft_placement[0] = bool(enabled)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether functions made by ``tf.function`` run as plain Python, for debugging."""
    from headrace.functions.function import run_functions_eagerly

    run_functions_eagerly(run_eagerly)


def functions_run_eagerly() -> bool:
    """True after ``run_functions_eagerly(True)``: functions run as plain Python."""
    from headrace.functions.function import functions_run_eagerly

    return functions_run_eagerly()


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("config", __name__)
