"""The Python of README.md and docs/ runs as it stands there.

A block of a page runs after the blocks before it and after the page's entry in ``BEFORE``, which
makes what the prose around the blocks takes for granted. An entry may begin a program of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_V1 = "import numpy as np\nimport headrace as tf\n"
_OWN = "# a program of its own\n"
_MODEL = """
x = tf.placeholder(tf.float32, [None, 784])
y = tf.layers.dense(tf.layers.dense(x, 32, tf.nn.relu), 10)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
"""

#: What the reader of a page has already, in front of each of its blocks of Python.
BEFORE: dict[str, list[str]] = {
    "README.md": [""],
    "docs/cli.md": [""],
    "docs/data.md": [
        _V1
        + """
pictures, labels = np.zeros((300, 4), np.float32), np.zeros(300, np.int32)
prepare = lambda x, y: (x * 2, y)
""",
        """
files = tf.placeholder(tf.int64, [])
names, train, test, sess = 3, dataset, dataset, tf.Session()
train_iterator = dataset.make_one_shot_iterator()
""",
        _OWN
        + """
import numpy as np
import headrace.compat.v2 as tf
import headrace.data
pictures, labels = np.zeros((300, 4), np.float32), np.zeros(300, np.int32)
dataset = tf.data.Dataset.from_tensor_slices((pictures, labels)).batch(100)
step = lambda x, y: None
""",
    ],
    "docs/eager.md": [
        "",
        "x = tf.ones([5, 3])\n",
        """
optimizer, variables = tf.optimizers.SGD(0.1), [w]
model_loss = lambda x, y: tf.reduce_mean((x @ w - y) ** 2)
""",
    ],
    "docs/inference.md": [
        _V1 + _MODEL + "for _ in range(3): sess.run(y, {x: np.zeros((1, 784))})\n",
        "",
    ],
    "docs/rewrites.md": [_V1 + _MODEL, "", ""],
}


def blocks(page: str) -> list[str]:
    """The page's blocks of Python, but for those that show a prompt."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if not block.startswith(">>>")]


def test_every_page_with_python_is_here() -> None:
    pages = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
    assert {page for page in pages if blocks(page)} == set(BEFORE)


@pytest.mark.parametrize("page", BEFORE)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    found = blocks(page)
    assert len(found) == len(BEFORE[page])
    whole = "\n".join(part for pair in zip(BEFORE[page], found) for part in pair)
    for i, text in enumerate(whole.split(_OWN)):
        program = tmp_path / f"page{i}.py"
        program.write_text(text)
        done = subprocess.run(
            [sys.executable, str(program)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
