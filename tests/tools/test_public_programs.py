"""The parts of tools/public_programs.py: list, made-up data, a run, comparison, table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tools.programs.program_compare import compare_output
from tools.programs.program_data import make_data
from tools.programs.program_forks import LoadedEngine
from tools.programs.program_page import MARK, write_page
from tools.programs.program_run import Engine, Program, Repository, copy_repository, run_program
from tools.public_programs import LIST, find_clone, format_table, read_list

import headrace as tf

_PROGRAM = """
import tensorflow as tf
x = tf.random_uniform([2])
with tf.Session() as sess:
    for _ in range(STEPS):
        print("x", sess.run(x))
"""


def test_the_list_can_be_read() -> None:
    repositories = read_list(LIST)
    assert len(repositories) >= 10
    assert all(len(r.commit) == 40 and r.programs for r in repositories)


@pytest.mark.parametrize(
    ("expected", "got", "verdict"),
    [
        ("loss 1.2345 at 3", "loss 1.2346 at 3", "same (2 numbers)"),
        ("[1. 2.]", "[ 1.  2.5]", "1 of 2 numbers"),
        ("[10, 32]", "[np.int32(10), np.int32(32)]", "same (2 numbers)"),
        ("took 3 seconds\nok nan", "took 4 seconds\nok nan", "same (1 numbers)"),
        ("one", "two", "other text"),
    ],
)
def test_comparison(expected: str, got: str, verdict: str) -> None:
    assert compare_output(expected, got).verdict() == verdict


def test_comparison_of_what_both_printed() -> None:
    whole, start = "a 1\nb 2\nc 3", "a 1\nb 2"
    assert compare_output(whole, start).verdict() == "other text"
    assert compare_output(whole, start, cut=True).verdict() == "same (2 numbers)"
    assert compare_output(start, whole, cut=True).verdict() == "same (2 numbers)"


def _run(result: str, cpu: float, reason: str = "") -> dict:
    return {
        "result": result, "seconds": 1.0, "runs": 12, "run_seconds": 0.5, "cpu_seconds": cpu,
        "reason": reason, "cut": False,
    }  # fmt: skip


def test_the_page_is_counted_from_the_rows(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Own text\n\n{MARK}\n\nold table\n")
    rows = [
        {"path": path, "tensorflow": a, "headrace": b, "output": output, "repository": "some/one",
         "commit": "c" * 40, "args": [], "shortened": False, "note": ""}
        for path, a, b, output in (
            ("quick.py", _run("ok", 2.0), _run("ok", 1.0), "same (2 numbers)"),
            ("slow.py", _run("ok", 1.0), _run("ok", 2.0), "other text"),
            ("here.py", _run("fails", 0.1, "AttributeError: mul"), _run("ok", 0.1), "other text"),
        )
    ]  # fmt: skip
    write_page(page, rows, "d" * 40)
    text = page.read_text()
    assert text.startswith("# Own text") and "old table" not in text
    assert "3 programs of 1 repositories, all run at commit `dddddddddd`" in text
    assert "2 end well on both, 1 of them with the same text" in text
    assert "1 end well on Headrace only, 0 on TensorFlow only" in text
    assert "More processor time here than on TensorFlow (1): `some/one` slow.py" in text
    assert "| here.py | fails: AttributeError: mul | ok |  | 12 |" in text
    write_page(page, rows, "")
    assert page.read_text().count(MARK) == 1


def test_made_up_mnist_is_read(tmp_path: Path) -> None:
    make_data("mnist", tmp_path / "mnist")
    data = tf.contrib.learn.datasets.mnist.read_data_sets(str(tmp_path / "mnist"))
    assert data.train.images.shape == (1000, 784) and data.test.labels.max() == 9


def test_one_program(tmp_path: Path) -> None:
    clone = tmp_path / "clones" / "someone" / "some"
    clone.mkdir(parents=True)
    (clone / "draw.py").write_text(_PROGRAM)
    assert find_clone(tmp_path / "clones", "someone/some") == clone
    program = Program("draw.py", edits=(("draw.py", "STEPS", "2"),))
    repository = Repository("someone/some", "0" * 40, (program,))
    copy_repository(clone, tmp_path / "copy")
    engine = Engine("headrace", (sys.executable, "-m", "headrace", "run"), tuple(sys.path))
    done = [run_program(program, repository, tmp_path / "copy", engine, 120) for _ in range(2)]
    assert done[0].result() == "ok", done[0].stderr
    assert done[0].runs == 2 and done[0].run_seconds > 0
    assert done[0].stdout == done[1].stdout  # the graph has a seed


def test_table() -> None:
    run = {"result": "ok", "seconds": 1.0, "cpu_seconds": 0.5, "run_seconds": 0.25, "reason": ""}
    row = {
        "repository": "a/b", "commit": "c" * 40, "path": "d.py", "args": ["--x"], "shortened": True,
        "tensorflow": run, "headrace": {**run, "result": "fails", "reason": "E: a | b"},
        "output": "same text",
    }  # fmt: skip
    lines = format_table([row]).splitlines()
    assert lines[-1].startswith("| d.py `--x` (shortened) | ok | fails: E: a \\| b | same text | ")


def test_a_program_in_a_fork(tmp_path: Path) -> None:
    """`--forked`: the same printed numbers, and an end after the largest number of runs."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "draw.py").write_text(_PROGRAM.replace("STEPS", "9"))
    program = Program("draw.py")
    repository = Repository("someone/some", "0" * 40, (program,))
    engine = Engine("headrace", (sys.executable, "-m", "headrace", "run"), tuple(sys.path))
    alone = run_program(program, repository, clone, engine, 120)
    loaded = LoadedEngine(engine, max_runs=4, cpu_limit=60)
    try:
        forks = [loaded.run(program, repository, clone, 120) for _ in range(2)]
    finally:
        loaded.close()
    assert forks[0].exit_code == 0 and forks[0].runs == 4, forks[0].stderr
    assert forks[0].stdout == forks[1].stdout and alone.stdout.startswith(forks[0].stdout)
