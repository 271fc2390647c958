"""TensorFlow's inner modules that packages import, with TensorFlow 1.15's answers."""

from __future__ import annotations

import importlib
import json
import unittest
from pathlib import Path

import pytest

import headrace as tf
from headrace import dropin
from headrace.api.contrib_paths import CONTRIB_INNER
from headrace.api.facades import facade
from headrace.api.inner_paths import INNER_PATHS
from headrace.api.paths import PATHS
from tests.golden import framework_ops, inner_modules

GOLDEN = Path(__file__).parents[1] / "golden" / "inner_modules.json"


@pytest.fixture(autouse=True)
def as_tensorflow():
    dropin.install()
    yield
    dropin.uninstall()


def test_what_is_said_about_callables():
    expected = json.loads(GOLDEN.read_text())
    got = inner_modules.answers()
    assert {k: (v, got[k]) for k, v in expected.items() if got[k] != v} == {}


def test_annotations_are_not_part_of_a_specification():
    from tensorflow.python.util import tf_inspect

    def rank(input, name=None):
        return input, name

    assert tf_inspect.getfullargspec(tf.rank) == tf_inspect.getfullargspec(rank)


@pytest.mark.parametrize("path", sorted(INNER_PATHS))
def test_every_path_can_be_imported_and_listed(path):
    module = importlib.import_module(f"tensorflow.{path}")
    names = dir(module)
    assert not [n for n in names if n.startswith("__") and n not in vars(module)]


def test_listed_names_can_be_had():
    """edward walks over `dir` of a namespace and takes every name."""
    module = facade("contrib.distributions", "tensorflow")
    for name in dir(module):
        getattr(module, name)


def test_names_of_inner_modules_are_the_public_ones():
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow.python.framework import indexed_slices, tensor_spec
    from tensorflow.python.ops import ctc_ops, losses

    assert dataset_ops.Dataset is tf.data.Dataset
    assert indexed_slices.IndexedSlices is tf.IndexedSlices
    assert tensor_spec.TensorSpec is tf.TensorSpec
    assert ctc_ops.ctc_loss is tf.nn.ctc_loss
    assert losses.losses.mean_squared_error is tf.losses.mean_squared_error


def test_a_lazy_module_is_imported_when_it_is_used():
    from tensorflow.python.util import lazy_loader

    space: dict = {}
    space["js"] = lazy_loader.LazyLoader("js", space, "json")
    assert space["js"].dumps([1]) == "[1]"
    assert space["js"] is json


def test_decorators_of_tests():
    """Graph first, then eager; the loader's `test_session` is skipped: as TensorFlow 1.15 does."""
    from tensorflow.python.framework import test_util

    seen = []

    class Case(test_util.TensorFlowTestCase):
        @test_util.run_in_graph_and_eager_modes
        def testBoth(self):
            seen.append(("both", tf.executing_eagerly()))
            self.assertAllEqual(self.evaluate(tf.square([2, 3])), [4, 9])
            self.assertAllEqual(self.evaluate({"a": tf.add(1, 2)})["a"], 3)

        @test_util.run_deprecated_v1
        def testGraph(self):
            seen.append(("graph", tf.executing_eagerly()))

        @test_util.run_v1_only("v1")
        def testOne(self):
            seen.append(("one", tf.executing_eagerly()))

    @test_util.run_all_in_graph_and_eager_modes
    class Every(test_util.TensorFlowTestCase):
        def testEvery(self):
            seen.append(("every", tf.executing_eagerly()))

    result = unittest.TestResult()
    for case in (Case, Every):
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert not result.errors and not result.failures, result
    assert seen == [
        ("both", False), ("both", True), ("graph", False), ("one", False), ("every", False),
        ("every", True),
    ]  # fmt: skip
    assert [(t._testMethodName, why) for t, why in result.skipped] == [
        ("test_session", "Not a test.")
    ] * 2


