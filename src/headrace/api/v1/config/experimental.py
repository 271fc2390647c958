"""``tf.config.experimental``: devices, and settings that a machine without GPUs has no use for."""

from __future__ import annotations

import typing as _typing
from typing import Any

from headrace.api.missing import module_getattr

__all__ = [
    "get_memory_growth", "get_visible_devices", "list_logical_devices", "list_physical_devices",
    "set_memory_growth", "set_visible_devices",
]  # fmt: skip


def list_physical_devices(device_type: str | None = None) -> list[Any]:
    """The devices of a type: one CPU, and none of any other type."""
    from headrace.api.v1 import config

    return list(config.list_physical_devices(device_type))


list_logical_devices = list_physical_devices
get_visible_devices = list_physical_devices


def set_visible_devices(devices: object, device_type: str | None = None) -> None:
    """Change nothing: Headrace computes on the CPU, which is always visible."""


def get_memory_growth(device: object) -> bool:
    """True: memory is allocated as it is needed."""
    return True


def set_memory_growth(device: object, enable: bool) -> None:
    """Memory is always taken as it is needed."""


if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("config.experimental", __name__)
