"""Device names of a graph: canonical spelling, and a name inside of another."""

from __future__ import annotations

import functools
import re

from headrace.core.device_spec import DeviceSpec

__all__: list[str] = []


@functools.cache
def _canonical_device(device: str) -> str:
    """``/cpu:0`` in full: ``/device:CPU:0``."""
    return re.sub(r"/(cpu|gpu):", lambda m: f"/device:{m.group(1).upper()}:", device, flags=re.I)


def _merge_devices(outer: str, inner: str) -> str:
    """Device strings merge field by field, the inner one deciding."""
    if not outer or not inner:
        return inner or outer
    merged = DeviceSpec.from_string(outer)
    merged.merge_from(DeviceSpec.from_string(inner))
    return merged.to_string()
