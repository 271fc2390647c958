"""Savers: graphs, checkpoints and MetaGraphs of TensorFlow 1.15, what is kept, errors, and
processes that are killed while they save.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.golden import make_checkpoints as golden

GOLDEN = Path(__file__).parent.parent / "golden" / "checkpoints"
SAVERS = json.loads((GOLDEN / "savers.json").read_text())


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def same(got: dict[str, Any], file: str) -> None:
    want = dict(np.load(GOLDEN / file).items())
    assert sorted(got) == sorted(want)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def check_model(sess: Any, train: Any) -> None:
    """The golden model was restored: its values, and those after three more steps (slots
    matter).
    """
    same(golden.values(tf, sess), "now.npz")
    for _ in range(3):
        sess.run(train, {"x:0": golden.X})
    same(golden.values(tf, sess), "later.npz")


# the graph --------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", list(SAVERS))
def test_graph_is_tensorflows(title: str) -> None:
    build = dict(golden.savers(tf))[title]
    got = json.loads(json.dumps(golden.nodes_of_saver(tf, build)))
    want = SAVERS[title]
    assert got["def"] == want["def"]
    for mine, theirs in zip(got["nodes"], want["nodes"]):
        if mine[1] == "MergeV2Checkpoints":  # the same order with one control edge more
            mine[2] = [i for i in mine[2] if i[0] != "^"]
        assert mine == theirs
    assert len(got["nodes"]) == len(want["nodes"])


# TensorFlow's files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "v1"])
def test_restores_tensorflows_checkpoint(name: str) -> None:
    train = golden.model(tf)
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, str(GOLDEN / name))
        check_model(sess, train)
        assert sess.run("text:0") == b"hello"


def test_imports_tensorflows_meta_graph(graph: Any) -> None:
    message = tf.MetaGraphDef.FromString(gzip.decompress((GOLDEN / "model.meta.gz").read_bytes()))
    saver = tf.train.import_meta_graph(message)
    with tf.Session() as sess:
        saver.restore(sess, str(GOLDEN / "model"))
        check_model(sess, graph.get_operation_by_name("train"))
    assert len(tf.trainable_variables()) == 37


@pytest.mark.parametrize(
    "options", [{}, {"sharded": True}, {"write_version": 1}, {"write_version": 1, "sharded": True}]
)
def test_round_trip_in_another_session_and_by_meta_graph(tmp_path: Path, options: Any) -> None:
    train = golden.model(tf)
    saver = tf.train.Saver(**options)
    with tf.Session() as sess:
        saver.restore(sess, str(GOLDEN / "model"))
        path = saver.save(sess, str(tmp_path / "m"), global_step=tf.train.get_global_step())
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    with tf.Session() as sess:
        saver.restore(sess, path)
        check_model(sess, train)
    with tf.Graph().as_default() as other, tf.Session() as sess:
        tf.train.import_meta_graph(str(tmp_path / "m-3.meta")).restore(sess, path)
        check_model(sess, other.get_operation_by_name("train"))


def test_same_bytes_as_tensorflow(tmp_path: Path) -> None:
    golden.model(tf)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        saver.restore(sess, str(GOLDEN / "model"))
        saver.save(sess, str(tmp_path / "model"))
    for suffix in (".index", ".data-00000-of-00001"):
        assert (tmp_path / f"model{suffix}").read_bytes() == (
            GOLDEN / f"model{suffix}"
        ).read_bytes()


def test_meta_graph_in_a_scope(tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    tf.add_to_collection("losses", tf.reduce_sum(v, name="loss"))
    tf.add_to_collection("numbers", 7)
    saver = tf.train.Saver()
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        again = tf.train.import_meta_graph(f"{path}.meta", import_scope="net")
        again.restore(sess, path)
        assert [x.name for x in tf.global_variables()] == ["net/v:0"]
        assert sess.run(tf.get_collection("losses")) == [3.0]
        assert tf.get_collection("numbers") == [7]
        assert isinstance(tf.get_collection(tf.GraphKeys.SAVERS)[0], tf.train.Saver)


def test_export_of_a_scope(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.variable_scope("hidden"):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        tf.multiply(x, w, name="y")
    tf.train.export_meta_graph(str(tmp_path / "h.meta"), export_scope="hidden", as_text=True)
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(ValueError, match="unbound inputs"):
            tf.train.import_meta_graph(str(tmp_path / "h.meta"), import_scope="new")
        feed = tf.constant(3.0)
        tf.train.import_meta_graph(
            str(tmp_path / "h.meta"), import_scope="new", input_map={"$unbound_inputs_x": feed}
        )
        sess.run(tf.global_variables_initializer())
        assert sess.run("new/y:0") == 3.0


# what is kept -----------------------------------------------------------------------------------


def checkpoints(folder: Path) -> list[str]:
    return sorted(p.name.removesuffix(".index") for p in folder.glob("*.index"))


def test_max_to_keep_and_the_state_file(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        paths = [saver.save(sess, str(tmp_path / "m"), global_step=i) for i in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert checkpoints(tmp_path) == ["m-2", "m-3"]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[3]
    assert list(state.all_model_checkpoint_paths) == paths[2:]
    again = tf.train.Saver(max_to_keep=2)
    again.recover_last_checkpoints([*state.all_model_checkpoint_paths, "/nowhere/m"])
    assert again.last_checkpoints == paths[2:]
    with tf.Session() as sess:
        again.restore(sess, paths[3])
        again.save(sess, str(tmp_path / "m"), global_step=9)
    assert checkpoints(tmp_path) == ["m-3", "m-9"]


def test_keep_every_n_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save every hour by a clock of the test's own, one checkpoint kept every three hours."""
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(10):
            saver.save(sess, str(tmp_path / "m"), global_step=i)
            now[0] += 3600
    assert set(checkpoints(tmp_path)) == {"m-4", "m-7", "m-9"}


