"""How many threads this process should use, and where that number comes from.

The first of these that says something decides: HEADRACE_NUM_THREADS, TF_NUM_INTRAOP_THREADS,
OMP_NUM_THREADS; a cgroup's CPU quota (version 1 or 2, the tightest of the process's group and those
above it), if it allows fewer cores than the affinity mask; the affinity mask. ``tf.ConfigProto``
and ``tf.config.threading`` set it for a session or the process afterwards (thread_pool.py).

A quota of half a core gives one thread, of 1.5 cores two: more threads would only wait for the next
period together.

    >>> thread_choice()
    ThreadChoice(count=2, source='the cores that the process may use')
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from headrace.env import thread_setting

__all__ = ["MAX_THREADS", "Quota", "ThreadChoice", "cpu_count", "cpu_quota", "thread_choice"]

#: More threads than this do not pay for one operation.
MAX_THREADS = 16


@dataclass(frozen=True)
class Quota:
    """So many cores' worth of time, as a file of the control group says."""

    cores: float
    file: str


@dataclass(frozen=True)
class ThreadChoice:
    """A number of threads and its reason."""

    count: int
    source: str


@dataclass(frozen=True)
class _Mount:
    """A mounted hierarchy of control groups: ``root`` is the group that is seen at ``point``."""

    version: int
    point: str
    root: str


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    for line in _lines(mountinfo):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2":
            yield _Mount(2, fields[4], fields[3])
        elif kind[0] == "cgroup" and "cpu" in kind[-1].split(","):
            yield _Mount(1, fields[4], fields[3])


def _groups(cgroup: str) -> dict[int, str]:
    """The process's group in the hierarchies (by version) that may limit its time."""
    found: dict[int, str] = {}
    for line in _lines(cgroup):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            found[2] = path
        elif "cpu" in controllers.split(","):
            found[1] = path
    return found


def _folders(mount: _Mount, group: str) -> Iterator[str]:
    """The group's folder and those above it, as they are seen here."""
    try:
        inside = PurePosixPath(group).relative_to(mount.root)
    except ValueError:  # a group outside of what is mounted here: only the mounted one is visible
        inside = PurePosixPath()
    parts = [p for p in inside.parts if p not in ("/", "..")]
    for n in range(len(parts), -1, -1):
        yield str(PurePosixPath(mount.point, *parts[:n]))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _quota(version: int, folder: str, under: str) -> Quota | None:
    if version == 2:
        file = f"{folder}/cpu.max"
        limit, period = [_number(w) for w in [*" ".join(_lines(under + file)).split(), "", ""][:2]]
    else:
        file = f"{folder}/cpu.cfs_quota_us"
        period_file = f"{folder}/cpu.cfs_period_us"
        limit, period = [_number(" ".join(_lines(under + f))) for f in (file, period_file)]
    return Quota(limit / period, file) if limit > 0 and period > 0 else None


def cpu_quota(under: str = "") -> Quota | None:
    """The tightest limit of CPU time on this process.

    None if there is none. ``under`` is put before all paths (tests).
    """
    groups = _groups(f"{under}/proc/self/cgroup")
    quotas = [
        _quota(mount.version, folder, under)
        for mount in _mounts(f"{under}/proc/self/mountinfo")
        for folder in _folders(mount, groups.get(mount.version, "/"))
    ]
    return min((q for q in quotas if q is not None), key=lambda q: q.cores, default=None)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _choose(setting: tuple[str, int] | None, quota: Quota | None, affinity: int) -> ThreadChoice:
    if setting is not None:
        return ThreadChoice(setting[1], setting[0])
    if quota is not None and quota.cores < affinity:
        count = max(1, math.floor(quota.cores + 0.5))
        return _capped(count, f"a quota of {quota.cores:.3g} cores ({quota.file})")
    return _capped(affinity, "the cores that the process may use")


def _capped(count: int, source: str) -> ThreadChoice:
    if count <= MAX_THREADS:
        return ThreadChoice(count, source)
    return ThreadChoice(MAX_THREADS, f"the most that pays for one operation, of {count}: {source}")


@functools.cache
def _default(setting: tuple[str, int] | None) -> ThreadChoice:
    return _choose(setting, cpu_quota(), _affinity())


def thread_choice() -> ThreadChoice:
    """The number of threads that this process starts with."""
    return _default(thread_setting())


@functools.cache
def cpu_count() -> int:
    """The cores that this process can keep busy.

    By affinity and quota. Settings of threads do not count.
    """
    quota = cpu_quota()
    limit = math.inf if quota is None else max(1, math.floor(quota.cores + 0.5))
    return int(min(_affinity(), limit))
