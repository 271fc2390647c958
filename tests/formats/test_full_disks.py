"""Writing model files on a full disk: ResourceExhaustedError, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_PROGRAM = """
    import os, resource, sys
    import headrace as tf
    folder = sys.argv[1]
    x, v = tf.placeholder(tf.float32, []), tf.Variable(tf.zeros([300_000]))
    few, formats = tf.Variable(tf.zeros([200])), tf.train.SaverDef
    big = tf.constant([1.0] * 100_000)
    sess = tf.Session()
    sess.run([v.initializer, few.initializer])
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    def fails(action):
        try:
            action()
        except tf.errors.ResourceExhaustedError as error:
            assert "File too large" in str(error), error
        else:
            raise AssertionError("the limit was not reached")

    fails(lambda: tf.train.write_graph(sess.graph, folder, "graph.pb", as_text=False))
    fails(lambda: tf.saved_model.simple_save(sess, folder + "/model", {"x": x}, {"y": x + v[0]}))
    fails(lambda: tf.train.Saver().save(sess, folder + "/weights"))
    tf.logging.set_verbosity(tf.logging.ERROR)  # V1 files are deprecated
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # reached when the file is closed
    for version in (formats.V1, formats.V2):
        saver = tf.train.Saver([few], write_version=version)
        fails(lambda: saver.save(sess, folder + "/few", write_meta_graph=False))
    left = [os.path.join(where, f) for where, _, files in os.walk(folder) for f in files]
    assert left == [], left
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_full_disk_is_resource_exhausted_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
