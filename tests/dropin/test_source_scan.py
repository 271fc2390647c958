"""Names found in source without running it, and the API that a program is written for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.dropin.source_scan import choose_api, symbols_of_source


def found(source: str) -> list[str]:
    return [u.symbol for u in symbols_of_source(source, "program.py")]


def test_names_through_imports_and_aliases() -> None:
    source = """
import tensorflow as tf
from tensorflow.contrib import rnn
import tensorflow.contrib.slim as slim
layers = tf.layers
tf.nn.relu(1)
rnn.LSTMCell(3)
slim.conv2d(x)
layers.dense(x, 3)
self.tf.nothing
"""
    assert found(source)[-4:] == [
        "nn.relu",
        "contrib.rnn.LSTMCell",
        "contrib.slim.conv2d",
        "layers.dense",
    ]


@pytest.mark.parametrize(
    ("source", "api"),
    [
        ("import tensorflow as tf\nwith tf.Session() as s: pass", "v1"),
        ("import tensorflow as tf\nx = tf.constant(1)\nprint(x.numpy())", "v2"),
        ("import tensorflow as tf\n@tf.function\ndef f(x): return x", "v2"),
        (
            "import tensorflow as tf\ntf.enable_eager_execution()\nprint(tf.constant(1).numpy())",
            "v1",
        ),
        ("import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n", "v1"),
        ("import tensorflow as tf\nprint(tf.constant(1))", "v1"),
        ("import tensorflow as tf\nfor x in tf.data.Dataset.range(3).batch(2): print(x)", "v2"),
        (
            "import tensorflow as tf\nd = tf.data.Dataset.range(3)\nd = d.batch(2)\n"
            "for i, x in enumerate(d): print(x)",
            "v2",
        ),
        (
            "import tensorflow as tf\nd = tf.data.Dataset.range(3).make_one_shot_iterator()\n"
            "for x in d.get_next(): print(x)",
            "v1",
        ),
        ("import tensorflow as tf\nx = tf.ones([2])\nif tf.reduce_sum(x) > 1: print(x)", "v2"),
        (
            "import tensorflow as tf\nfor x in tf.data.Dataset.range(3): print(x)\ntf.Session()",
            "v1",
        ),
    ],
)
def test_the_api_that_a_program_is_written_for(tmp_path: Path, source: str, api: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(source)
    assert choose_api(script).api == api


def test_modules_beside_the_script_count(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\nimport model\n@tf.function\ndef f(): pass"
    )
    (tmp_path / "model.py").write_text("import tensorflow as tf\nx = tf.placeholder(tf.float32)")
    choice = choose_api(tmp_path / "main.py")
    assert choice.api == "v1" and "model.py:2 uses tf.placeholder" in choice.reason


def test_a_module_is_found_without_importing_its_package(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow")
    (package / "__main__.py").write_text("from package import model\nmodel.show()")
    (package / "model.py").write_text(
        "import tensorflow as tf\ndef show(): print(tf.constant(3).numpy())"
    )
    for name in ("package", "package.__main__"):
        done = headrace("run", "-m", name, cwd=tmp_path)
        assert done.stdout == "3\n", done.stderr


def headrace(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *args],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        cwd=cwd,
    )


def test_run_says_which_api_it_chose_when_that_may_be_wrong(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import tensorflow as tf\nx = tf.placeholder(tf.float32)\nprint(x.numpy())")
    done = headrace("run", str(script))
    assert done.returncode == 1
    assert "program.py:2 uses tf.placeholder" in done.stderr and "--api v2" in done.stderr
    done = headrace("run", "--api", "v2", str(script))
    assert "tf.compat.v1.placeholder" in done.stderr and "--api v1" in done.stderr
    assert "Did you mean" not in done.stderr


def test_check_lists_missing_names_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n\ntf.nn.reluu(1)\ntf.nn.relu(1)\n")
    (tmp_path / "b.py").write_text("print 'Python 2'\n")
    done = headrace("check", str(tmp_path))
    assert done.returncode == 1
    assert "a.py:3: " in done.stdout and "tf.nn.relu" in done.stdout
    assert "b.py:1: not Python 3" in done.stdout
    (tmp_path / "b.py").unlink()
    (tmp_path / "a.py").write_text("import tensorflow as tf\ntf.nn.relu(1)\n")
    assert headrace("check", str(tmp_path)).returncode == 0


def test_coverage_counts_programs(tmp_path: Path) -> None:
    usage = tmp_path / "usage.txt"
    usage.write_text("tf.nn.relu tf.Session\ntf.nn.reluu\ntf.flags.FLAGS.rate tf.Session\n")
    done = headrace("coverage", "--usage", str(usage))
    assert "2 of 3 programs covered: 66.7 %" in done.stdout and "tf.nn.reluu" in done.stdout


def test_check_knows_eager_files_and_mocks(tmp_path: Path) -> None:
    eager, graph = tmp_path / "eager.py", tmp_path / "graph.py"
    eager.write_text(
        "import tensorflow as tf\n"
        "writer = tf.summary.create_file_writer('x')\n"
        "tf.optimizers.SGD(0.1)\n"
        "tf.no_such_name\n"
    )
    # create_file_writer alone is TF 2's; the attribute is a mock's, which a test put there
    graph.write_text(
        "import tensorflow as tf\n"
        "tf.Session()\n"
        "print(tf.summary.scalar.call_count)\n"
        "tf.summary.create_file_writer('x')\n"
    )
    done = headrace("check", str(tmp_path))
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line.split(": ")[0].rpartition("/")[2] for line in lines[:-1]] == [
        "eager.py:4",
        "graph.py:4",
    ]
    assert lines[-1] == "2 files, 2 uses of missing names"
