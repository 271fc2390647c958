"""The benchmarks' models give the same numbers on both executors, and their harness says what it
should.

Other libraries are compared by ``python -m benchmarks --check``, which needs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import load
from benchmarks.checking import differing
from benchmarks.groups import GROUPS
from benchmarks.libraries import ENVIRONMENTS, LABELS, LIBRARIES
from benchmarks.models import MODELS, TINY
from benchmarks.models.in_sessions import inference, training
from benchmarks.page import write_page
from benchmarks.programs import PROGRAMS
from benchmarks.results import Results
from benchmarks.roofline import Machine
from benchmarks.rows import FLAT, Target
from benchmarks.table import limits_table, make_lines, make_table, markdown, plain

import headrace as tf
from tools import limited_peers

ROOT = Path(__file__).resolve().parent.parent.parent
models = pytest.mark.parametrize("name", TINY)


@models
def test_training_on_both_executors(name: str) -> None:
    losses = {}
    for executor in ("numpy", "reference"):
        step = training(tf, TINY[name], executor=executor)
        losses[executor] = [float(step()) for _ in range(4)]
    np.testing.assert_allclose(losses["numpy"], losses["reference"], rtol=2e-4)
    assert losses["numpy"][-1] < losses["numpy"][0]


@models
@pytest.mark.parametrize("batch", [1, 5])
def test_inference_on_both_executors(name: str, batch: int) -> None:
    got, want = (
        inference(tf, TINY[name], batch, executor=executor)() for executor in ("numpy", "reference")
    )
    assert got.dtype == np.float32 and got.shape == want.shape and len(got) == batch
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)


def test_both_ways_to_write_a_loop_are_one_model() -> None:
    unrolled, looped = (training(tf, TINY[name]) for name in ("lstm", "lstm_loop"))
    for _ in range(3):
        np.testing.assert_allclose(unrolled(), looped(), rtol=1e-5)


def test_first_loss_of_a_language_model_is_that_of_guessing() -> None:
    for name in ("lstm", "gpt"):
        model: Any = TINY[name]
        assert abs(float(training(tf, model)()) - np.log(model.vocabulary)) < 0.1


@pytest.mark.once
def test_counted_work() -> None:
    assert MODELS["mlp"].forward_work(128).flops == 2 * 128 * (784 * 512 + 512 * 512 + 512 * 10)
    assert MODELS["lenet"].forward_work(1).flops == 2 * (
        28 * 28 * 25 * 32 + 14 * 14 * 25 * 32 * 64 + 3136 * 1024 + 1024 * 10
    )
    # the ResNet-18 for CIFAR is known for its 0.56 billion multiply-adds
    assert round(MODELS["resnet"].forward_work(1).flops / 2e9, 2) == 0.56
    for model in MODELS.values():
        assert model.training_work().flops == 3 * model.training_forward_work().flops


@models
def test_tiny_models_have_the_parameters_of_the_full_ones(name: str) -> None:
    tiny, full = TINY[name].parameters(), MODELS[name].parameters()
    assert set(tiny) <= set(full)
    assert all(tiny[key].ndim == full[key].ndim for key in tiny)


# the harness ------------------------------------------------------------------------------------


def test_targets() -> None:
    bar = Target({"tf": 1}, of_best=0.95)
    assert bar.met(1.0, {"tf": 1.2, "jax": 0.96}) == "yes"
    assert bar.met(1.0, {"tf": 1.2, "jax": 0.94}) == "NO"
    assert bar.met(1.0, {"tf": 0.99}) == "NO"
    assert bar.met(1.0, {"jax": 2.0}) == ""
    assert bar.text(LABELS) == "1x TF, 0.95x the best"
    assert Target({"tf": 40, "jax": 1}).text(LABELS) == "40x TF, faster than jax"
    assert Target(at_most=FLAT).met(1.2, {}) == "yes"
    assert Target(at_most=FLAT).met(1.3, {}) == "NO"
    assert Target(at_most=FLAT).met(0.7, {}) == "unsure"


def measured() -> Results:
    """A made-up run: TensorFlow takes twice our time, torch half of it, jax fails."""
    results = Results({"headrace": "headrace 0", "tf": "tensorflow 0"}, about={"date": "today"})
    for case in (*GROUPS["models"].cases(), *GROUPS["inference"].cases()):
        for library, seconds in {"headrace": 0.4, "tf": 0.8, "torch": 0.2}.items():
            results.add(library, case, {"run": [seconds, seconds * 2, seconds * 1.5]})
        results.failures["jax", case] = "RuntimeError: no"
    for case, seconds in {"gemm": 0.1, "copy_memory": 0.02, "copy_cache": 1e-5}.items():
        results.add("numpy", case, {"run": [seconds]})
    return results


def test_table() -> None:
    table = make_table(GROUPS["models"], measured())
    assert table.headings == ["case", "headrace", "TF", "jax", "torch", "must", "met"]
    assert table.cells[0][1:] == [
        "400 / 600 ms",
        "800 / 1200 ms (2x)",
        "failed",
        "200 / 300 ms (0.5x)",
        "1x TF, 0.95x the best",
        "NO",
    ]
    assert table.notes[0] == "jax, mlp.train: RuntimeError: no"
    assert "RuntimeError: no" in plain(table) and "RuntimeError: no" in markdown(table)


@pytest.mark.once
def test_limits() -> None:
    results = measured()
    machine = Machine.of(results, min)
    assert machine is not None and machine.flops == 2 * 2048**3 / 0.1
    table = limits_table(GROUPS["models"], results, machine)
    assert table is not None
    share = MODELS["gpt"].training_work().flops / machine.flops / 0.4
    assert table.cells[-1][3] == f"{share:.0%}"
    results.quick = True
    assert Machine.of(results, min) is None


def test_results_are_read_back() -> None:
    results = measured()
    again = Results.from_json(results.to_json())
    assert again == results
    lines, others = (make_lines(GROUPS["models"], each) for each in (results, again))
    assert [line.texts for line in lines] == [line.texts for line in others]


def test_pieces_of_a_run_are_joined() -> None:
    first, second = Results(about={"machine": "a"}, load=0.2), Results(about={"machine": "a"})
    first.add("tf", "mlp.train", {"run": [1.0]})
    second.add("tf", "mlp.train", {"run": [2.0]})
    second.add("tf", "gpt.train", {"run": [3.0]})
    whole = Results.joined([first, second])
    assert whole.rounds["tf", "mlp.train"] == [{"run": [2.0]}]
    assert whole.rounds["tf", "gpt.train"] == [{"run": [3.0]}]
    assert whole.load == 0.2
    with pytest.raises(ValueError, match="different machines"):
        Results.joined([first, Results(about={"machine": "b"})])


def test_another_class_of_cpu_has_tables_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text())
    usual = _part(page, "models")
    results = measured()
    results.about["instructions"] = "AVX2"
    write_page(tmp_path, results)
    assert _part(page, "models") == usual
    assert "400 / 600 ms" in _part(page, "models, AVX2")
    assert not (tmp_path / "benchmarks").exists()


def test_check_finds_a_library_that_is_away() -> None:
    results = Results()
    results.add("headrace", "mlp.check", {"losses": [1.0, 0.9], "logits": [0.1, 0.2]})
    results.add("tf", "mlp.check", {"losses": [1.0, 0.9], "logits": [0.1, 0.2]})
    results.add("ort", "mlp.check", {"logits": [0.1, 0.2]})
    assert differing(results) == []
    results.add("jax", "mlp.check", {"losses": [1.0, 0.8], "logits": [0.1, 0.2]})
    results.failures["torch", "mlp.check"] = "no"
    assert differing(results) == [("torch", "mlp.check"), ("jax", "mlp.check")]


def test_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text())
    engine = _part(page, "engine")
    results = measured()
    results.load = 3.0
    write_page(tmp_path, results)
    assert _part(page, "engine") == engine, "the run did not measure it"
    part = _part(page, "models")
    assert "400 / 600 ms" in part and "NOT TO BE QUOTED" in part
    pictures = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert pictures == {"models.png", "inference.png", "roofline.png"}
    assert "](benchmarks/models.png)" in part


def _part(page: Path, group: str) -> str:
    text = page.read_text()
    return text.split(f"<!-- measured: {group} -->")[1].split(f"<!-- end: {group} -->")[0]


def test_groups_name_libraries_that_exist() -> None:
    assert {library.environment for library in LIBRARIES.values()} == {None, *ENVIRONMENTS}
    cases = [case for group in GROUPS.values() for case in group.cases()]
    assert len(cases) == len(set(cases))
    for group in GROUPS.values():
        for row in group.rows:
            assert set(group.libraries(row)) <= set(LIBRARIES)
            assert set(row.targets) <= set(group.targets)
            for target in row.targets.values():
                assert set(target.over) <= set(group.libraries(row))


@pytest.mark.once
def test_command_without_peers(tmp_path: Path) -> None:
    peers = {environment.variable for environment in ENVIRONMENTS.values()}
    command = ["-m", "benchmarks", "--quick", "--case", "scalar_add", "--case", "mlp.train"]
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, *command, "--json", str(out)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in peers},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "run of a scalar add" in done.stdout and "MLP" in done.stdout
    assert "NOT TO BE QUOTED" in done.stdout
    rounds = Results.from_json(out.read_text()).rounds
    assert set(rounds) == {("headrace", "scalar_add"), ("headrace", "mlp.train")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_small_programs_on_both_executors(name: str) -> None:
    """The same text gives the same losses; ``--check`` compares them with TensorFlow's."""
    found = []
    for executor in ("numpy", "reference"):
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(1)
            session = tf.Session(graph=graph, executor=executor)
            step = PROGRAMS[name](tf, session)
            session.run(tf.global_variables_initializer())
        found.append([float(loss) for _ in range(3) for loss in step()])
    np.testing.assert_allclose(*found, rtol=2e-4)


@pytest.mark.once
def test_work_of_our_own_is_not_that_of_others() -> None:
    """Ticks of a child count as ours while it runs and after it has ended."""
    before = load._own_ticks(os.getpid())
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(1, flush=True); input()"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:
        child.stdout.readline()
        assert load._own_ticks(os.getpid()) - before >= 30
        child.communicate("\n")
    assert load._own_ticks(os.getpid()) - before >= 30
    assert load.Others().cores() == 0.0


def test_peers_without_avx512() -> None:
    code = b"..\x48\xf7\xd0\xa8\xe0\x0f\x84abcd\x81\xe2\xe0\x00\x00\x00\x0f\x85"
    instead = b"..\x48\xf7\xd0\x0c\x01\x0f\x84abcd\x81\xca\xe0\x00\x00\x00\x0f\x85"
    assert limited_peers.limit(code) == (instead, 2)
    assert limited_peers.limit(b"\xa8\xe0\x0f\x84") == (b"\xa8\xe0\x0f\x84", 0)
