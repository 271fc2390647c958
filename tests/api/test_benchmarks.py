"""``tf.test.Benchmark``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as tf

_PROGRAM = """
import tensorflow as tf

class Products(tf.test.Benchmark):
    def benchmarkSquare(self):
        with tf.Session() as session:
            found = self.run_op_benchmark(
                session, tf.ones([4, 4]) * 2, min_iters=3, mbs=1, store_trace=True)
        assert found["iters"] == 3 and found["wall_time"] > 0 and found["throughput"] > 0
        assert "traceEvents" in found["extras"]["full_trace_chrome_format"]

    def benchmarkOther(self):
        self.report_benchmark(wall_time=0.5, extras={"rows": 3, "kind": "x"}, name="named")

class ProductTest(tf.test.TestCase):
    def testNothing(self):
        print("tested")

if __name__ == "__main__":
    tf.test.main()
"""
_NAMED = """entry {
  name: "Products.named"
  wall_time: 0.5
  extras {
    key: "rows"
    value {
      double_value: 3.0
    }
  }
  extras {
    key: "kind"
    value {
      string_value: "x"
    }
  }
}

"""


@pytest.mark.parametrize(
    ("argument", "reported", "tested"),
    [("--benchmarks=all", 2, False), ("--benchmarks=.*Other", 1, False), (None, 0, True)],
)
def test_what_runs(tmp_path: Path, argument: str | None, reported: int, tested: bool) -> None:
    file = tmp_path / "products_test.py"
    file.write_text(_PROGRAM)
    command = [
        sys.executable,
        "-m",
        "headrace",
        "run",
        str(file),
        *([argument] if argument else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("entry {") == reported
    assert ("tested" in done.stdout) == tested
    if argument == "--benchmarks=.*Other":
        assert done.stdout == _NAMED


def test_what_is_refused() -> None:
    class Some(tf.test.Benchmark):
        def report(self, **arguments: Any) -> None:
            self.report_benchmark(**arguments)

    with pytest.raises(TypeError, match="extras must be a dict"):
        Some().report(extras=[1])
    with pytest.raises(TypeError, match="metric must has a 'value' field"):
        Some().report(metrics=[{"name": "m"}])
    assert tf.test.Benchmark.is_abstract() and not Some.is_abstract()
