"""``tf.DeviceSpec``: the parts of a device name, for programs that compute with them.

>>> DeviceSpec.from_string("/job:ps/task:1/gpu:0").to_string()
'/job:ps/task:1/device:GPU:0'
"""

from __future__ import annotations

__all__ = ["DeviceSpec"]

_FIELDS = ("job", "replica", "task", "device_type", "device_index")


class DeviceSpec:
    """The parts of a device name: job, replica, task, device type and index.

    A part that is None is not specified. ``to_string()`` gives "/job:worker/task:0/device:CPU:0".
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = job
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = None if device_type is None else device_type.upper()
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Take over the parts of a name such as ``/job:worker/replica:0/task:1/device:GPU:0`` (or
        ``/gpu:0``).
        """
        for field in _FIELDS:
            setattr(self, field, None)
        for part in filter(None, spec.split("/")):
            words = part.split(":")
            if self.device_type is not None and words[0] not in ("job", "replica", "task"):
                raise ValueError(f"Cannot specify multiple device types: {spec}")
            if not self._take(words):
                raise ValueError(f"Unknown attribute: '{words[0]}' in '{spec}'")
        return self

    def _take(self, words: list[str]) -> bool:
        if words[0] == "job" and len(words) == 2:
            self.job = words[1]
        elif words[0] in ("replica", "task") and len(words) == 2:
            setattr(self, words[0], int(words[1]))
        elif words[0].upper() in ("CPU", "GPU") and len(words) <= 2:
            self.device_type, self.device_index = words[0].upper(), _index((words[1:] or "*")[0])
        elif words[0] == "device" and len(words) == 3:
            self.device_type, self.device_index = words[1].upper(), _index(words[2])
        else:
            return False
        return True

    def merge_from(self, dev: DeviceSpec) -> None:
        """Parts that ``dev`` specifies replace ours."""
        for field in _FIELDS:
            if getattr(dev, field) is not None:
                setattr(self, field, getattr(dev, field))

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        made = self.replace()
        made.merge_from(dev)
        return made

    def replace(self, **kwargs: object) -> DeviceSpec:
        return DeviceSpec(**{**{f: getattr(self, f) for f in _FIELDS}, **kwargs})

    def to_string(self) -> str:
        text = "".join(
            f"/{f}:{getattr(self, f)}" for f in _FIELDS[:3] if getattr(self, f) is not None
        )
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"


def _index(text: str) -> int | None:
    return None if text == "*" else int(text)
