"""The devices a session can name: this machine's CPU."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DeviceAttributes", "local_devices"]

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@dataclass(frozen=True)
class DeviceAttributes:
    """What ``sess.list_devices()`` gives for each device."""

    name: str
    device_type: str
    memory_limit_bytes: int = 1 << 28
    incarnation: int = 1

    @property
    def memory_limit(self) -> int:
        return self.memory_limit_bytes


def local_devices(cpus: int = 1) -> list[DeviceAttributes]:
    """As many as ``ConfigProto.device_count`` says; they are all the same processor."""
    return [DeviceAttributes(f"{CPU[:-1]}{i}", "CPU") for i in range(cpus)]
