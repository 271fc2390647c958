"""Models in files from the command line: inspect, explain, predict, freeze."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.cli.main import main

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = GOLDEN / "saved_models"


def want(name: str) -> np.ndarray:
    return np.asarray(json.loads((MODELS / f"{name}.json").read_text())["y"], np.float32)


@pytest.mark.parametrize("source", ["tf1", "tf1_checkpoint/model-0.meta"])
def test_freeze_and_predict(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = tmp_path / "frozen.pb"
    assert main(["freeze", str(MODELS / source), "-o", str(frozen), "--outputs", "y"]) == 0
    message = tf.GraphDef()
    message.ParseFromString(frozen.read_bytes())
    assert not [n for n in message.node if "Var" in n.op]
    np.save(tmp_path / "x.npy", np.float32([[1, 2, 3]]))
    results = tmp_path / "out.npz"
    assert (
        main(["predict", str(frozen), "--input", f"x={tmp_path / 'x.npy'}", "-o", str(results)])
        == 0
    )
    np.testing.assert_allclose(np.load(results)["y"], want("tf1"), rtol=1e-5)
    assert "y: float32 [1, 2]" in capsys.readouterr().out


def test_predict_with_a_model_of_tf2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "out.npz"
    arguments = ["predict", str(MODELS / "module"), "--input", "x=[[1, 2, 3]]", "-o", str(results)]
    assert main(arguments) == 0
    np.testing.assert_allclose(np.load(results)["y"], want("module"), rtol=1e-5)


@pytest.mark.parametrize("name", ["keras", "lstm"])
def test_frozen_models_of_tf2(name: str, tmp_path: Path) -> None:
    frozen, results = tmp_path / "f.pb", tmp_path / "out.npz"
    assert main(["freeze", str(MODELS / name), "-o", str(frozen)]) == 0
    noted = json.loads((MODELS / f"{name}.json").read_text())
    np.save(tmp_path / "x.npy", np.asarray(noted["x"], np.float32))
    message = tf.GraphDef()
    message.ParseFromString(frozen.read_bytes())
    given = next(n.name for n in message.node if n.op == "Placeholder")
    assert (
        main(
            ["predict", str(frozen), "--input", f"{given}={tmp_path / 'x.npy'}", "-o", str(results)]
        )
        == 0
    )
    (found,) = np.load(results).values()
    np.testing.assert_allclose(found, want(name), rtol=1e-5, atol=1e-6)


def test_a_model_that_writes_is_not_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["freeze", str(MODELS / "module"), "-o", str(tmp_path / "f.pb")]) == 1
    assert "AssignAddVariableOp" in capsys.readouterr().err


def test_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(MODELS / "tf1")]) == 0
    text = capsys.readouterr().out
    for part in (
        "tags: serve",
        "signature loop",
        "input  x: x:0  float32 [?, 3]",
        "asset words.txt",
        "variable w",
        "every op is defined here",
    ):
        assert part in text
    assert main(["inspect", str(MODELS / "tf1_checkpoint" / "model-0")]) == 0
    assert "w  float32 [3, 2]" in capsys.readouterr().out


def test_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(MODELS / "keras")]) == 0
    assert "Conv2D" in capsys.readouterr().out


def test_missing_ops_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tf.GraphDef()
    message.node.add(name="a", op="SomethingElse")
    (tmp_path / "g.pb").write_bytes(message.SerializeToString())
    assert main(["inspect", str(tmp_path / "g.pb")]) == 0
    assert "not defined here: SomethingElse (1)" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "g.pb")]) == 1
    assert "SomethingElse" in capsys.readouterr().err


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "nothing.pb")]) == 1
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff not a graph")
    assert main(["inspect", str(tmp_path / "bad.pb")]) == 1
    assert "does not hold a GraphDef" in capsys.readouterr().err
    assert main(["predict", str(MODELS / "tf1"), "--input", "x"]) == 1
    assert "NAME=FILE" in capsys.readouterr().err


def test_checkpoints_of_the_first_format_and_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.multiply(x, tf.Variable([2.0, 3.0], name="v"), name="y")
        sess.run(tf.global_variables_initializer())
        for folder, options in (("v1", {"write_version": 1}), ("v2", {"sharded": True})):
            (tmp_path / folder).mkdir()
            tf.train.Saver(**options).save(sess, str(tmp_path / folder / "model"))
    for path in ("v1", "v1/model", "v2", "v2/model", "v2/model.index"):
        assert main(["inspect", str(tmp_path / path)]) == 0
        text = capsys.readouterr().out
        assert "checkpoint of 1 tensors" in text and "8 bytes" in text
        assert "v  float32 [2]" in text
    for path in ("v1", "v1/model", "v1/model.meta", "v2", "v2/model", "v2/model.meta"):
        frozen = str(tmp_path / "frozen.pb")
        assert main(["freeze", str(tmp_path / path), "-o", frozen, "--outputs", "y"]) == 0
        assert main(["predict", frozen, "--input", "x=[1, 2]"]) == 0
        assert "[2. 6.]" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path)]) == 1
    assert "no checkpoints" in capsys.readouterr().err


def _saved(folder: Path) -> Path:
    """A SavedModel, and a checkpoint of two savers beside it."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.multiply(x, tf.Variable([2.0, 3.0], name="v"), name="y")
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, str(folder / "model"), {"a": x}, {"b": y})
        tf.train.Saver(sharded=True)
        tf.train.Saver().save(sess, str(folder / "checkpoint" / "model"))
    return folder


def test_savers_are_no_part_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _saved(tmp_path) / "checkpoint" / "model"
    assert main(["inspect", f"{path}.meta"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ends = [line.split()[1] for line in lines if line.startswith(("input", "output"))]
    assert ends == ["x", "y"]
    assert main(["freeze", str(path), "-o", str(tmp_path / "f.pb")]) == 0
    message = tf.GraphDef()
    message.ParseFromString((tmp_path / "f.pb").read_bytes())
    assert sorted(n.name for n in message.node) == ["v", "v/read", "x", "y"]


def test_tags_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(_saved(tmp_path) / "model")
    for command in (["explain", model], ["freeze", model, "-o", str(tmp_path / "f.pb")]):
        assert main([*command, "--tags", "serve"]) == 0
        assert main([*command, "--tags", "train"]) == 1
        assert "train" in capsys.readouterr().err


def test_what_predict_is_not_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(_saved(tmp_path) / "model")
    for arguments, text in (
        ([], "the model needs --input a=FILE, float32 (?, 2)"),
        (["--input", "q=1"], "the model has no tensor 'q'; its inputs are a; its outputs are b"),
        (["--input", "a=[[1, 2]]", "--outputs", "q"], "no tensor 'q'"),
        (["--input", "a=[[1, 2]]", "-o", str(tmp_path / "r.npy")], "to a .npz file"),
    ):
        assert main(["predict", model, *arguments]) == 1
        assert capsys.readouterr().err == f"headrace predict: {text}\n" or len(arguments) > 2
    assert not (tmp_path / "r.npy").exists()


def test_loops_of_frozen_models_wait_where_tensorflow_allows_it(tmp_path: Path) -> None:
    frozen = tmp_path / "f.pb"
    assert main(["freeze", str(MODELS / "lstm"), "-o", str(frozen)]) == 0
    message = tf.GraphDef()
    message.ParseFromString(frozen.read_bytes())
    exits = [n for n in message.node if n.op == "Exit"]
    assert exits
    assert not [n.name for n in exits if any(i.startswith("^") for i in n.input)]
