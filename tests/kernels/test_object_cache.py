"""The disk cache of machine code: damaged files, limits, folders that cannot be written, kills and
concurrent writers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from headrace.kernels.native.object_cache import STALE_SECONDS, ObjectCache
from headrace.session import events

KEY = "ab" * 32


def only_file(folder):
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def test_what_was_put_is_found_by_another_process(tmp_path):
    folder = str(tmp_path / "deep" / "native")
    ObjectCache(folder, 1 << 20).put(KEY, b"code" * 100)
    other = ObjectCache(folder, 1 << 20)
    assert other.get(KEY) == b"code" * 100
    assert other.get("cd" * 32) is None
    assert (other.hits, other.misses) == (1, 1)


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "header", "longer"])
def test_damaged_files_are_ignored_and_written_again(tmp_path, damage):
    cache = ObjectCache(str(tmp_path), 1 << 20)
    cache.put(KEY, bytes(range(256)) * 10)
    path = only_file(tmp_path)
    with open(path, "rb") as file:
        content = bytearray(file.read())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "empty":
        content = bytearray()
    elif damage == "flipped":
        content[-7] ^= 1
    elif damage == "header":
        content[3] ^= 1
    else:
        content += b"more"
    with open(path, "wb") as file:
        file.write(content)
    assert cache.get(KEY) is None and cache.damaged == 1
    cache.put(KEY, b"new")
    assert cache.get(KEY) == b"new"


def test_the_oldest_files_go_when_the_folder_is_full(tmp_path):
    cache = ObjectCache(str(tmp_path), 5000)
    keys = [f"{n:064x}" for n in range(10)]
    for n, key in enumerate(keys):
        cache.put(key, bytes(900))
        os.utime(tmp_path / f"{key}.hro", (n, n))
        cache.get(keys[0])  # it is used: its time is now
    kept = [key for key in keys if cache.get(key) is not None]
    assert keys[0] in kept and keys[-1] in kept and keys[1] not in kept
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) <= 5000
    cache.put(KEY, bytes(9000))  # larger than the limit alone: it is kept, the others go
    assert cache.get(KEY) is not None and len(os.listdir(tmp_path)) == 1


def test_half_written_files_of_killed_processes_go(tmp_path):
    cache = ObjectCache(str(tmp_path), 1 << 20)
    old, young = tmp_path / "tmp-old", tmp_path / "tmp-young"
    for file in (old, young):
        file.write_bytes(b"x")
    past = time.time() - STALE_SECONDS - 5
    os.utime(old, (past, past))
    cache.put(KEY, b"code")
    assert not old.exists() and young.exists()


def told(cache, key=KEY):
    """The events that a put makes."""
    found = []
    stop = events.listen(lambda name, data: found.append((name, data)))
    try:
        cache.put(key, b"code")
        cache.put(key, b"code")
    finally:
        stop()
    return [data for name, data in found if name == "native cache"]


def test_a_folder_that_is_a_file_is_no_cache_and_one_event(tmp_path):
    (tmp_path / "file").write_text("")
    cache = ObjectCache(str(tmp_path / "file"), 1 << 20)
    assert [d["folder"] for d in told(cache)] == [str(tmp_path / "file")]
    assert cache.get(KEY) is None and cache.problem


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_full_disk_is_no_cache_and_an_event(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tempfile.mkstemp", lambda prefix, dir: (os.open("/dev/full", os.O_WRONLY), "/dev/none/x")
    )
    cache = ObjectCache(str(tmp_path), 1 << 20)
    (event,) = told(cache)
    assert "space" in event["why"] and cache.get(KEY) is None


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder_can_be_read(tmp_path):
    cache = ObjectCache(str(tmp_path), 1 << 20)
    cache.put(KEY, b"code")
    os.chmod(tmp_path, 0o500)
    try:
        assert cache.get(KEY) == b"code"
        if os.geteuid():  # root writes everywhere
            assert told(cache, "cd" * 32)
    finally:
        os.chmod(tmp_path, 0o700)


def test_without_a_folder_nothing_is_kept():
    cache = ObjectCache("", 1 << 20)
    cache.put(KEY, b"code")
    assert cache.get(KEY) is None and cache.problem


def _write_and_read(folder, n):
    cache = ObjectCache(folder, 30_000)
    for i in range(60):
        key = f"{i % 12:064x}"
        cache.put(key, bytes([i % 12]) * 3000)
        found = cache.get(key)
        if found is not None and found != bytes([i % 12]) * 3000:
            os._exit(1)


def test_concurrent_writers_leave_whole_files(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_and_read, args=(str(tmp_path), n)) for n in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(120)
        assert w.exitcode == 0
    cache = ObjectCache(str(tmp_path), 30_000)
    for i in range(12):
        assert cache.get(f"{i:064x}") in (None, bytes([i]) * 3000)
    assert not cache.damaged


_ENDLESS = """
import sys
from headrace.kernels.native.object_cache import ObjectCache
cache = ObjectCache(sys.argv[1], 1 << 20)
print("ready", flush=True)
while True:
    for i in range(20):
        cache.put(f"{i:064x}", bytes([i]) * 20000)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_kills_leave_whole_files(tmp_path):
    for wait in (0.01, 0.05, 0.1):
        child = subprocess.Popen(
            [sys.executable, "-c", _ENDLESS, str(tmp_path)], stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        cache = ObjectCache(str(tmp_path), 1 << 20)
        for i in range(20):
            assert cache.get(f"{i:064x}") in (None, bytes([i]) * 20000)
        assert not cache.damaged
