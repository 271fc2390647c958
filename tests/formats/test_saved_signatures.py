"""What models of TF 2 are called with and what they hold: ragged and sparse tensors, single traces,
files; TF 1's models as objects; operations that write files are never run for a model.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
import headrace.api.v2 as tf2
from headrace import errors
from headrace.eager.eager_context import eager_mode
from headrace.formats.graphdef_reader import read_graph_def
from headrace.formats.saved_model import read_saved_model
from tests.golden.inner_paths import inner
from tests.golden.saved_models import make_signatures

MODELS = Path(make_signatures.__file__).parent


@pytest.mark.parametrize("name", ["specs", "inputs"])
def test_models_of_tensorflow(name: str) -> None:
    with eager_mode():
        wanted, found = make_signatures.read(tf2, str(MODELS), name)
    assert make_signatures.same(wanted, found), found


@pytest.mark.parametrize("name", ["module", "inputs", "tables", "mutable_tables"])
def test_models_in_a_graph(name: str) -> None:
    """Variables and tables are the graph's, and get what was saved when they are initialized."""
    given = {
        "module": {"x": np.float32([[1, 2, 3]])},
        "inputs": {"a": np.ones((1, 3)), "b": np.ones((1, 2)), "ids": np.int32([[1, 2, 3, 4]])},
        "tables": {"words": np.array([b"a", b"z"], object)},
        "mutable_tables": {},
    }[name]
    with eager_mode():
        loaded = tf2.saved_model.load(str(MODELS / name)).signatures["serving_default"]
        arguments = [t.op.name for t in loaded.concrete.graph.inputs]
        kinds = [t.dtype for t in loaded.concrete.graph.inputs]
        if not given:
            given = {
                a: np.array([b"a", 1][k != tf.string], ndmin=1) for a, k in zip(arguments, kinds)
            }
        feeds = {
            k: tf2.cast(v, t) if t != tf.string else tf2.constant(v, t)
            for (k, v), t in zip(sorted(given.items()), kinds)
        }
        wanted = {k: v.numpy() for k, v in loaded(**feeds).items()}
        feeds = {k: v.numpy() for k, v in feeds.items()}
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as sess:
            model = tf2.saved_model.load(str(MODELS / name))
            found = model.signatures["serving_default"](
                **{k: tf.constant(v) for k, v in feeds.items()}
            )
            sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for key, value in sess.run(found).items():
                np.testing.assert_allclose(
                    value, wanted[key], rtol=1e-6
                ) if value.dtype != object else np.testing.assert_array_equal(value, wanted[key])
            assert len(tf.global_variables()) >= len(model.variables)
            assert not tf.trainable_variables()  # as in TensorFlow


def test_ragged_and_sparse_functions_of_ours(tmp_path: Path) -> None:
    """Saved, loaded, saved again and loaded."""
    with eager_mode():
        model: Any = make_signatures.specs(tf2)
        before = make_signatures.call_specs(tf2, model)
        for i in range(2):
            tf2.saved_model.save(model, str(tmp_path / str(i)))
            model = tf2.saved_model.load(str(tmp_path / str(i)))
            assert make_signatures.call_specs(tf2, model) == before


