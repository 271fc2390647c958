"""Checkpoints of public model code, both ways: TF 1.15 writes and Headrace restores, and back.

    python tools/public_checkpoints.py --sources MIRRORS --tf1 PYTHON [--only bert,gpt2]

``MIRRORS`` holds git directories or checkouts, ``owner+name/repo`` each (what the tool that fetches
repositories makes). The graph code of a model is taken from there, its weights are random, its
sizes small. For every model one library makes the graph with an optimizer, trains two steps, saves,
and notes the outputs and those after one more step. The other one makes the same graph from the
same code, restores, and must have the same variables, the same outputs, and the same outputs after
its own next step (so optimizer slots count). No code of theirs is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Model(NamedTuple):
    """Where the code is, and the lines that build ``feeds``, ``output`` and ``loss`` with it."""

    repository: str
    files: tuple[str, ...]
    build: str


MODELS = {
    "bert": Model(
        "google-research+bert",
        ("modeling.py", "optimization.py"),
        """
import modeling, optimization
config = modeling.BertConfig(99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                             intermediate_size=37, max_position_embeddings=16)
ids = tf.placeholder(tf.int32, [2, 8])
feeds = {ids: np.arange(16).reshape(2, 8) * 5 % 99}
model = modeling.BertModel(config, False, ids)
output = model.get_pooled_output()
loss = tf.reduce_mean(tf.square(output - 0.5))
train = optimization.create_optimizer(loss, 1e-3, 100, 2, False)
""",
    ),
    "gpt2": Model(
        "openai+gpt-2",
        ("src/model.py",),
        """
import model
hparams = model.default_hparams()
hparams.override_from_dict(dict(n_vocab=50, n_ctx=16, n_embd=24, n_head=4, n_layer=2))
ids = tf.placeholder(tf.int32, [2, None])
feeds = {ids: np.arange(14).reshape(2, 7) * 3 % 50}
output = model.model(hparams, ids)["logits"]
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=output))
""",
    ),
    "text_cnn": Model(
        "dennybritz+cnn-text-classification-tf",
        ("text_cnn.py",),
        """
import text_cnn
cnn = text_cnn.TextCNN(10, 3, 40, 8, [3, 4], 5, 0.1)
feeds = {cnn.input_x: np.arange(20).reshape(2, 10), cnn.input_y: np.eye(3)[:2],
         cnn.dropout_keep_prob: 1.0}
output, loss = cnn.scores, cnn.loss
""",
    ),
    "char_rnn": Model(
        "sherjilozair+char-rnn-tensorflow",
        ("model.py",),
        """
import argparse, model
args = argparse.Namespace(model="lstm", rnn_size=12, num_layers=2, batch_size=3, seq_length=5,
    vocab_size=20, grad_clip=5.0, output_keep_prob=1.0, input_keep_prob=1.0)
net = model.Model(args)
x = np.arange(15).reshape(3, 5)
feeds = {net.input_data: x, net.targets: x[:, ::-1], net.lr: 0.01}
output, loss, train = net.probs, net.cost, net.train_op
""",
    ),
    "slim_resnet_v1": Model(
        "tensorflow+models",
        ("research/slim/nets/resnet_v1.py", "research/slim/nets/resnet_utils.py"),
        """
from nets import resnet_v1, resnet_utils
block = resnet_v1.resnet_v1_block
x = tf.placeholder(tf.float32, [1, 32, 32, 3])
feeds = {x: np.linspace(-1, 1, 32 * 32 * 3).reshape(1, 32, 32, 3)}
with resnet_utils.slim.arg_scope(resnet_utils.resnet_arg_scope()):
    output, _ = resnet_v1.resnet_v1(x, [block("block1", 2, 2, 2), block("block2", 4, 1, 1)],
        num_classes=5, is_training=False)
loss = tf.reduce_mean(tf.square(output - 0.1))
""",
    ),
    "slim_mobilenet": Model(
        "tensorflow+models",
        ("research/slim/nets/mobilenet_v1.py",),
        """
from nets import mobilenet_v1
x = tf.placeholder(tf.float32, [1, 64, 64, 3])
feeds = {x: np.linspace(-1, 1, 64 * 64 * 3).reshape(1, 64, 64, 3)}
with mobilenet_v1.slim.arg_scope(mobilenet_v1.mobilenet_v1_arg_scope(is_training=False)):
    output, _ = mobilenet_v1.mobilenet_v1(x, 5, is_training=False, depth_multiplier=0.1,
        min_depth=4)
loss = tf.reduce_mean(tf.square(output - 0.1))
""",
    ),
    "facenet": Model(
        "davidsandberg+facenet",
        ("src/models/squeezenet.py",),
        """
