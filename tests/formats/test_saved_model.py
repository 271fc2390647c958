"""SavedModels and MetaGraphs.

Those of TF 1.15 and 2 run here, ours have what TensorFlow needs, and wrong ones are refused.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.core.build import apply_op
from headrace.eager.eager_context import eager_mode
from headrace.formats.saved_model import SavedModelLoader, asset_path
from headrace.wire.saved_model_messages import saved_model_class

GOLDEN = Path(__file__).parent.parent / "golden" / "saved_models"


def values(name: str) -> dict[str, Any]:
    return {k: np.asarray(v) for k, v in json.loads((GOLDEN / f"{name}.json").read_text()).items()}


X = np.float32([[1, 2, 3]])


def test_model_of_tf1() -> None:
    want = values("tf1")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        meta = tf.saved_model.loader.load(session, [tf.saved_model.SERVING], str(GOLDEN / "tf1"))
        for signature, key in (("serving_default", "y"), ("loop", "z")):
            found = meta.signature_def[signature]
            got = session.run(found.outputs[key].name, {found.inputs["x"].name: X})
            np.testing.assert_allclose(got, want[key], rtol=1e-5)
        assert session.run("counted:0") == 7.0  # the init operation ran
        assert [v.name for v in tf.trainable_variables()] == [
            "w:0",
            "b:0",
            "part/part_0:0",
            "part/part_1:0",
        ]
        assert tf.get_collection("mine") == [graph.get_tensor_by_name("y:0")]
        assert tf.get_collection("numbers") == [3]
        gradient = tf.gradients(graph.get_tensor_by_name("looped:0"), tf.trainable_variables()[0])
        assert session.run(gradient, {"x:0": X})[0].shape == (3, 2)


def test_model_in_a_scope() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], str(GOLDEN / "tf1"), import_scope="net")
        np.testing.assert_allclose(
            session.run("net/y:0", {"net/x:0": X}), values("tf1")["y"], rtol=1e-5
        )
        assert tf.global_variables()[0].name == "net/w:0"


def test_meta_graph_and_checkpoint_of_tf1() -> None:
    folder = GOLDEN / "tf1_checkpoint"
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(str(folder / "model-0.meta"))
        saver.restore(session, str(folder / "model-0"))
        np.testing.assert_allclose(session.run("y:0", {"x:0": X}), values("tf1")["y"], rtol=1e-5)


@pytest.mark.parametrize("name", ["module", "keras", "lstm"])
def test_serving_signatures_of_tf2(name: str) -> None:
    want = values(name)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(GOLDEN / name))
        signature = meta.signature_def["serving_default"]
        (given,) = signature.inputs.values()
        result = signature.outputs["y" if name == "module" else "output_0"]
        got = session.run(result.name, {given.name: want.get("x", X)})
    np.testing.assert_allclose(got, want["y"], rtol=1e-5, atol=1e-6)


def model(path: Path, **options: Any) -> Any:
    """A model written here; returns its answer."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", [3, 2])
        b = tf.get_variable("b", [2], use_resource=True, initializer=tf.ones_initializer())
        part = tf.get_variable("part", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        y = tf.identity(tf.matmul(x, w) + b + tf.reduce_sum(part), name="y")
        words = path.parent / "words.txt"
        words.write_text("a")
        asset = tf.constant(str(words), name="asset")
        local = tf.get_local_variable(
            "text", [], tf.string, initializer=tf.constant_initializer("")
        )
        main = tf.group(local.assign(tf.read_file(asset)), name="main")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(path))
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=[asset],
            main_op=main,
            **options,
        )
        builder.add_meta_graph(["other"])
        builder.save()
        operations = {op.name for op in tf.get_default_graph().get_operations()}
        assert not [n for n in operations if n.startswith("save/")], (
            "the user's graph stays as it was"
        )
        return session.run(y, {x: X})


