"""``tensorflow.python.client.device_lib``: the devices of this machine."""

from __future__ import annotations

from typing import Any

from headrace.session.devices import local_devices

__all__ = ["list_local_devices"]


def list_local_devices(session_config: object = None) -> list[Any]:
    """The processor; there is no other device."""
    return local_devices()