def test_ragged_tensors_in_signatures_of_tf_1(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        values = tf.placeholder(tf.float32, [None])
        ragged = tf.RaggedTensor.from_row_splits(values, tf.constant([0, 1, 3], tf.int64))
        sums = tf.reduce_sum(ragged, axis=1)
        tf.saved_model.simple_save(sess, str(tmp_path / "m"), {"r": ragged}, {"s": sums})
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        meta = tf.saved_model.loader.load(sess, ["serve"], str(tmp_path / "m"))
        info = meta.signature_def["serving_default"].inputs["r"]
        found = tf.saved_model.utils.get_tensor_from_tensor_info(info, graph)
        assert isinstance(found, tf.RaggedTensor)
        fed = {found.flat_values: [1.0, 2.0, 3.0]}
        assert sess.run(tf.reduce_sum(found, axis=1), fed).tolist() == [1.0, 5.0]


class _Model(tf2.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf2.Variable([2.0, 3.0])
        self.made = None

    @tf2.function(input_signature=[tf2.TensorSpec([None, 2], tf2.float32)])
    def scale(self, x: Any) -> Any:
        if self.made is None:
            self.made = tf2.Variable(10.0)
        return x * self.w + self.made


def test_single_traces_files_and_variables_that_tracing_makes(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    one = np.ones((1, 2), np.float32)
    with eager_mode():
        model: Any = _Model()
        model.words = tf2.saved_model.Asset(str(words))
        model.trace = tf2.function(lambda x, y: x - y).get_concrete_function(
            tf2.TensorSpec([None], tf2.float32), tf2.TensorSpec([], tf2.float32)
        )
        tf2.saved_model.save(model, str(tmp_path / "first"))
        words.unlink()
        loaded = tf2.saved_model.load(str(tmp_path / "first"))
        tf2.saved_model.save(loaded, str(tmp_path / "second"))
        for name in ("first", "second"):
            loaded = tf2.saved_model.load(str(tmp_path / name))
            assert loaded.scale(one).numpy().tolist() == [[12.0, 13.0]]
            assert loaded.trace(tf2.constant([3.0]), tf2.constant(1.0)).numpy().tolist() == [2.0]
            # the only function that says what it takes is the signature
            served = loaded.signatures["serving_default"](x=tf2.constant(one))
            assert served["output_0"].numpy().tolist() == [[12.0, 13.0]]
            path = Path(loaded.words.asset_path.numpy().decode())
            assert path == tmp_path / name / "assets" / "words.txt" and path.read_text() == "a\nb\n"
            assert len(loaded.variables) == 2


def test_names_of_files_in_the_loader_of_tf_1(tmp_path: Path) -> None:
    """It tells them only while it initializes the model."""
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    with eager_mode():
        model: Any = tf2.Module()
        model.words = tf2.saved_model.Asset(str(words))
        model.read = tf2.function(lambda: tf2.io.read_file(model.words.asset_path), [])
        tf2.saved_model.save(model, str(tmp_path / "m"))
    words.unlink()
    (tmp_path / "m").rename(tmp_path / "moved")
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.loader.load(sess, ["serve"], str(tmp_path / "moved"))
        (output,) = meta.signature_def["serving_default"].outputs.values()
        assert sess.run(output.name) == b"a\nb\n"


def test_lists_keep_their_places(tmp_path: Path) -> None:
    with eager_mode():
        model: Any = tf2.Module()
        model.parts = [tf2.Variable(1.0), 2, tf2.Variable(3.0)]
        tf2.saved_model.save(model, str(tmp_path / "m"))
        loaded = tf2.saved_model.load(str(tmp_path / "m"))
        assert [p and float(p) for p in loaded.parts] == [1.0, None, 3.0]
        with pytest.raises(TypeError, match="cannot be changed"):
            loaded.signatures["new"] = None


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: (x, (x, x)), "non-flat outputs"),
        (lambda x: {"a": x, "b": [x]}, "non-Tensor value"),
    ],
)
def test_nested_results_are_no_signature(tmp_path: Path, result: Any, message: str) -> None:
    with eager_mode():
        model: Any = tf2.Module()
        model.f = tf2.function(result, [tf2.TensorSpec([], tf2.float32)])
        with pytest.raises(ValueError, match=message):
            tf2.saved_model.save(model, str(tmp_path / "m"), signatures=model.f)


def test_what_cannot_be_saved_and_called(tmp_path: Path) -> None:
    with eager_mode():
        model: Any = _Model()
        model.signatures = {"serving_default": model.scale}
        with pytest.raises(ValueError, match="overwrite"):
            tf2.saved_model.save(model, str(tmp_path / "m"))
        del model.signatures
        inside = tf2.function(lambda: tf2.saved_model.save(model, str(tmp_path / "m")))
        with pytest.raises(AssertionError, match=r"inside a traced @tf\.function"):
            inside()
        add = tf2.function(lambda a, b: a + b).get_concrete_function(
            tf2.TensorSpec([], tf2.float32, "a"), tf2.TensorSpec([], tf2.float32, "b")
        )
        model.add = add
        tf2.saved_model.save(model, str(tmp_path / "n"), signatures={"add": add})
        served = tf2.saved_model.load(str(tmp_path / "n")).signatures["add"]
        assert float(served(a=tf2.constant(1.0), b=tf2.constant(2.0))["output_0"]) == 3.0
        with pytest.raises(TypeError, match="positional"):
            served(tf2.constant(1.0), b=tf2.constant(2.0))


def test_tensors_as_default_values(tmp_path: Path) -> None:
    with eager_mode():
        model: Any = tf2.Module()
        partial = functools.partial(lambda x, y: x + y, y=tf2.constant([1.0]))
        model.f = tf2.function(partial)
        before = model.f(tf2.constant([2.0])).numpy().tolist()
        tf2.saved_model.save(model, str(tmp_path / "m"))
        loaded = tf2.saved_model.load(str(tmp_path / "m"))
        assert loaded.f(tf2.constant([2.0])).numpy().tolist() == before