def test_relative_paths_padding_and_names(tmp_path: Path, monkeypatch: Any) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(save_relative_paths=True, pad_step_number=True)
    (tmp_path / "a").mkdir()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(
            sess,
            str(tmp_path / "a" / "m"),
            global_step=7,
            latest_filename="newest",
            write_meta_graph=False,
        )
    assert path == str(tmp_path / "a" / "m-00000007")
    assert (tmp_path / "a" / "newest").read_text().splitlines()[
        0
    ] == 'model_checkpoint_path: "m-00000007"'
    (tmp_path / "a").rename(tmp_path / "b")
    assert tf.train.latest_checkpoint(str(tmp_path / "b"), "newest") == str(
        tmp_path / "b" / "m-00000007"
    )
    assert tf.train.latest_checkpoint(str(tmp_path / "b")) is None
    assert not list((tmp_path / "b").glob("*.meta"))
    monkeypatch.chdir(tmp_path / "b")
    with tf.Session() as sess:
        saver.restore(sess, "m-00000007")
        assert saver.save(sess, "./x") == "./x"
    assert tf.train.latest_checkpoint(".") == "./x"


def test_state_functions(tmp_path: Path) -> None:
    prefix = str(tmp_path / "m")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    assert not tf.train.checkpoint_exists(prefix)
    tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, prefix)
    assert tf.train.checkpoint_exists(prefix)
    assert abs(tf.train.get_checkpoint_mtimes([prefix, "/nowhere"])[0] - time.time()) < 60
    tf.train.update_checkpoint_state(str(tmp_path), prefix, [prefix], "other")
    assert tf.train.latest_checkpoint(str(tmp_path), "other") == prefix
    with pytest.raises(RuntimeError, match="conflicts"):
        tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "checkpoint"))
    tf.train.remove_checkpoint(prefix)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "other"]
    (tmp_path / "checkpoint").write_text("not a message")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None


# parts, names, deferred -------------------------------------------------------------------------


def test_partial_restore_and_other_names(tmp_path: Path) -> None:
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable(5, name="b")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        mine, other = tf.Variable([0.0, 0.0], name="mine"), tf.Variable(1.0, name="other")
        sess.run(tf.global_variables_initializer())
        tf.train.Saver({"a": mine}).restore(sess, path)
        assert sess.run(mine).tolist() == [1, 2] and sess.run(other) == 1
    assert a.name == "a:0" and b.name == "b:0"


