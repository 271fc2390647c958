"""The examples in the docstrings of public functions run, and give what their comments say.

An example is an indented block of Python, or lines after ``>>>``. A comment that is a Python value
is the result of its line: ``tf.one_hot([0, 2], 3)  # [[1, 0, 0], [0, 0, 1]]``. Examples may use
names that their reader has (``x``, ``loss``, ``is_training``); ``BEFORE`` makes them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from tests.api.test_docstrings import _NAMESPACES, _objects

_X = "x = tf.ones({})\n"
_SEQUENCES, _IMAGES, _VOLUMES = "[2, 8, 3]", "[2, 8, 8, 3]", "[2, 4, 4, 4, 3]"
_LOSS = """
w = tf.Variable(1.0)
loss, optimizer = tf.square(w), tf.train.GradientDescentOptimizer(0.1)
"""
_SESSION = "sess = tf.Session()\n"
_SHORT_TRAINING = (
    _LOSS
    + """
train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
hook = tf.train.StopAtStepHook(2)
"""
)
_POOLING = {
    name.format(d): _X.format(shape)
    for d, shape in ((1, _SEQUENCES), (2, _IMAGES), (3, _VOLUMES))
    for name in (
        "v1.layers.AveragePooling{}D-0",
        "v1.layers.MaxPooling{}D-0",
        "v1.layers.average_pooling{}d-0",
        "v1.layers.max_pooling{}d-0",
        "v1.layers.conv{}d-0",
    )
}
#: What an example's reader has already.
BEFORE: dict[str, str] = {
    **_POOLING,
    "v1.GradientTape-0": "tf.reset_default_graph(); v = tf.Variable(2.0, use_resource=True)\n",
    "v1.TensorArray-0": "n, x = 3, tf.ones([3])\n",
    "v1.TensorShape-0": "from headrace.core.shapes import TensorShape\n",
    "v1.assign-0": _SESSION,
    "v1.case-0": "x = tf.constant(1.0)\n",
    "v1.clip_by_global_norm-0": "gradients = [tf.ones([3]), None]\n",
    "v1.cond-0": "x = tf.constant(1.0)\n",
    "v1.control_dependencies-0": _LOSS + "update = tf.assign_add(w, 1.0)\n",
    "v1.gradients-0": "w = tf.ones([3])\n",
    "v1.map_fn-0": _X.format("[3, 2]"),
    "v1.matmul-0": _X.format("[2, 2]") + "w = x\n",
    "v1.numpy_function-0": _X.format("[3]"),
    "v1.placeholder-0": _SESSION + "y, batch = tf.ones([]), np.zeros((2, 784))\n",
    "v1.py_function-0": _X.format("[3]"),
    "v1.data.Dataset-0": "images, labels = np.zeros((64, 2)), np.zeros(64)\n",
    "v1.data.TFRecordDataset-0": "parse = lambda record: tf.strings.length(record)\n",
    "v1.feature_column.make_parse_example_spec-0": (
        "make_parse_example_spec = tf.feature_column.make_parse_example_spec\n"
        "columns = [tf.feature_column.numeric_column('x')]\n"
        "serialized = tf.placeholder(tf.string, [None])\n"
    ),
    "v1.layers.BatchNormalization-0": _LOSS,
    "v1.layers.Dropout-0": "h, is_training = tf.ones([2, 3]), True\n",
    "v1.layers.batch_normalization-0": _LOSS + "h, is_training = tf.ones([2, 3]), True\n",
    "v1.layers.dense-0": _X.format("[2, 3]"),
    "v1.metrics.mean-0": _SESSION
    + ("x = tf.placeholder(tf.float32)\nloss, batches = x * 2, [1.0, 2.0]\n"),
    "v1.nn.avg_pool-0": _X.format(_IMAGES),
    "v1.nn.conv2d-0": f"images, filters = tf.ones({_IMAGES}), tf.ones([3, 3, 3, 4])\n",
    "v1.ragged.boolean_mask-0": _SESSION,
    "v1.test.create_local_cluster-0": (
        "Session, create_local_cluster = tf.Session, tf.test.create_local_cluster\n"
    ),
    "v1.train.AdamOptimizer-0": _LOSS,
    "v1.train.MonitoredSession-0": _SHORT_TRAINING,
    "v1.train.MonitoredTrainingSession-0": _SHORT_TRAINING,
    "v1.train.exponential_decay-0": "global_step = tf.train.get_or_create_global_step()\n",
    "contrib.seq2seq.BasicDecoder-0": (
        "cell = tf.nn.rnn_cell.GRUCell(4)\n"
        "embedded, lengths, output_layer = tf.ones([2, 5, 3]), [5, 5], tf.layers.Dense(7)\n"
        "state = cell.zero_state(2, tf.float32)\n"
    ),
}
#: Examples that do not run, each with the reason.
EXEMPT: dict[str, str] = {
    "v1.autograph.to_graph-0": "reads the source of its function, which has to be in a file",
    "v1.data.experimental.make_csv_dataset-0": "reads files",
    "v1.train.MonitoredTrainingSession-0": "has no hook that ends it",
}


def blocks(doc: str) -> list[str]:
    """The indented blocks of a docstring that are Python, and the lines after ``>>>``."""
    found, lines = [], inspect.cleandoc(doc).split("\n")
    block: list[str] = []
    for line in [*lines, "end"]:
        if line.startswith("    ") or (not line.strip() and block):
            block.append(line)
            continue
        text = textwrap.dedent("\n".join(block)).strip("\n")
        if text and ">>>" not in text and _parses(text):
            found.append(text)
        block = []
    prompts = [m[4:] for m in (s.strip() for s in lines) if m.startswith((">>> ", "... "))]
    return [*found, "\n".join(prompts)] if prompts else found


def _parses(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def examples() -> Iterator[tuple[str, str]]:
    seen = set()
    for root in _NAMESPACES:
        if root.endswith("v2"):
            continue  # needs TF 2's behaviour
        for path, value in _objects(root):
            key = f"{value.__module__}.{value.__qualname__}"
            if key in seen:
                continue
            seen.add(key)
            for i, text in enumerate(blocks(value.__doc__ or "")):
                yield f"{path}-{i}", text


EXAMPLES = dict(examples())


def promised(line: str) -> Any:
    """The value in a line's comment; Ellipsis if there is none."""
    match = re.search(r"  # (.+)$", line)
    if match is None:
        return ...
    try:
        return ast.literal_eval(match.group(1))
    except (ValueError, SyntaxError):
        return ...