def test_optimizers_have_tensorflows_base():
    """GPflow 1 registers the classes of tf.train whose base is tf.train.Optimizer."""
    names = [n for n in dir(tf.train) if n.endswith("Optimizer") and n != "Optimizer"]
    assert len(names) >= 10
    for name in names:
        assert getattr(tf.train, name).__base__ is tf.train.Optimizer, name


def test_a_local_cluster():
    workers, servers = tf.test.create_local_cluster(2, 1)
    assert len(workers) == 2 and len(servers) == 1
    assert len({s.target for s in (*workers, *servers)}) == 3
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(3.0)
        with tf.device("/job:worker/task:1"):
            w = v * 2
        with tf.Session(workers[0].target) as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(w) == 6.0


def test_contrib_namespaces_with_inner_modules_keep_their_names():
    """`tf.contrib.tpu` had inner modules and lost its names under the name `tensorflow`."""
    import tensorflow

    lost = []
    for path in [p for p in PATHS if p.startswith("contrib.") and p.count(".") == 1]:
        name = path.removeprefix("contrib.")
        public = getattr(tf.contrib, name, None)
        for member in getattr(public, "__all__", ()):
            seen = getattr(getattr(tensorflow.contrib, name), member, None)
            if seen is None:
                lost.append(f"{path}.{member}")
    assert not lost
    assert tensorflow.contrib.tpu.CrossShardOptimizer is tf.contrib.tpu.CrossShardOptimizer


def test_names_of_framework_ops_answer_as_tensorflow():
    from tensorflow.python.framework import ops

    expected = json.loads(GOLDEN.with_name("framework_ops.json").read_text())
    got = framework_ops.answers(tf, ops)
    assert {k: (v, got[k]) for k, v in expected.items() if got[k] != v} == {}


def test_inner_modules_of_contrib_have_the_names_of_their_namespace():
    """Every function and class that TensorFlow 1.15 defines there, as far as Headrace has it."""
    recorded = json.loads(GOLDEN.with_name("contrib_inner.json").read_text())
    wrong, checked = [], 0
    for path, names in recorded.items():
        assert not names["other"], path  # would be another thing under the same name
        module = importlib.import_module(f"tensorflow.contrib.{path}")
        namespace = importlib.import_module(f"tensorflow.contrib.{path.split('.')[0]}")
        for name in names["same"]:
            public = getattr(namespace, name, None)
            if public is None:
                continue
            checked += 1
            if getattr(module, name, None) is not public:
                wrong.append(f"{path}.{name}")
    assert not wrong
    assert checked > 200


def test_every_listed_inner_module_of_contrib_can_be_imported():
    for namespace, packages in CONTRIB_INNER.items():
        for package, modules in packages.items():
            for module in modules.split():
                path = ".".join(filter(None, (namespace, package, module)))
                importlib.import_module(f"tensorflow.contrib.{path}")


def test_first_versions_of_classes():
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow.python.framework import device_spec
    from tensorflow.python.ops import variables

    assert variables.VariableV1 is tf.Variable
    assert device_spec.DeviceSpecV1 is tf.DeviceSpec
    assert isinstance(tf.data.Dataset.range(3), dataset_ops.DatasetV2)


def test_average_precision_of_metrics_impl_takes_collections():
    """tf_slim's `streaming_sparse_average_precision_at_top_k` calls it with keywords."""
    from tensorflow.python.ops import metrics_impl

    with tf.Graph().as_default(), tf.Session() as sess:
        value, update = metrics_impl._streaming_sparse_average_precision_at_top_k(
            labels=tf.constant([[1], [2]], tf.int64),
            predictions_idx=tf.constant([[1, 0], [0, 2]], tf.int64),
            metrics_collections=["m"],
            updates_collections=["u"],
        )
        assert tf.get_collection("m") == [value]
        assert tf.get_collection("u") == [update]
        sess.run(tf.local_variables_initializer())
        assert sess.run(update) == 0.75  # TensorFlow 1.15's