import squeezenet
x = tf.placeholder(tf.float32, [1, 96, 96, 3])
feeds = {x: np.linspace(-1, 1, 96 * 96 * 3).reshape(1, 96, 96, 3)}
output, _ = squeezenet.inference(x, 1.0, phase_train=False, bottleneck_layer_size=16)
loss = tf.reduce_mean(tf.square(output - 0.1))
""",
    ),
    "style_transfer": Model(
        "lengstrom+fast-style-transfer",
        ("src/transform.py",),
        """
import transform
x = tf.placeholder(tf.float32, [1, 16, 16, 3])
feeds = {x: np.linspace(0, 255, 16 * 16 * 3).reshape(1, 16, 16, 3)}
output = transform.net(x)
loss = tf.reduce_mean(tf.square(output - 100.0)) / 1e4
""",
    ),
}

#: What either library runs; Python 3.7 syntax. Arguments: write or read, and the folder.
WORKER = """
import json, os, sys
import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
try:
    import tf_slim
except ImportError:  # newer code says tf_slim; in TF 1.15 it is a part of contrib
    sys.modules["tf_slim"] = slim
what, folder = sys.argv[1:3]
sys.path.insert(0, os.path.join(folder, "code"))
tf.logging.set_verbosity(tf.logging.ERROR)
tf.set_random_seed(1)
train = None
exec(open(os.path.join(folder, "build.py")).read())
if train is None:
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.001).minimize(loss, global_step=step)
saver = tf.train.Saver(tf.global_variables())
path = os.path.join(folder, "model.ckpt")
with tf.Session() as sess:
    if what == "write":
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run(train, feeds)
        saver.save(sess, path)
    else:
        saver.restore(sess, path)
    now = sess.run(output, feeds)
    sess.run(train, feeds)
    later = sess.run(output, feeds)
names = sorted(v.op.name for v in tf.global_variables())
listed = sorted(n for n, _ in tf.train.list_variables(path))
assert names == listed, set(names) ^ set(listed)
np.savez(os.path.join(folder, what + ".npz"), now=now, later=later)
print(json.dumps({"variables": len(names)}))
"""

COMPARE = """
import numpy as np, sys
a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
for key in ("now", "later"):
    scale = max(1e-3, float(np.abs(a[key]).max()))
    error = float(np.abs(a[key] - b[key]).max()) / scale
    print(key, error)
"""


#: Largest error beside the largest output. Adam turns the rounding of gradients that are zero in
#: exact arithmetic (biases of attention keys) into steps of full length.
LIMITS = {"now": 1e-4, "later": 1e-2}


def _show(sources: str, model: Model, path: str) -> bytes:
    """A file of a repository, from a git directory or a checkout."""
    folder = os.path.join(sources, model.repository, "repo")
    plain = os.path.join(folder, path)
    if os.path.exists(plain):
        with open(plain, "rb") as file:
            return file.read()
    command = ["git", "-C", folder, "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _prepare(sources: str, model: Model, folder: str) -> None:
    for path in model.files:
        inside = path.partition("slim/")[2] or os.path.basename(path)
        target = os.path.join(folder, "code", inside)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(_show(sources, model, path))
    package = os.path.join(folder, "code", "nets")
    if os.path.isdir(package):
        open(os.path.join(package, "__init__.py"), "w").close()
    for name, text in (("build.py", model.build), ("worker.py", WORKER)):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def _run(library: str, python: str, what: str, folder: str) -> str:
    """Nothing if it went well, else the last lines of its errors."""
    command = [python]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    if library == "headrace":
        environment["PYTHONPATH"] = os.path.join(ROOT, "src")
        command += ["-m", "headrace", "run", "--api", "v1"]
    else:
        environment.pop("PYTHONPATH", None)
    command += [os.path.join(folder, "worker.py"), what, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip()[-600:] or "failed"


def check(name: str, writer: str, pythons: dict[str, str], sources: str) -> str:
    """What is wrong with one model in one direction; empty if nothing is."""
    reader = "headrace" if writer == "tf1" else "tf1"
    folder = tempfile.mkdtemp()
    try:
        _prepare(sources, MODELS[name], folder)
        for library, what in ((writer, "write"), (reader, "read")):
            problem = _run(library, pythons[library], what, folder)
            if problem:
                return f"{library} could not {what}: {problem}"
        files = [os.path.join(folder, f"{what}.npz") for what in ("write", "read")]
        command = [pythons["headrace"], "-c", COMPARE, *files]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        errors = {k: float(v) for k, v in (line.split() for line in text.splitlines())}
        fits = all(error < LIMITS[key] for key, error in errors.items())
        return "" if fits else f"outputs differ: {json.dumps(errors)}"
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--sources", required=True)
    parser.add_argument("--tf1", required=True, help="a Python that has TensorFlow 1.15")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    pythons = {"headrace": sys.executable, "tf1": options.tf1}
    bad = 0
    for name in options.only.split(",") if options.only else MODELS:
        for writer in ("tf1", "headrace"):
            problem = check(name, writer, pythons, options.sources)
            bad += bool(problem)
            print(f"{name:16} written by {writer:8} {problem or 'ok'}", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
