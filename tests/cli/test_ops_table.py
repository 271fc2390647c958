"""``headrace ops --where``: the place of an op, of a function, of neither."""

from __future__ import annotations

import pytest

from headrace.cli.main import main


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("MatMul", "ops/linalg/matmul.py"),
        ("tf.one_hot", "ops/array/one_hot.py"),
        ("layers.Dense", "layers/dense.py"),
    ],
)
def test_where(name: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--where", name]) == 0
    file, _, line = capsys.readouterr().out.strip().rpartition(":")
    assert file.endswith(place)
    assert int(line) > 1


def test_where_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--where", "matmull"]) == 1
    assert "near: MatMul" in capsys.readouterr().err
