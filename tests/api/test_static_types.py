"""What a user's type checker and editor see.

Small and longer programs pass mypy --strict; a misspelt name or argument fails.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as tf
import headrace.compat.v2 as tf2

ROOT = Path(__file__).parent.parent.parent

GRAPH = """
import numpy as np
import headrace as tf

x = tf.placeholder(tf.float32, [None, 10], name="x")
y = tf.placeholder(tf.int32, [None])
w = tf.Variable(tf.random_normal([10, 2], seed=1))
b = tf.Variable(0.0)
step = tf.Variable(0, trainable=False)
logits = tf.matmul(x, w) + b * 2.0 - 1
hit: tf.Tensor = tf.square(x)[0, 1:] ** 2 / 3 > 0.5
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
loss = loss + 0.01 * tf.nn.l2_loss(w)
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session(config=tf.ConfigProto()) as sess:
    sess.run(tf.global_variables_initializer())
    _, value = sess.run([train, loss], {x: np.zeros((3, 10)), y: [0, 1, 0]})
    print(value, sess.run(w), loss.eval({x: np.zeros((3, 10)), y: [0, 1, 0]}))
"""

BOTH = """
import headrace.compat.v1 as tf
import headrace.compat.v2 as tf2

v = tf2.Variable(1.0)

@tf2.function
def f(a: tf2.Tensor) -> tf2.Tensor:
    return a * v + tf2.constant(2.0)

with tf2.GradientTape() as tape:
    out = f(tf2.constant(3.0))
print(tape.gradient(out, v))
print(tf2.optimizers.Adam(0.1))
c: tf.Tensor = tf.constant([1.0, 2.0])
print(tf.reduce_sum(c, axis=0))
"""


#: Longer programs, each of which a user could have written.
PROGRAMS = Path(__file__).parent / "typed_programs"

#: One mistake a line: a misspelt name of a namespace, class or argument.
MISTAKES = """
import headrace as tf
import headrace.compat.v1 as tf1
import headrace.compat.v2 as tf2

x = tf.constant([[1.0]])
sess = tf.Session()
tf.matmull
tf1.matmull
tf2.matmull
tf.nn.relu7
tf.train.Savver
tf.train.MonitoredTrainingSesion
tf.layers.dense_layer
tf.losses.mean_square_error
tf.summary.histograms
tf.data.Dataset.from_tensor_slice
tf.errors.OutOfRange
tf.GraphKeys.TRAINABLE_VARS
tf2.optimizers.Adamm
tf2.train.CheckPoint
tf2.nn.relu7
tf2.random.normall
x.get_shapes
sess.runn
tf.Variable(0.0).assing
tf.matmul(x, x, transposea=True)
tf.placeholder(tf.float32, shap=[1])
tf.train.AdamOptimizer(learningrate=0.1)
tf.train.Saver(max_to_kep=3)
tf.layers.dense(x, 3, activations=tf.nn.relu)
tf.reduce_mean(x, axs=0)
tf.get_variable("w", shapes=[1])
tf.data.Dataset.range(3).shuffle(buffersize=3)
sess.run(x, feeds={})
tf2.GradientTape(persist=True)
tf.image.resize_imagess
tf.metrics.acuracy
tf.strings.joins
tf.math.reduce_sums
tf.linalg.matmull
tf.nn.rnn_cell.GRUCel
tf.random.normall
tf.logging.set_verbositi
tf.gfile.Exist
tf.initializers.zeroes
tf2.data.Dataset.from_tensor
tf2.math.reduce_sums
tf2.strings.joins
tf.losses.mean_squared_error(x, x, weight=1.0)
tf.nn.conv2d(x, x, stride=[1, 1, 1, 1], padding="SAME")
tf.image.resize_images(x, [2, 2], methods=0)
tf.while_loop(lambda i: i, lambda i: i, loop_var=[0])
tf.gradients(x, [x], gradient=None)
tf.nn.rnn_cell.GRUCell(unit=3)
tf.summary.scalar("a", tensors=x)
"""


def mypy(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """As for a user who installed Headrace: what mypy says of the package is not shown."""
    pytest.importorskip("mypy")
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-headrace.*]\nfollow_imports = silent\n")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *files],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )


def test_programs_pass_and_every_mistake_is_found(tmp_path: Path) -> None:
    names = [f"tf.{n}" for n in tf.__all__ if n.isidentifier()]
    names += [f"tf2.{n}" for n in tf2.__all__ if n.isidentifier()]
    every = "import headrace as tf\nimport headrace.compat.v2 as tf2\n" + "\n".join(names)
    texts = {"graph.py": GRAPH, "both.py": BOTH, "every.py": every + "\n", "wrong.py": MISTAKES}
    texts |= {path.name: path.read_text() for path in PROGRAMS.glob("*.py")}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = mypy(tmp_path, *texts)
    errors = re.findall(r"^(\w+\.py):(\d+): error", done.stdout, re.MULTILINE)
    assert {name for name, _ in errors} == {"wrong.py"}, done.stdout
    found = {int(line) for _, line in errors}
    lines = MISTAKES.splitlines()
    wrong = {i for i, line in enumerate(lines, 1) if i > lines.index("sess = tf.Session()") + 1}
    assert found == wrong, [lines[i - 1] for i in found ^ wrong]


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_typed_programs_run(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / f"{name}.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_late_names_are_declared() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "static_names.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


#: Shares and numbers that may only fall. Asked for: Any below a tenth, fewer than 100 ignores.
MAX_SHARE_OF_ANY = 0.11
MAX_IGNORES = 99


def annotations(tree: ast.AST) -> list[ast.expr]:
    """The annotations of parameters, results and variables."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            found += [p.annotation for p in parameters if p is not None]
            found.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            found.append(node.annotation)
    return [x for x in found if x is not None]


def test_few_annotations_are_any_and_few_errors_are_ignored() -> None:
    total = bare = ignored = 0
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        ignored += len(re.findall("type: " + "ignore", text))
        found = annotations(ast.parse(text))
        total += len(found)
        bare += sum(isinstance(x, ast.Name) and x.id == "Any" for x in found)
    assert ignored <= MAX_IGNORES
    assert bare / total <= MAX_SHARE_OF_ANY, f"{bare} of {total}"
