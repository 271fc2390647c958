"""Threads follow affinity, cgroup quotas and settings; the number comes with its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as tf
from headrace.runtime import cores
from headrace.runtime import thread_pool as pool
from headrace.runtime.cores import ThreadChoice, cpu_quota
from tests.instruction_sets import SETTINGS, numeric_files

V2_MOUNT = "30 23 0:26 {root} /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "33 32 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
OTHER_MOUNTS = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n34 32 0:30 / /sys/fs/cgroup/memory rw - cgroup "
    "cgroup rw,memory\n"
    "a line that is cut off\n"
)


def machine(root: Path, mounts: str, groups: str, files: dict[str, str]) -> str:
    """A folder with the files of a machine in it."""
    everything = {"proc/self/mountinfo": OTHER_MOUNTS + mounts, "proc/self/cgroup": groups, **files}
    for name, text in everything.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("50000 100000", 0.5),
        ("150000 100000", 1.5),
        ("max 100000", None),
        ("", None),
        ("nonsense", None),
        ("-1 100000", None),
        ("100000 0", None),
    ],
)
def test_version_2(tmp_path: Path, limit: str, expected: float | None) -> None:
    files = {"sys/fs/cgroup/cpu.max": limit}
    quota = cpu_quota(machine(tmp_path, V2_MOUNT.format(root="/"), "0::/\n", files))
    assert (quota and quota.cores) == expected
    assert quota is None or quota.file == "/sys/fs/cgroup/cpu.max"


def test_version_2_takes_the_tightest_of_the_groups_above(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/a/b/cpu.max": "400000 100000",
        "sys/fs/cgroup/a/cpu.max": "200000 100000",
        "sys/fs/cgroup/cpu.max": "max 100000",
        "sys/fs/cgroup/other/cpu.max": "10000 100000",
    }
    quota = cpu_quota(machine(tmp_path, V2_MOUNT.format(root="/"), "0::/a/b\n", files))
    assert quota is not None and (quota.cores, quota.file) == (2.0, "/sys/fs/cgroup/a/cpu.max")


@pytest.mark.parametrize(("limit", "expected"), [("50000", 0.5), ("800000", 8.0), ("-1", None)])
def test_version_1(tmp_path: Path, limit: str, expected: float | None) -> None:
    """In a container whose group is mounted as the root, the path in /proc is the host's."""
    groups = "12:memory:/docker/c1\n4:cpu,cpuacct:/docker/c1\n1:name=systemd:/docker/c1\n"
    folder = "sys/fs/cgroup/cpu,cpuacct"
    files = {f"{folder}/cpu.cfs_quota_us": limit, f"{folder}/cpu.cfs_period_us": "100000\n"}
    quota = cpu_quota(machine(tmp_path, V1_MOUNT.format(root="/docker/c1"), groups, files))
    assert (quota and quota.cores) == expected


def test_version_1_below_the_mounted_group_and_both_versions(tmp_path: Path) -> None:
    groups = "4:cpu,cpuacct:/jobs/7\n0::/jobs\n"
    files = {
        "sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/unified/jobs/cpu.max": "250000 100000",
    }
    mounts = V1_MOUNT.format(root="/") + V2_MOUNT.format(root="/").replace(
        "/sys/fs/cgroup", "/sys/fs/cgroup/unified"
    )
    quota = cpu_quota(machine(tmp_path, mounts, groups, files))
    assert quota is not None and quota.cores == 2.5


def test_no_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(str(tmp_path)) is None
    assert cpu_quota(machine(tmp_path, "", "", {})) is None
    outside = machine(tmp_path, V2_MOUNT.format(root="/x"), "0::/../../y\n", {})
    assert cpu_quota(outside) is None


def choice(
    cores_allowed: float | None, affinity: int, setting: tuple[str, int] | None = None
) -> ThreadChoice:
    quota = None if cores_allowed is None else cores.Quota(cores_allowed, "/sys/fs/cgroup/cpu.max")
    return cores._choose(setting, quota, affinity)


def test_a_number_with_its_reason() -> None:
    half = choice(0.5, 64)
    assert half.count == 1 and "0.5 cores (/sys/fs/cgroup/cpu.max)" in half.source
    assert choice(1.5, 64).count == 2 and choice(2.2, 64).count == 2
    assert choice(8.0, 2) == ThreadChoice(2, "the cores that the process may use")
    assert choice(None, 64).count == 16 and "of 64" in choice(None, 64).source
    assert choice(0.5, 64, ("OMP_NUM_THREADS", 3)) == ThreadChoice(3, "OMP_NUM_THREADS")


def test_settings_of_the_process_and_of_a_session() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(0)  # whatever other tests left
    before = pool.chosen_threads()
    tf.config.threading.set_intra_op_parallelism_threads(3)
    try:
        assert pool.chosen_threads() == ThreadChoice(3, "tf.config.threading")
        assert pool.thread_count() == 3
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert pool.chosen_threads() == before
    seen = []
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        session.run(tf.py_func(lambda: seen.append(pool.thread_count()) or 0.0, [], tf.float64))
    assert seen == [1] and pool.thread_count() == before.count


_COUNT = """
import builtins, sys
real = builtins.open
def fake(path, *args, **kwargs):
    limited = str(path).startswith(("/proc/self/cgroup", "/proc/self/mountinfo", "/sys/fs/cgroup"))
    return real(sys.argv[1] + path if limited else path, *args, **kwargs)
builtins.open = fake
import headrace as tf, numpy as np
x = tf.placeholder(tf.float32, [None, 512])
w = np.ones((512, 512), "f")
y = tf.matmul(tf.tanh(tf.matmul(x, tf.constant(w))), tf.constant(w))
with tf.Session() as session:
    for _ in range(3):
        session.run(y, {x: np.ones((256, 512), "f")})
status = open("/proc/self/status").read()
print([line for line in status.splitlines() if line.startswith("Threads")][0].split()[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_half_a_core_starts_no_threads(tmp_path: Path) -> None:
    """NumPy's, OpenMP's and our own threads, counted by the system."""
    files = {"sys/fs/cgroup/cpu.max": "50000 100000"}
    fake = machine(tmp_path, V2_MOUNT.format(root="/"), "0::/\n", files)
    names = (
        "HEADRACE_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    )
    plain = {k: v for k, v in os.environ.items() if k not in names}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, fake],
        capture_output=True,
        text=True,
        env={**plain, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


def test_version_says_what_it_runs_on() -> None:
    environment = {
        **os.environ,
        "HEADRACE_ONEDNN": "0",
        "HEADRACE_NUM_THREADS": "3",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "version"],
        capture_output=True,
        text=True,
        env=environment,
    )
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert set(lines) >= {"headrace", "python", "cpu", "kernels", "threads", "missing"}
    assert lines["threads"] == "3: HEADRACE_NUM_THREADS"
    assert "numpy" in lines["python"] and lines["kernels"] == "NumPy alone"
    assert "HEADRACE_ONEDNN" in lines["missing"] and "times as long" in lines["missing"]


def test_the_numeric_tests_of_each_instruction_set_are_there() -> None:
    """Files that were renamed would otherwise drop out of ``tools/check`` unseen."""
    for setting in SETTINGS:
        assert len(numeric_files(setting)) > 15
