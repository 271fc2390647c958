"""The answers of docs/architecture.md ("Where is …") hold what the question asks for."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from headrace import env
from headrace.autograph import loop_operators
from headrace.cli.ops_table import where
from headrace.core.opdef import ALL_OPS
from headrace.data.runtime import shuffle
from headrace.kernels.onednn import adam_primitives
from headrace.ops.linalg import matmul
from headrace.ops.training import inplace_updates, update_rules
from headrace.rewrite.rules import fused_products
from headrace.runtime import cores, thread_pool
from headrace.session import explain
from headrace.wire import tensor_bundle

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def answers() -> dict[str, list[str]]:
    """The files of each row, by its question."""
    table = PAGE.partition("## Where is")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return {question: re.findall(r"`([\w/]+\.py)`", answer) for question, answer in rows}


def file_of(thing: Any) -> str:
    path = thing if isinstance(thing, str) else inspect.getsourcefile(inspect.unwrap(thing))
    return str(Path(str(path)).resolve().relative_to(ROOT / "src" / "headrace"))


FOUND: dict[str, list[Any]] = {
    "`tf.one_hot`": [tf.one_hot],
    "the gradient of softmax": [where(ALL_OPS["Softmax"])[0]],
    "the rule that fuses a bias into a product": [fused_products.matmul_bias],
    "the Adam update": [update_rules.adam, inplace_updates.adam, adam_primitives],
    "the V2 checkpoint reader": [tensor_bundle.BundleReader],
    "the text of the error for mismatched matmul shapes": [matmul._mismatch],
    "where threads are counted": [cores.thread_choice, thread_pool],
    "`tf.distributions.Normal`": [tf.distributions.Normal],
    "`tf.nn.rnn_cell.LSTMCell`": [tf.nn.rnn_cell.LSTMCell],
    "`tf.train.Saver`": [tf.train.Saver],
    "the order of `Dataset.shuffle`": [shuffle],
    "what reads a GraphDef": [tf.import_graph_def],
    "loops over tensors in AutoGraph": [loop_operators],
    "the environment variables": [env],
    "the text of `sess.explain`": [explain],
}


@pytest.mark.parametrize("question", FOUND)
def test_the_file_holds_the_answer(question: str) -> None:
    named = answers()[question]
    for thing in FOUND[question]:
        assert file_of(thing) in named, f"{question}: {thing} is in {file_of(thing)}"


def test_every_question_is_checked() -> None:
    asked = {q for q, files in answers().items() if files}
    assert asked == set(FOUND)


def test_the_walk_of_a_run_names_files_that_are_there() -> None:
    """Names without a folder too: each is one module of the tree."""
    names = set(re.findall(r"`([a-z_]\w*\.py)`", PAGE))
    modules = {path.name for path in (ROOT / "src" / "headrace").rglob("*.py")}
    assert not names - modules


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(function) is None:
        return 0
    text = function.body[0]
    return (text.end_lineno or 0) - text.lineno + 1


MAX_MODULE_LINES, MAX_FUNCTION_LINES = 600, 60


def test_modules_and_functions_have_a_size_that_one_reads_at_once() -> None:
    """A module has one idea: split a longer one where the second idea begins."""
    long = []
    for path in sorted((ROOT / "src" / "headrace").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        if (lines := text.count("\n")) > MAX_MODULE_LINES:
            long.append(f"{place}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1 - _docstring_lines(node)
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{place}:{node.lineno} {node.name}: {lines} lines")
    assert not long, "\n".join(long)