@pytest.mark.parametrize("options", [{}, {"strip_default_attrs": True, "clear_devices": True}])
def test_round_trip(tmp_path: Path, options: dict[str, Any]) -> None:
    want = model(tmp_path / "m", **options)
    assert tf.saved_model.contains_saved_model(str(tmp_path / "m"))
    (tmp_path / "words.txt").unlink()
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "m"))
        np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), want)
        assert session.run("text:0") == b"a"  # read from the copy in the model's folder
        info = meta.signature_def["serving_default"].inputs["x"]
        assert tf.saved_model.get_tensor_from_tensor_info(
            info
        ) is tf.get_default_graph().get_tensor_by_name("x:0")


def test_simple_save(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.Variable([1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": x * v})
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "m"))
        name = meta.signature_def["serving_default"].outputs["y"].name
        np.testing.assert_array_equal(session.run(name, {"x:0": [3.0, 4.0]}), [3.0, 8.0])


def test_text_form(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.constant(1.5, name="c")
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(session, ["t"])
        assert builder.save(as_text=True).endswith(b"saved_model.pbtxt")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["t"], str(tmp_path / "m"))
        assert session.run("c:0") == 1.5


def test_wrong_uses(tmp_path: Path) -> None:
    model(tmp_path / "m")
    with pytest.raises(AssertionError, match="isn't empty"):
        tf.saved_model.Builder(str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(RuntimeError, match=r"'nothing' could not be found.*\['serve'\]"):
            tf.saved_model.load(session, ["nothing"], str(tmp_path / "m"))
        with pytest.raises(OSError, match="SavedModel file does not exist"):
            tf.saved_model.load(session, ["serve"], str(tmp_path))
        builder = tf.saved_model.Builder(str(tmp_path / "n"))
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["serve"])


def test_signatures() -> None:
    with tf.Graph().as_default():
        text, number = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, [None])
        u = tf.saved_model.signature_def_utils
        assert u.is_valid_signature(u.regression_signature_def(text, number))
        assert u.is_valid_signature(u.classification_signature_def(text, text, number))
        assert u.is_valid_signature(u.predict_signature_def({"a": number}, {"b": number}))
        assert not u.is_valid_signature(u.build_signature_def())
        with pytest.raises(ValueError, match="must be of type string"):
            u.regression_signature_def(number, number)
        sparse = tf.sparse_placeholder(tf.float32)
        info = tf.saved_model.build_tensor_info(sparse)
        assert info.coo_sparse.values_tensor_name == sparse.values.name
        assert tf.saved_model.get_tensor_from_tensor_info(info).values is sparse.values


# MetaGraphs ---------------------------------------------------------------------------------------


def test_collections_of_a_meta_graph(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default():
        v = tf.get_variable("v", [2], use_resource=True)
        r = tf.Variable([1.0], name="r", trainable=False)
        y = tf.identity(v, name="y")
        for key, value in (
            ("t", y),
            ("o", y.op),
            ("s", "text"),
            ("i", 7),
            ("f", 0.5),
            ("odd", object()),
        ):
            tf.add_to_collection(key, value)
        tf.add_to_collection("losses", r)
        tf.train.export_meta_graph(str(tmp_path / "g.meta"))
        tf.train.export_meta_graph(str(tmp_path / "g.txt"), as_text=True)
    assert "odd" in caplog.text
    for name in ("g.meta", "g.txt"):
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(str(tmp_path / name), import_scope="in")
            assert [x.name for x in tf.global_variables()] == ["in/v:0", "in/r:0"]
            assert [x.name for x in tf.trainable_variables()] == ["in/v:0"]
            assert tf.trainable_variables()[0] is tf.global_variables()[0]
            assert tf.get_collection("t") == [graph.get_tensor_by_name("in/y:0")]
            assert tf.get_collection("o") == [graph.get_operation_by_name("in/y")]
            assert tf.get_collection("i") == [7]
            assert tf.get_collection("f") == [0.5]
            assert tf.get_collection("s") == ["in/text"]  # TF 1.15's answer


def test_export_scope() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            v = tf.get_variable("v", initializer=[1.0])
            tf.add(v, v, name="y")
        tf.constant(1.0, name="outside")
        meta = tf.train.export_meta_graph(export_scope="a")
    names = [n.name for n in meta.graph_def.node]
    assert "y" in names and "outside" not in names
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope="b")
        assert [x.name for x in tf.global_variables()] == ["b/v:0"]