def values(result: Any) -> Any:
    """What a session gives for the result of a line."""
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        found = sess.run(result)
    return found.to_list() if hasattr(found, "to_list") else found


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, (tuple, list)) and isinstance(found, (tuple, list)):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    array = np.asarray(found)
    if array.dtype == object or array.dtype.kind in "SU":
        return bool(np.array_equal(array.astype("S"), np.asarray(wanted).astype("S")))
    return array.shape == np.shape(wanted) and np.allclose(array, wanted, atol=1e-4)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_says(name: str) -> None:
    if name in EXEMPT:
        return
    text = EXAMPLES[name]
    tree = ast.parse(text)
    space: dict[str, Any] = {"tf": tf, "np": np}
    exec(BEFORE.get(name, ""), space)
    if "sess" in space:
        space["sess"].run(tf.global_variables_initializer())
    lines = text.split("\n")
    for statement in tree.body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), name, "exec"), space)
            continue
        result = eval(compile(ast.Expression(statement.value), name, "eval"), space)
        wanted = promised(lines[(statement.end_lineno or 0) - 1])
        if wanted is not ...:
            found = values(result) if _is_fetchable(result) else result
            assert same(found, wanted), f"{name}: {found} is not {wanted}"


def _is_fetchable(result: Any) -> bool:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return any(hasattr(part, "graph") or hasattr(part, "row_splits") for part in parts)


def test_entries_are_of_examples() -> None:
    """The test would pass if it saw nothing, and entries go with their examples."""
    assert len(EXAMPLES) > 70
    assert not {*BEFORE, *EXEMPT} - set(EXAMPLES)
