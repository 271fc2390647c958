"""Runs tests/eager/test_eager_programs.py on TensorFlow 2, which is the judge of its values.

    TensorFlow 2's Python, with pytest: python tests/golden/judge_eager_programs.py

The file's ``tf`` and ``tf1`` are TensorFlow's then. Every test must pass but those of ``OWN``,
which are about what Headrace does otherwise. The exit status is 1 if another one fails.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

#: Tests that TensorFlow does not pass, with the reason.
OWN: dict[str, str] = {
    "test_an_eager_tensor_is_fed": "TensorFlow refuses a tensor as feed value",
    "test_batches_of_a_dataset_are_fed": "TensorFlow refuses a tensor as feed value",
    "test_an_eager_tensor_cannot_be_fetched": "another class of error, and what to do in the text",
    "test_a_retrace_is_compared_with_the_latest_like_it": "explain_retracing is Headrace's own",
    "test_a_function_that_is_always_traced_keeps_a_bounded_history": (
        "explain_retracing is Headrace's own"
    ),
    "test_jumps_out_of_loops": "TensorFlow refuses a return without a value on the other path",
    "test_names_of_contrib_eager": "TensorFlow 2 has no contrib",
    "test_a_dataset_of_tf_1_in_words": "TF 1.15's text",
    "test_the_table_has_every_op": "Headrace's own table",
    "test_a_missing_name_of_compat_v1_is_known": "Headrace's own message",
}

ROOT = Path(__file__).resolve().parents[2]


def _stand_in(name: str, **members: Any) -> None:
    """A module under a name of Headrace's that holds TensorFlow's things."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


def main() -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import pytest
    import tensorflow as tf

    _stand_in("headrace")
    _stand_in("headrace.api", v1=tf.compat.v1, v2=tf)
    sys.modules["headrace.api.v1"], sys.modules["headrace.api.v2"] = tf.compat.v1, tf
    _stand_in("headrace.cli", ops_table=None)
    sys.path.insert(0, str(ROOT))  # (for the package ``tests``)
    _stand_in("tests.eager_fixture", v2_behavior=None)
    failed: list[str] = []

    class Recorder:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid.rpartition("::")[2])

    file = str(ROOT / "tests" / "eager" / "test_eager_programs.py")
    pytest.main(
        [
            "-q",
            "--noconftest",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            os.sep,
            "-c",
            os.devnull,
            file,
        ],
        plugins=[Recorder()],
    )
    other = sorted(set(failed) - set(OWN))
    needless = sorted(set(OWN) - set(failed))
    print("fail on TensorFlow, and should not:", other or "none")
    print("named in OWN, and pass:", needless or "none")
    return 1 if other or needless else 0


if __name__ == "__main__":
    sys.exit(main())