# hostile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../x", "", ".."])
def test_assets_stay_inside(name: str) -> None:
    with pytest.raises(ValueError, match="outside"):
        asset_path("/tmp/model", name)


def test_assets_through_links_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "link").symlink_to("/etc")
    with pytest.raises(ValueError, match="outside"):
        asset_path(str(tmp_path), "link/passwd")
    assert asset_path(str(tmp_path), "words.txt") == str(tmp_path / "assets" / "words.txt")


REFUSALS = (ValueError, KeyError, OSError, RuntimeError, TypeError, tf.errors.OpError)


def test_damaged_models(tmp_path: Path) -> None:
    """Bits flipped and tails cut: an error, never a crash."""
    data = (GOLDEN / "tf1" / "saved_model.pb").read_bytes()
    random = np.random.RandomState(0)
    path = tmp_path / "saved_model.pb"
    for _ in range(60):
        raw = bytearray(data)
        for _ in range(random.randint(1, 5)):
            raw[random.randint(len(raw))] = random.randint(256)
        path.write_bytes(raw[: random.randint(len(raw))] if random.rand() < 0.3 else raw)
        with tf.Graph().as_default(), tf.Session() as session:
            with contextlib.suppress(*REFUSALS):
                tf.saved_model.loader.load(session, ["serve"], str(tmp_path))


def test_the_message_is_tensorflows() -> None:
    message = saved_model_class()()
    message.ParseFromString((GOLDEN / "tf1" / "saved_model.pb").read_bytes())
    assert message.saved_model_schema_version == 1
    assert [sorted(m.meta_info_def.tags) for m in message.meta_graphs] == [
        ["serve"],
        ["serve", "train"],
    ]


# objects of TF 2 ----------------------------------------------------------------------------------


@pytest.fixture
def eager() -> Any:
    from headrace.eager.eager_context import eager_mode

    with eager_mode():
        yield


def test_objects_of_tf2(eager: Any) -> None:
    import headrace.api.v2 as tf2

    want = values("module")
    model = tf2.saved_model.load(str(GOLDEN / "module"))
    x = tf2.constant(X)
    np.testing.assert_allclose(model(x)["y"].numpy(), want["y"], rtol=1e-6)
    assert model.count.numpy() == 1
    np.testing.assert_allclose(model.add(tf2.constant(1.0)).numpy(), want["add"])
    np.testing.assert_allclose(model.add(tf2.constant(1.0), twice=True).numpy(), want["twice"])
    got = model.signatures["serving_default"](x=x)
    np.testing.assert_allclose(got["y"].numpy(), want["y"], rtol=1e-6)
    assert model.count.numpy() == 2
    assert len(model.variables) == 4 and len(model.parts) == 2
    with tf2.GradientTape() as tape:
        loss = tf2.reduce_sum(model(x)["y"])
    assert tape.gradient(loss, model.w).numpy().shape == (3, 2)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        model.add(tf2.constant([1, 2]), 3)
    model.w.assign(np.zeros([3, 2], np.float32))
    assert model(x)["y"].numpy()[0, 0] != want["y"][0, 0]


@pytest.mark.parametrize("name", ["keras", "lstm"])
def test_keras_models(eager: Any, name: str) -> None:
    import headrace.api.v2 as tf2

    want = values(name)
    model = tf2.saved_model.load(str(GOLDEN / name))
    x = tf2.constant(want["x"], tf2.float32)
    np.testing.assert_allclose(model.serve(x).numpy(), want["y"], rtol=1e-5, atol=1e-6)
    got = model.signatures["serving_default"](x)["output_0"]
    np.testing.assert_allclose(got.numpy(), want["y"], rtol=1e-5, atol=1e-6)


def test_tf1_model_as_objects(eager: Any) -> None:
    import headrace.api.v2 as tf2

    model = tf2.saved_model.load(str(GOLDEN / "tf1"), tags=["serve"])
    got = model.signatures["serving_default"](x=X)["y"]
    np.testing.assert_allclose(got.numpy(), values("tf1")["y"], rtol=1e-5)


