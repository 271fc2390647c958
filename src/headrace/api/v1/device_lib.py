"""``tensorflow.python.client.device_lib``: the devices of this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.session.devices import local_devices

__all__ = ["list_local_devices"]


def list_local_devices(session_config: object = None) -> list[Any]:
    """The processor, by its name within a process; there is no other device.

    ``session_config``: a ConfigProto, whose ``device_count`` says how many processors there are.
    """
    count = getattr(session_config, "device_count", {}).get("CPU", 1)
    return [
        replace(d, name=d.name[d.name.index("/device:") :]) for d in local_devices(max(count, 1))
    ]