def test_reshape(tmp_path: Path) -> None:
    tf.Variable(np.arange(6.0), name="a")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    for use_resource in (False, True):
        with tf.Graph().as_default(), tf.Session() as sess:
            v = tf.Variable(np.zeros((2, 3)), name="a", use_resource=use_resource)
            tf.train.Saver(reshape=True).restore(sess, path)
            assert sess.run(v).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_partitions_restore_into_other_partitions(tmp_path: Path) -> None:
    def built(parts: int) -> Any:
        make = tf.fixed_size_partitioner(parts) if parts else None
        return tf.convert_to_tensor(
            tf.get_variable(
                "p", [6, 2], initializer=tf.random_normal_initializer(seed=1), partitioner=make
            )
        )

    value = built(3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        want = sess.run(value)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    for parts in (0, 2, 3):
        with tf.Graph().as_default(), tf.Session() as sess:
            value = built(parts)
            tf.train.Saver().restore(sess, path)
            np.testing.assert_array_equal(sess.run(value), want)


def test_deferred_and_empty(tmp_path: Path) -> None:
    saver = tf.train.Saver(defer_build=True)
    tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(RuntimeError, match="build"):
            saver.save(sess, str(tmp_path / "m"))
        saver.build()
        assert saver.save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(ValueError, match="No variables to save"):
            tf.train.Saver()
        assert tf.train.Saver(allow_empty=True).save(sess, str(tmp_path / "e")) is None
    with pytest.raises(ValueError, match="deferred"):
        tf.train.Saver([tf.Variable(1.0)], defer_build=True)


# errors -----------------------------------------------------------------------------------------


def saved(folder: Path) -> str:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.Variable([1.0, 2.0], name="a")
        sess.run(tf.global_variables_initializer())
        return tf.train.Saver().save(sess, str(folder / "m"))  # type: ignore[no-any-return]


def test_errors_of_restore(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with tf.Session() as sess:
        a, c = tf.Variable([1.0, 2.0, 3.0], name="a"), tf.Variable(1.0, name="c")
        with pytest.raises(tf.errors.NotFoundError, match="Key c not found in checkpoint"):
            tf.train.Saver([c]).restore(sess, path)
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            tf.train.Saver([a]).restore(sess, path)
        assert (
            "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]"
            in str(error.value)
        )
        assert "mismatch between the current graph and the graph from the checkpoint" in str(
            error.value
        )
        d = tf.Variable(np.zeros(2), name="d")
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match="expected dtype double does not equal original dtype float",
        ):
            tf.train.Saver({"a": d}).restore(sess, path)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            tf.train.Saver([a]).restore(sess, str(tmp_path / "none"))
        with pytest.raises(ValueError, match="None"):
            tf.train.Saver([a]).restore(sess, None)


def test_errors_of_save(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            saver.save(sess, str(tmp_path / "m"))
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist, can't save\."):
            saver.save(sess, str(tmp_path / "x" / "y" / "m"))
        assert saver.save(sess, str(tmp_path / "x" / "m"))  # one folder is made
        with pytest.raises(ValueError, match="collides"):
            saver.save(sess, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match="path components"):
            saver.save(sess, str(tmp_path / "m"), latest_filename="a/b")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_errors_of_lists() -> None:
    a = tf.Variable(1.0, name="a")
    with pytest.raises(ValueError, match="two variables have the same name: a"):
        tf.train.Saver([a, a])
    with pytest.raises(ValueError, match="two names"):
        tf.train.Saver({"x": a, "y": a})
    with pytest.raises(TypeError, match="not a Variable"):
        tf.train.Saver([tf.constant(1.0)])
    with pytest.raises(TypeError, match="dict or a list"):
        tf.train.Saver(a)


# killed -----------------------------------------------------------------------------------------

_PROGRAM = """
import sys
import numpy as np
import headrace as tf
v = tf.Variable(np.zeros((64, 1024), np.float32), name="v")
w = tf.Variable(np.zeros((64, 1024), np.float32), name="w")
more = tf.group(v.assign_add(tf.ones_like(v)), w.assign_add(tf.ones_like(w)))
saver = tf.train.Saver(max_to_keep=1, sharded=sys.argv[2] == "sharded")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    step = 0
    while True:
        sess.run(more)
        step += 1
        saver.save(sess, sys.argv[1], global_step=step if sys.argv[2] == "steps" else None)
        print(step, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kind", ["same", "steps", "sharded"])
def test_killed_while_saving(tmp_path: Path, kind: str) -> None:
    """A process that is killed leaves a whole checkpoint, not older than the last that it
    finished.
    """
    rng = np.random.default_rng(0)
    with tf.Graph().as_default():
        v = tf.Variable(np.zeros((64, 1024), np.float32), name="v")
        w = tf.Variable(np.zeros((64, 1024), np.float32), name="w")
        saver = tf.train.Saver()
        for attempt in range(5):
            folder = tmp_path / f"{kind}{attempt}"
            folder.mkdir()
            command = [sys.executable, "-c", textwrap.dedent(_PROGRAM), str(folder / "m"), kind]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env=os.environ
            ) as child:
                assert child.stdout is not None
                assert child.stdout.readline().strip() == "1"
                time.sleep(float(rng.uniform(0.0, 0.1)))
                os.kill(child.pid, signal.SIGKILL)
                done = max([1, *map(int, child.stdout.read().split())])
            with tf.Session() as sess:
                saver.restore(sess, tf.train.latest_checkpoint(str(folder)))
                a, b = sess.run([v, w])
            assert len(np.unique([a, b])) == 1, "a checkpoint of two moments"
            assert a[0, 0] >= done


def test_killed_at_every_rename(tmp_path: Path, monkeypatch: Any) -> None:
    """Stop at each renaming in turn: what is on disk is the old checkpoint or the new."""
    v = tf.Variable(np.zeros(4, np.float32), name="v")
    real, left = os.replace, [0]

    class Killed(BaseException):
        pass

    def replace(a: Any, b: Any) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        real(a, b)

    for sharded in (False, True):
        saver = tf.train.Saver([v], sharded=sharded)
        for stop in range(6):
            prefix = str(tmp_path / f"m{sharded}{stop}")
            with tf.Session() as sess:
                sess.run(v.initializer)
                saver.save(sess, prefix)
                v.load(np.ones(4, np.float32), sess)
                left[0] = stop
                with monkeypatch.context() as patched:
                    patched.setattr(os, "replace", replace)
                    with contextlib.suppress(Killed):
                        saver.save(sess, prefix, write_meta_graph=False, write_state=False)
                saver.restore(sess, prefix)
                assert sess.run(v).tolist() in ([0.0] * 4, [1.0] * 4)
                saver.save(sess, prefix)
                saver.restore(sess, prefix)


def test_eager(tmp_path: Path) -> None:
    program = """
        import sys
        import headrace as tf
        tf.enable_eager_execution()
        v = tf.Variable([1.0, 2.0], name="v")
        saver = tf.train.Saver([v])
        path = saver.save(None, sys.argv[1], global_step=tf.constant(4))
        v.assign([0.0, 0.0])
        saver.restore(None, path)
        print(path, v.numpy().tolist())
    """
    run = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "m")]
    out = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ).stdout
    assert out.strip() == f"{tmp_path / 'm-4'} [1.0, 2.0]"


# progress -----------------------------------------------------------------------------------------


def test_progress_is_shown_where_it_was_asked_for(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.Variable(np.zeros((1 << 20,), np.float32), name="v")
        tf.Variable(np.zeros((3,), np.float64), name="w")
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        out = io.StringIO()
        with tf.file_progress(out, force=True):
            path = saver.save(sess, str(tmp_path / "model"))
            saver.restore(sess, path)
        saver.restore(sess, path)
    text = out.getvalue()
    assert text.count("saving model") >= 1 and text.count("restoring model") >= 1
    assert "4.2/4.2 MB" in text


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    from headrace.wire.transfer_progress import observed

    class Counter:
        def __init__(self, title: str, total: int) -> None:
            self.title, self.total, self.done, self.closed = title, total, 0, False
            meters.append(self)

        def advance(self, count: int) -> None:
            self.done += count

        def close(self) -> None:
            self.closed = True

    meters: list[Counter] = []
    with tf.Graph().as_default(), tf.Session() as sess:
        part = tf.fixed_size_partitioner(3)
        tf.get_variable("v", [300_000], initializer=tf.ones_initializer(), partitioner=part)
        tf.Variable(np.zeros((3,), np.float64), name="w")
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        with observed(Counter):
            saver.restore(sess, saver.save(sess, str(tmp_path / "model")))
    assert [m.total for m in meters] == [1_200_024] * 2
    assert all(m.done == m.total and m.closed for m in meters)


def test_meta_graphs_make_their_folder(tmp_path: Path) -> None:
    """Saving nothing with ``allow_empty`` writes a MetaGraph alone, as in TF 1.15."""
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.Saver(allow_empty=True)
        assert saver.save(sess, str(tmp_path / "new" / "m")) is None
        tf.constant(1.0, name="c")
        tf.train.export_meta_graph(str(tmp_path / "a" / "b" / "x.meta"))
    assert (tmp_path / "new" / "m.meta").exists()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(str(tmp_path / "a" / "b" / "x.meta"))
        assert [op.name for op in graph.get_operations()] == ["c"]


def test_what_is_no_checkpoint_is_a_data_loss_with_its_path(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(b"x" * 100)
    for path in (junk, tmp_path):
        with pytest.raises(tf.errors.DataLossError, match=f"Unable to open table file {path}"):
            tf.train.NewCheckpointReader(str(path))