def module() -> Any:
    import headrace.api.v2 as tf2

    class Model(tf2.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = tf2.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 7, name="w")
            self.parts = [tf2.Variable([1.0, 2.0]), tf2.Variable([0.5, 0.25])]
            self.count = tf2.Variable(0, dtype=tf2.int64, trainable=False)

        @tf2.function(input_signature=[tf2.TensorSpec([None, 3], tf2.float32)])
        def __call__(self, x: Any) -> Any:
            self.count.assign_add(1)
            y = tf2.matmul(x, self.w)
            for part in self.parts:
                y = y + part
            return {"y": y * 1.5, "n": self.count}

        @tf2.function
        def add(self, a: Any, b: float = 2.0, twice: bool = False) -> Any:
            return (a + b) * 2.0 if twice else a + b

        @tf2.function(input_signature=[tf2.TensorSpec([None, 3], tf2.float32)])
        def product(self, x: Any) -> Any:
            return tf2.matmul(x, self.w)

    return Model()


def test_saving_a_module(eager: Any, tmp_path: Path) -> None:
    import headrace.api.v2 as tf2

    model = module()
    one = tf2.constant(1.0)
    model.add(one, twice=True)
    model.add(one)
    tf2.saved_model.save(model, str(tmp_path / "m"), signatures={"serving_default": model.__call__})
    want = model(tf2.constant(X))["y"].numpy()
    loaded = tf2.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded(tf2.constant(X))["y"].numpy(), want)
    assert loaded.add(one, twice=True).numpy() == 6.0
    assert len(loaded.parts) == 2 and loaded.count.numpy() == 1
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "m"))
        signature = meta.signature_def["serving_default"]
        got = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: X})
    np.testing.assert_array_equal(got, want)


def test_untracked_variables_are_refused(eager: Any, tmp_path: Path) -> None:
    import headrace.api.v2 as tf2

    outside = tf2.Variable(1.0)
    root = tf2.Module()
    root.f = tf2.function(lambda x: x * outside, input_signature=[tf2.TensorSpec([], tf2.float32)])
    with pytest.raises(AssertionError, match="untracked"):
        tf2.saved_model.save(root, str(tmp_path / "m"))


def test_freezing_a_function(eager: Any) -> None:
    import headrace.api.v2 as tf2
    from headrace.formats.freezing_v2 import convert_variables_to_constants_v2

    model = module()
    frozen = convert_variables_to_constants_v2(model.product.get_concrete_function())
    x = tf2.constant(X)
    np.testing.assert_array_equal(frozen(x).numpy(), model.product(x).numpy())
    assert [n.op for n in frozen.graph.as_graph_def().node] == [
        "Placeholder",
        "Const",
        "Identity",
        "MatMul",
    ]


def test_the_freeze_tool(tmp_path: Path) -> None:
    from headrace.formats.freeze_tool import freeze_graph

    folder = GOLDEN / "tf1_checkpoint"
    frozen = freeze_graph(
        None,
        None,
        True,
        str(folder / "model-0"),
        "y",
        "save/restore_all",
        "save/Const:0",
        str(tmp_path / "f.pb"),
        True,
        "",
        input_meta_graph=str(folder / "model-0.meta"),
    )
    assert (tmp_path / "f.pb").read_bytes() == frozen.SerializeToString(deterministic=True)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        np.testing.assert_allclose(session.run("y:0", {"x:0": X}), values("tf1")["y"], rtol=1e-5)


@pytest.mark.parametrize("name", ["tables", "mutable_tables", "text"])
@pytest.mark.parametrize("way", ["objects", "session"])
def test_tables_of_tf2(name: str, way: str) -> None:
    """Vocabulary files, tables in checkpoints, and Keras' text layers."""
    import headrace.api.v2 as tf2

    answers = json.loads((GOLDEN / "tables.json").read_text())[name]
    feeds = {k: np.array(v, object) for k, v in answers["feeds"].items()}
    if way == "objects":
        with eager_mode():
            signature = tf2.saved_model.load(str(GOLDEN / name)).signatures["serving_default"]
            found = signature(**{k: tf2.constant(v) for k, v in feeds.items()})
        found = {k: v.numpy() for k, v in found.items()}
    else:
        with tf.Graph().as_default(), tf.Session() as session:
            meta = tf.saved_model.loader.load(session, ["serve"], str(GOLDEN / name))
            signature = meta.signature_def["serving_default"]
            given = {signature.inputs[k].name: v for k, v in feeds.items()}
            found = session.run({k: v.name for k, v in signature.outputs.items()}, given)
    assert found.keys() == answers["results"].keys()
    for key, want in answers["results"].items():
        if isinstance(want[0], str):
            assert [v.decode() for v in found[key]] == want
        else:
            np.testing.assert_allclose(found[key], want, rtol=1e-5)


