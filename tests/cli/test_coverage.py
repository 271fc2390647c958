"""``headrace coverage``: names that exist, and names that are compared with TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli import symbol_check
from headrace.cli.main import main


def coverage(usage: Path, text: str, *options: str) -> int:
    usage.write_text(text)
    return main(["coverage", "--usage", str(usage), *options])


def test_a_program_counts_if_all_its_names_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "tf.constant tf.Session\ntf.constant tf.no_such_name\n"
    assert coverage(tmp_path / "usage", text) == 0
    out = capsys.readouterr().out
    assert "1 of 2 programs covered: 50.0 %" in out
    assert "tf.no_such_name, 1 only that" in out


def test_with_tested_only_compared_names_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # tf.logging.flush raises in TF 1.15, so nothing compares it
    text = "tf.constant tf.Session\ntf.logging.flush\n"
    assert coverage(tmp_path / "usage", text, "--tested") == 0
    out = capsys.readouterr().out
    assert "1 of 2 programs covered by compared names: 50.0 %" in out
    assert "tf.logging.flush, 1 only that" in out


def test_aliases_and_attributes_of_classes_count() -> None:
    assert symbol_check.tested("feature_column.input_layer")
    assert symbol_check.tested("compat.v1.placeholder")
    assert symbol_check.tested("GraphKeys.GLOBAL_VARIABLES")
    assert symbol_check.tested("app.flags.batch_size")  # a flag of the program's own
    assert not symbol_check.tested("no_such_name")


def test_compared_names_occur_in_compared_programs() -> None:
    """tested.txt is written by tools/tested_symbols.py; a name that no source has is stale."""
    tests = Path(__file__).parents[1]
    folders = [tests / "golden", tests / "data", tests / "ops", tests.parent / "tools/differential"]
    text = "\n".join(
        p.read_text(encoding="utf-8", errors="replace")
        for folder in folders
        for p in folder.rglob("*")
        if p.suffix in (".py", ".txt")
    )
    names, _ = symbol_check._tested_objects()
    namespaces = {n.rpartition(".")[0] for n in names}
    stale = [
        n for n in names
        if n not in namespaces and n.rpartition(".")[2] not in text and n.count(".") < 3
    ]  # fmt: skip
    assert len(stale) < len(names) // 20, stale
