"""Memory and speed of large checkpoints: ``python tools/large_checkpoint.py --gigabytes 2``.

One process makes variables of that size and saves them, another restores them; each reports the
most memory that it had beyond what the variables take, and its speed. Nothing is left behind.

    --limit 0.2    fail if the extra memory is more than this part of the variables
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "src"))
#: Bytes of one variable.
PART = 64 << 20


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _variables(tf: Any, gigabytes: float) -> list[Any]:
    count = max(1, round(gigabytes * (1 << 30) / PART))
    return [
        tf.get_variable(f"v{i}", [PART // 4], initializer=tf.zeros_initializer())
        for i in range(count)
    ]


def work(what: str, gigabytes: float, folder: str) -> dict[str, float]:
    """Save or restore in this process."""
    import headrace as tf

    made = _variables(tf, gigabytes)
    saver = tf.train.Saver()
    path = os.path.join(folder, "model")
    with tf.Session() as sess:
        if what == "save":
            sess.run(tf.global_variables_initializer())
        before, start = _most_memory(), time.perf_counter()
        if what == "save":
            saver.save(sess, path, write_meta_graph=False)
            held = before
        else:
            saver.restore(sess, path)
            held = before + len(made) * PART
        seconds = time.perf_counter() - start
        checked = float(sess.run(made[-1][:3]).sum())
    extra = max(0, _most_memory() - held)
    size = len(made) * PART
    return {"bytes": size, "extra": extra, "seconds": seconds, "sum": checked}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--limit", type=float, default=0.2)
    parser.add_argument("--work", choices=("save", "restore"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options.work, options.gigabytes, options.folder)))
        return
    folder, failed = tempfile.mkdtemp(), False
    try:
        for what in ("save", "restore"):
            command = [sys.executable, __file__, "--work", what, "--folder", folder]
            command += ["--gigabytes", str(options.gigabytes)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            part = found["extra"] / found["bytes"]
            failed |= part > options.limit
            print(
                f"{what:8} {found['bytes'] / 2**30:.2f} GiB in {found['seconds']:.1f} s "
                f"({found['bytes'] / 2**20 / found['seconds']:.0f} MiB/s), extra memory "
                f"{found['extra'] / 2**20:.0f} MiB ({part:.0%} of the variables)"
            )
    finally:
        shutil.rmtree(folder)
    sys.exit(failed)


if __name__ == "__main__":
    main()