def _table_module(folder: Path) -> Any:
    import headrace.api.v2 as tf2

    vocabulary = folder / "words.txt"
    vocabulary.write_text("a\nb\nc\n")
    lookup, lines = tf2.lookup, tf2.lookup.TextFileIndex

    class Model(tf2.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            pairs = lookup.KeyValueTensorInitializer(
                tf2.constant(["x", "y"]), tf2.constant([10, 20], tf2.int64)
            )
            self.static = lookup.StaticHashTable(pairs, -1)
            file = lookup.TextFileInitializer(
                str(vocabulary), tf2.string, lines.WHOLE_LINE, tf2.int64, lines.LINE_NUMBER
            )
            self.words = lookup.StaticVocabularyTable(file, 2)
            self.counts = lookup.experimental.MutableHashTable(tf2.string, tf2.int64, -1)
            self.counts.insert(tf2.constant(["x", "a"]), tf2.constant([5, 6], tf2.int64))
            self.scores = lookup.experimental.DenseHashTable(
                tf2.int64, tf2.float32, -1.0, -100, -101, initial_num_buckets=8
            )
            self.scores.insert(tf2.constant([5, 6], tf2.int64), tf2.constant([0.5, 1.5]))
            self.offset = tf2.constant([100.0, 200.0])  # captured: a constant of the model
            self.w = tf2.Variable([1.0, 2.0])

        @tf2.function(input_signature=[tf2.TensorSpec([None], tf2.string)])
        def __call__(self, words: Any) -> Any:
            counts = self.counts.lookup(words)
            return {
                "static": self.static.lookup(words),
                "words": self.words.lookup(words),
                "counts": counts,
                "scores": self.scores.lookup(counts),
                "w": self.w * 2.0 + self.offset,
            }

    return Model()


_WORDS = ["x", "a", "q"]


def _answers_in_session(folder: Path) -> dict[str, list[Any]]:
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(folder))
        signature = meta.signature_def["serving_default"]
        fed = {signature.inputs["words"].name: _WORDS}
        found = session.run({k: v.name for k, v in signature.outputs.items()}, fed)
    return {k: v.tolist() for k, v in found.items()}


def test_saving_tables_and_constants(eager: Any, tmp_path: Path) -> None:
    """Static tables with their file, tables that change, tensors that a function captured; saved
    once more from what was loaded. TF 1.15 and 2.21 load both folders with these answers.
    """
    import headrace.api.v2 as tf2

    model = _table_module(tmp_path)
    want = {k: v.numpy().tolist() for k, v in model(tf2.constant(_WORDS)).items()}
    assert want["static"] == [10, -1, -1] and want["scores"] == [0.5, 1.5, -1.0]
    first, second = tmp_path / "first", tmp_path / "second"
    tf2.saved_model.save(model, str(first), signatures=model.__call__)
    (tmp_path / "words.txt").unlink()  # the model has its own copy
    loaded = tf2.saved_model.load(str(first))
    assert loaded.counts.resource_handle is not None  # tables come back under their names
    tf2.saved_model.save(loaded, str(second), signatures=loaded.signatures)
    again = tf2.saved_model.load(str(second))
    for found in (loaded, again):
        for call in (found, found.signatures["serving_default"]):
            got = {k: v.numpy().tolist() for k, v in call(tf2.constant(_WORDS)).items()}
            assert got == want
    assert _answers_in_session(first) == want
    assert _answers_in_session(second) == want


