"""Checkpoint functions, supervised and monitored sessions, hooks, clusters, protocol messages.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import os
import shutil
import tempfile

import numpy as np

from tests.golden.inner_paths import inner


def _in_folder(run):
    folder = tempfile.mkdtemp()
    try:
        return run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _counter(tf):
    """A variable, an op that adds 1 to it, and the global step beside it."""
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", initializer=np.float32(0.5))
    return v, tf.group(v.assign_add(1.0), step.assign_add(1))


def checkpoints(tf):
    def run(folder):
        _, add = _counter(tf)
        saver = tf.train.Saver(max_to_keep=2)
        prefix = os.path.join(folder, "model")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(add)
                saver.save(sess, prefix, global_step=tf.train.get_global_step())
            count = tf.train.global_step(sess, tf.train.get_global_step())
        state = tf.train.get_checkpoint_state(folder)
        latest = tf.train.latest_checkpoint(folder)
        exists = inner(tf, "python.training.saver", "checkpoint_exists")
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.train.import_meta_graph(latest + ".meta").restore(sess, latest)
            restored = sess.run("v:0")
            names = [x.name for x in tf.global_variables()]
        return [
            count, [os.path.basename(p) for p in state.all_model_checkpoint_paths],
            os.path.basename(state.model_checkpoint_path), os.path.basename(latest), restored,
            names, tf.train.checkpoint_exists(latest), exists(prefix + "-1"),
            tf.train.latest_checkpoint(os.path.join(folder, "none")),
            tf.train.get_checkpoint_state(os.path.join(folder, "none")) is None,
            tf.train.get_checkpoint_mtimes([latest])[0] > 0,
        ]  # fmt: skip

    return _in_folder(run)


def meta_graphs(tf):
    def run(folder):
        _counter(tf)
        path = os.path.join(folder, "graph.meta")
        made = tf.train.export_meta_graph(path)
        text = tf.train.write_graph(tf.get_default_graph(), folder, "graph.pbtxt")
        binary = tf.train.write_graph(
            tf.get_default_graph().as_graph_def(), folder, "graph.pb", as_text=False
        )
        with open(binary, "rb") as f:
            read = tf.GraphDef.FromString(f.read())
        part = tf.graph_util.extract_sub_graph(read, ["v/read"])
        return [
            sorted(made.collection_def), [n.name for n in read.node],
            os.path.basename(text), [n.name for n in part.node], sorted(os.listdir(folder)),
            tf.NodeDef(name="n", op="NoOp").name,
        ]  # fmt: skip

    return _in_folder(run)


def supervisor(tf):
    def run(folder):
        v, add = _counter(tf)
        tf.summary.scalar("v", v)
        sv = tf.train.Supervisor(logdir=folder, save_model_secs=0, save_summaries_secs=0)
        with sv.managed_session() as sess:
            for _ in range(3):
                if sv.should_stop():
                    break
                sess.run(add)
            sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
            value = sess.run(v)
        names = sorted(f for f in os.listdir(folder) if "tfevents" not in f)
        return [value, names, sv.is_chief, os.path.basename(sv.save_path)]

    return _in_folder(run)


def _hook(tf, rows, stop_at):
    class Hook(tf.train.SessionRunHook):
        def begin(self):
            rows.append("begin")

        def after_create_session(self, session, coord):
            rows.append("created")

        def before_run(self, context):
            rows.append([len(context.original_args.fetches), context.stop_requested])
            return tf.train.SessionRunArgs({"v": "v:0"})

        def after_run(self, context, values):
            rows.append(float(values.results["v"]))
            if len(rows) > stop_at:
                context.request_stop()

        def end(self, session):
            rows.append("end")

    return Hook()


def monitored(tf):
    def run(folder):
        v, add = _counter(tf)
        tf.summary.scalar("v", v)
        rows = []
        hooks = [
            tf.train.StopAtStepHook(last_step=6), _hook(tf, rows, 6),
            tf.train.NanTensorHook(v), tf.train.StepCounterHook(every_n_steps=100),
        ]  # fmt: skip
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=2, save_summaries_steps=2,
            log_step_count_steps=None,
        ) as sess:  # fmt: skip
            while not sess.should_stop():
                sess.run([add])
        names = sorted(f for f in os.listdir(folder) if "tfevents" not in f)
        return [rows, names, os.path.basename(tf.train.latest_checkpoint(folder))]

    return _in_folder(run)


def session_creators(tf):
    def run(folder):
        v, add = _counter(tf)
        seen = []
        scaffold = tf.train.Scaffold(init_fn=lambda s, sess: seen.append("init"))
        saver = tf.train.CheckpointSaverHook(folder, save_steps=1, scaffold=scaffold)
        summary = tf.train.SummarySaverHook(
            save_steps=1, output_dir=folder, summary_op=tf.summary.scalar("s", v)
        )
        creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir=folder)
        with tf.train.MonitoredSession(creator, hooks=[saver, summary]) as sess:
            sess.run(add)
            seen.append(float(sess.run(v)))
        again = tf.train.SingularMonitoredSession(checkpoint_dir=folder)
        with again as sess:
            seen.append(float(sess.run(v)))
            seen.append(sess.raw_session().graph is tf.get_default_graph())
        worker = tf.train.WorkerSessionCreator(scaffold).__class__.__name__
        return [seen, worker, scaffold.saver is not None, scaffold.ready_op is not None]

    return _in_folder(run)


def nan_hook(tf):
    x = tf.placeholder(tf.float32, [])
    seen, doubled, loss = [], x * 2.0, x * 1.0
    hook = tf.train.NanTensorHook(loss)
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        try:
            sess.run(doubled, {x: float("nan")})
        except tf.train.NanLossDuringTrainingError as e:
            seen.append(str(e))
    stop = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
    with tf.train.MonitoredSession(hooks=[stop]) as sess:
        sess.run(doubled, {x: float("nan")})
        seen.append(sess.should_stop())
    return seen


def logging_hook(tf):
    import logging

    v, add = _counter(tf)
    rows = []

    class Kept(logging.Handler):
        def emit(self, record):
            rows.append(record.getMessage().split(" (")[0])

    kept, logger, level = Kept(), logging.getLogger("tensorflow"), tf.logging.get_verbosity()
    logger.addHandler(kept)
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        hook = tf.train.LoggingTensorHook({"value": v}, every_n_iter=2, at_end=True)
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            for _ in range(4):
                sess.run(add)
    finally:
        logger.removeHandler(kept)
        tf.logging.set_verbosity(level)
    return [r for r in rows if r.startswith("value")]


def clusters(tf):
    spec = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:2", "c:3"]})
    again = tf.train.ClusterSpec(spec.as_cluster_def())
    server = tf.train.Server.create_local_server()
    with tf.device(tf.train.replica_device_setter(cluster=spec)):
        v = tf.get_variable("v", initializer=2.0)
        doubled = v * 2.0
    with tf.Graph().as_default():
        x = tf.constant(3.0) + 1.0
        with tf.Session(server.target) as sess:
            value = sess.run(x)
    return [
        spec.jobs, spec.num_tasks("worker"), spec.task_address("worker", 1), again.as_dict(),
        spec.job_tasks("ps"), v.device, doubled.device, value, server.target.startswith("grpc://"),
    ]  # fmt: skip


def examples(tf):
    t = tf.train
    example = t.Example(
        features=t.Features(
            feature={
                "b": t.Feature(bytes_list=t.BytesList(value=[b"x", b"yz"])),
                "i": t.Feature(int64_list=t.Int64List(value=[1, -2])),
                "f": t.Feature(float_list=t.FloatList(value=[0.5])),
            }
        )
    )
    parsed = tf.parse_single_example(
        example.SerializeToString(),
        {
            "b": tf.FixedLenFeature([2], tf.string),
            "i": tf.VarLenFeature(tf.int64),
            "f": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        },
    )
    sequence = t.SequenceExample(
        context=t.Features(feature={"n": t.Feature(int64_list=t.Int64List(value=[2]))}),
        feature_lists=t.FeatureLists(
            feature_list={
                "s": t.FeatureList(
                    feature=[
                        t.Feature(int64_list=t.Int64List(value=[1, 2])),
                        t.Feature(int64_list=t.Int64List(value=[3, 4])),
                    ]
                )
            }
        ),
    )
    context, lists = tf.parse_single_sequence_example(
        sequence.SerializeToString(),
        {"n": tf.FixedLenFeature([], tf.int64)},
        {"s": tf.FixedLenSequenceFeature([2], tf.int64)},
    )
    with tf.Session() as sess:
        got = sess.run([parsed["b"], parsed["f"], parsed["i"].values, context, lists])
    return [got, len(t.Example.FromString(example.SerializeToString()).features.feature)]


def summaries(tf):
    image = tf.Summary.Image(height=1, width=2, colorspace=3, encoded_image_string=b"png")
    value = tf.Summary.Value(tag="t", simple_value=1.5)
    made = tf.Summary(value=[value, tf.Summary.Value(tag="i", image=image)])
    again = tf.Summary.FromString(made.SerializeToString())
    return [[v.tag for v in again.value], again.value[0].simple_value, again.value[1].image.width]


def averages(tf):
    v = tf.get_variable("v", initializer=1.0)
    ema = tf.train.ExponentialMovingAverage(0.5)
    op = ema.apply([v])
    loss = tf.losses.absolute_difference([1.0], [2.0])
    w = tf.get_variable("w", initializer=[1.0], regularizer=lambda t: tf.reduce_sum(t) * 0.5)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(v.assign(3.0))
        sess.run(op)
        values = sess.run([ema.average(v), tf.losses.get_regularization_losses(), loss, w])
    return [values, [x.name for x in tf.moving_average_variables()], ema.average_name(v)]


def batches_of_readers(tf):
    lists = [[tf.constant(i, tf.int64), tf.constant([i * 1.0, 2.0])] for i in range(2)]
    joined = tf.train.batch_join(lists, batch_size=4, capacity=8)
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        numbers, rows = sess.run(joined)
        coord.request_stop()
        coord.join(threads)
    return [sorted(set(numbers.tolist()) | {0, 1}), list(rows.shape), joined[1].name]


def file_names(tf):
    def run(folder):
        for name in ("b.txt", "a.txt", "c.dat"):
            open(os.path.join(folder, name), "w").close()
        found = tf.train.match_filenames_once(os.path.join(folder, "*.txt"))
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            return sorted(os.path.basename(f).decode() for f in sess.run(found))

    return _in_folder(run)


def scopes(tf):
    with tf.variable_scope("a") as scope:
        made = tf.VariableScope(True, name="b").name
        tf.get_variable("x", initializer=1.0)
        return [scope.name, made, isinstance(scope, tf.VariableScope), scope.reuse in (False, True)]


def static_values(tf):
    value = inner(tf, "python.framework.tensor_util", "constant_value")
    proto = inner(tf, "python.framework.tensor_util", "make_tensor_proto")([1.0, 2.0])
    smart = inner(tf, "python.layers.utils", "smart_cond")
    chosen = smart(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
    with tf.Session() as sess:
        return [value(tf.constant([1, 2])), value(tf.placeholder(tf.float32)), proto.dtype,
                [d.size for d in proto.tensor_shape.dim], sess.run(chosen)]  # fmt: skip


def no_gradient(tf):
    register = inner(tf, "python.framework.ops", "NoGradient")
    return register("OpOfNobody")


def test_case_class(tf):
    class Test(tf.test.TestCase):
        def runTest(self):
            with self.test_session() as sess:
                self.assertAllEqual(sess.run(tf.constant([1, 2]) + 1), [2, 3])
                self.assertAllClose([1.0, 2.0], [1.0, 2.0000001])
                self.assertNear(1.0, 1.05, 0.1)
                self.assertShapeEqual(np.zeros((2, 3)), tf.zeros([2, 3]))
            with self.assertRaisesOpError("bad"):
                with self.session():
                    tf.Assert(tf.constant(False), ["bad"]).run()
            self.assertProtoEquals("name: 'n'", tf.NodeDef(name="n"))
            self.assertStartsWith("abc", "ab")
            self.assertAllInRange([1, 2], 0, 3)
            self.assertAllInSet([1, 2], {1, 2, 3})
            self.assertAllGreater([1, 2], 0)
            self.assertAllLessEqual([1, 2], 2)
            self.assertArrayNear([1.0], [1.01], 0.1)
            self.assertNotAllClose([1.0], [2.0])
            self.assertAllCloseAccordingToType(np.float16([1.0]), np.float16([1.001]))
            self.assertDTypeEqual(tf.zeros([1]), np.float32)
            self.assertTrue(os.path.isdir(self.get_temp_dir()))

    return _outcome(Test())


def _outcome(test):
    import unittest

    result = unittest.TestResult()
    test.run(result)
    texts = [text.strip().splitlines()[-1] for _, text in result.errors + result.failures]
    return [texts, result.testsRun]


def queue_runner_module(tf):
    runners = tf.train.queue_runner
    queue = tf.FIFOQueue(3, tf.int32, shapes=())
    runner = runners.QueueRunner(queue, [queue.enqueue(5)])
    runners.add_queue_runner(runner)
    value = queue.dequeue()
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = runners.start_queue_runners(sess, coord)
        got = sess.run([value, value])
        coord.request_stop()
        coord.join(threads)
    return [got, len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS))]


def resource_paths(tf):
    loader = tf.resource_loader
    here = os.path.dirname(os.path.abspath(__file__))
    return [
        os.path.relpath(loader.get_data_files_path(), here),
        os.path.relpath(loader.get_path_to_datafile("a/b"), here), loader.readahead_file_path("x"),
    ]  # fmt: skip