def _model_of_tf_1(folder: Path, tags: list[list[str]], main_op: Any = None) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.int64, [1], name="x")
        v = tf.get_variable("v", initializer=tf.constant([3], tf.int64))
        sparse = tf.SparseTensor([[0]], x * v, [1])
        sess.run(v.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(str(folder))
        signature = tf.saved_model.predict_signature_def({"x": x}, {"sparse": sparse})
        made = None if main_op is None else main_op()
        builder.add_meta_graph_and_variables(sess, tags[0], {"s": signature}, main_op=made)
        for further in tags[1:]:
            builder.add_meta_graph(further)
        builder.save()


def test_models_of_tf_1_as_objects(tmp_path: Path) -> None:
    _model_of_tf_1(tmp_path / "one", [["serve"]])
    _model_of_tf_1(tmp_path / "two", [["serve"], ["serve", "train"]])
    with eager_mode():
        model = tf2.saved_model.load(str(tmp_path / "one"))
        found = model.signatures["s"](tf2.constant([2], tf2.int64))["sparse"]
        assert found.values.numpy().tolist() == [6] and found.dense_shape.numpy().tolist() == [1]
        assert [v.name for v in model.variables] == ["v:0"]
        assert model.prune("x:0", "mul:0")(tf2.constant([5], tf2.int64)).numpy().tolist() == [15]
        with pytest.raises(ValueError, match="2 MetaGraphs"):
            tf2.saved_model.load(str(tmp_path / "two"))
        assert tf2.saved_model.load(str(tmp_path / "two"), tags="serve").signatures.keys() == {"s"}


@pytest.mark.parametrize("kind", ["WriteFile", "SaveV2", "summaries", "inside of a branch"])
def test_loading_writes_no_files(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"

    def main_op() -> Any:
        if kind == "WriteFile":
            return tf.io.write_file(str(target), "text")
        if kind == "SaveV2":
            return tf.raw_ops.SaveV2(
                prefix=str(target), tensor_names=["a"], shape_and_slices=[""], tensors=[1.0]
            )
        if kind == "summaries":
            return tf.contrib.summary.create_file_writer(str(target)).init()
        write = lambda: tf.group(tf.io.write_file(str(target), "text"))
        return tf.cond(tf.constant(True), write, tf.no_op).op

    _model_of_tf_1(tmp_path / "m", [["serve"]], main_op)
    with (
        tf.Graph().as_default(),
        tf.Session() as sess,
        pytest.raises(errors.PermissionDeniedError, match="init operation writes files"),
    ):
        tf.saved_model.loader.load(sess, ["serve"], str(tmp_path / "m"))
    assert not list(tmp_path.glob("target*"))


def test_restoring_writes_no_files(tmp_path: Path) -> None:
    """A model, or a .meta file, that names another operation to restore its variables with."""
    target = tmp_path / "target"
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=1.0)
        tf.io.write_file(str(target), "text", name="evil")
        sess.run(v.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(sess, ["serve"])
        builder.save()
    model = read_saved_model(str(tmp_path / "m"))
    meta = model.meta_graphs[0]
    meta.saver_def.restore_op_name = "evil"
    (tmp_path / "m" / "saved_model.pb").write_bytes(model.SerializeToString())
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(errors.PermissionDeniedError, match="restore operation writes files"):
            tf.saved_model.loader.load(sess, ["serve"], str(tmp_path / "m"))
    with tf.Graph().as_default(), pytest.raises(errors.PermissionDeniedError):
        tf.train.import_meta_graph(meta)
    assert not target.exists()


def test_tools_of_saved_models(tmp_path: Path) -> None:
    _model_of_tf_1(tmp_path / "m", [["serve"], ["serve", "train"]])
    read = inner(tf, "python.tools.saved_model_utils", "read_saved_model")
    tag_sets = inner(tf, "python.tools.saved_model_utils", "get_saved_model_tag_sets")
    one = inner(tf, "python.tools.saved_model_utils", "get_meta_graph_def")
    assert len(read(str(tmp_path / "m")).meta_graphs) == 2
    assert tag_sets(str(tmp_path / "m")) == [["serve"], ["serve", "train"]]
    assert "s" in one(str(tmp_path / "m"), "serve").signature_def
    with pytest.raises(RuntimeError, match="could not be found"):
        one(str(tmp_path / "m"), "train")
    strip = inner(tf, "python.tools.strip_unused_lib", "strip_unused_from_files")
    graph_def = one(str(tmp_path / "m"), "serve").graph_def
    tf.io.write_graph(graph_def, str(tmp_path), "g.pbtxt")
    strip(str(tmp_path / "g.pbtxt"), False, str(tmp_path / "o.pb"), True, "x", "mul", 9)
    kept = {n.name: n.op for n in read_graph_def(tmp_path / "o.pb").node}
    assert kept["x"] == "Placeholder" and "mul" in kept and "v/Assign" not in kept