def test_a_table_outside_of_the_object_is_refused(eager: Any, tmp_path: Path) -> None:
    import headrace.api.v2 as tf2

    table = tf2.lookup.experimental.MutableHashTable(tf2.string, tf2.int64, -1)
    root = tf2.Module()
    root.f = tf2.function(table.lookup, input_signature=[tf2.TensorSpec([None], tf2.string)])
    with pytest.raises(AssertionError, match="untracked"):
        tf2.saved_model.save(root, str(tmp_path / "m"))


def test_options_of_saving_and_loading(eager: Any, tmp_path: Path) -> None:
    import headrace.api.v2 as tf2

    model, folder = module(), str(tmp_path / "m")
    options = tf2.saved_model.SaveOptions(function_aliases={"times": model.product})
    tf2.saved_model.save(model, folder, options=options)
    from headrace.formats.saved_model import read_saved_model

    info = read_saved_model(folder).meta_graphs[0].meta_info_def
    ((name, alias),) = info.function_aliases.items()
    assert alias == "times" and "product" in name
    zeros = tf2.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    assert not tf2.saved_model.load(folder, options=zeros).w.numpy().any()
    for path in (tmp_path / "m" / "variables").iterdir():
        path.unlink()
    with pytest.raises(AssertionError, match="allow_partial_checkpoint"):
        tf2.saved_model.load(folder)
    with pytest.raises(ValueError, match="experimental_io_device"):
        tf2.saved_model.LoadOptions(experimental_io_device="/job:other")


def test_keras_layers_that_count_words() -> None:
    """TextVectorization with multi_hot, count and tf_idf, whose graphs hold RaggedBincount."""
    import headrace.api.v2 as tf2

    answers = json.loads((GOLDEN / "counts.json").read_text())["counts"]
    with eager_mode():
        signature = tf2.saved_model.load(str(GOLDEN / "counts")).signatures["serving_default"]
        found = signature(text=tf2.constant(answers["feeds"]["text"]))
    assert found.keys() == answers["results"].keys()
    for key, want in answers["results"].items():
        np.testing.assert_allclose(found[key].numpy(), want, rtol=1e-5)


_COUNTS = json.loads((GOLDEN / "counts.json").read_text())["ops"]


@pytest.mark.parametrize("number", range(len(_COUNTS)))
def test_bincount_ops(number: int) -> None:
    """The ops alone, in a graph, with what TF 2.21 answers."""
    name, given, binary, want = _COUNTS[number]
    types = [np.int64] * (len(given) - 1) + [np.float32]
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.constant(np.array(v, t)) for v, t in zip(given, types)]
        if want and isinstance(want[0], str):
            with pytest.raises(getattr(tf.errors, want[0])):
                session.run(apply_op(name, *inputs, binary_output=binary))
        else:
            out = apply_op(name, *inputs, binary_output=binary)
            np.testing.assert_allclose(session.run(out), want)
            assert out.shape.is_compatible_with(np.shape(want))


def test_loading_in_steps(tmp_path: Path) -> None:
    """``SavedModelLoader`` as TensorFlow Hub and others use it."""
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        x, v = tf.placeholder(tf.float32, [], name="x"), tf.Variable(3.0, name="v")
        tf.multiply(x, v, name="y")
        sess.run(v.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        other = tf.Variable(0.0, name="other")
        sess.run(other.initializer)
        main_op = tf.assign(other, 7.0, name="start").op
        builder.add_meta_graph_and_variables(sess, ["serve"], main_op=main_op)
        builder.save()
    loader = SavedModelLoader(folder)
    for scope, prefix in ((None, ""), ("inside", "inside/")):
        graph = tf.Graph()
        saver, (found,) = loader.load_graph(graph, ["serve"], scope, return_elements=["y:0"])
        assert found is graph.get_tensor_by_name(f"{prefix}y:0")
        with tf.Session(graph=graph) as sess:
            loader.restore_variables(sess, saver, scope)
            loader.run_init_ops(sess, ["serve"], scope)
            assert sess.run(found, {f"{prefix}x:0": 2.0}) == 6
            assert sess.run(f"{prefix}other:0") == 7
            with pytest.raises(ValueError, match=r"No tf\.train\.Saver object"):
                loader.restore_variables(sess, None, scope)
