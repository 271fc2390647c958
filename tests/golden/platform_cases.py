"""``tf.app``, ``flags``, ``logging``, ``compat``, ``errors``, collections, versions, old names.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import enum
import io
import logging
import sys
import threading

from tests.golden.inner_paths import inner


def _parsed(tf, flags, argv):
    """Values of FLAGS after ``tf.app.run`` has parsed ``argv``, and how the program ended."""
    seen = []

    def main(rest):
        names = ["hr_s", "hr_i", "hr_b", "hr_b2", "hr_f", "hr_e", "hr_l"]
        seen.append([str(getattr(flags.FLAGS, n)) for n in names])
        seen.append(list(rest))
        return 3

    # absl parses once a process: a second parse has to be asked for
    flags.FLAGS.unparse_flags()
    try:
        tf.app.run(main=main, argv=argv)
    except SystemExit as e:
        seen.append(e.code)
    return seen


def _define(flags):
    flags.DEFINE_string("hr_s", "a", "text")
    flags.DEFINE_integer("hr_i", 3, "whole", lower_bound=0)
    flags.DEFINE_boolean("hr_b", False, "truth")
    flags.DEFINE_bool("hr_b2", True, "truth")
    flags.DEFINE_float("hr_f", 0.5, "number")
    flags.DEFINE_enum("hr_e", "x", ["x", "y"], "one of")
    flags.DEFINE_list("hr_l", "p,q", "list")


def _undefine(flags):
    for name in ("hr_s", "hr_i", "hr_b", "hr_b2", "hr_f", "hr_e", "hr_l"):
        delattr(flags.FLAGS, name)


def _with_flags(tf, flags):
    _define(flags)
    try:
        argv = ["prog", "--hr_s=b", "--hr_i", "7", "--hr_b", "--nohr_b2", "--hr_f=2", "rest", "--x"]
        return [
            _parsed(tf, flags, ["prog"]),
            _parsed(tf, flags, argv),
            _parsed(tf, flags, ["prog", "--hr_e=y", "--hr_l=u,v", "--unknown_flag=1"]),
        ]
    finally:
        _undefine(flags)


def app_flags(tf):
    return _with_flags(tf, tf.app.flags)


def flags(tf):
    return _with_flags(tf, tf.flags)


class _Flags:
    """The functions of the inner module, one by one."""

    def __init__(self, tf):
        for n in ("string", "integer", "boolean", "bool", "float", "enum", "list"):
            setattr(self, "DEFINE_" + n, inner(tf, "python.platform.flags", "DEFINE_" + n))
        self.FLAGS = inner(tf, "python.platform.flags", "FLAGS")


def inner_flags(tf):
    return _with_flags(tf, _Flags(tf))


class _Color(enum.Enum):
    RED = 1
    BLUE = 2


def enum_flag(tf):
    tf.flags.DEFINE_enum_class("hr_color", _Color.RED, _Color, "color")
    try:
        tf.flags.FLAGS.hr_color = _Color.BLUE
        return tf.flags.FLAGS.hr_color.name
    finally:
        delattr(tf.flags.FLAGS, "hr_color")


def flags_are_kept(tf):
    tf.flags.DEFINE_integer("hr_kept", 4, "number")
    try:
        tf.app.flags.FLAGS.hr_kept = 9
        tf.flags.mark_flag_as_required("hr_kept")
        parser = tf.app.flags.ArgumentParser
        return [tf.flags.FLAGS.hr_kept, "hr_kept" in tf.flags.FLAGS, parser.__name__]
    finally:
        delattr(tf.flags.FLAGS, "hr_kept")


def app_run_inner(tf):
    ended = []
    run = inner(tf, "python.platform.app", "run")
    for result in (None, 0, "text"):
        try:
            run(lambda argv, result=result: result, ["prog", "a"])
        except SystemExit as e:
            ended.append(e.code)
    return ended


class _Kept(logging.Handler):
    def __init__(self):
        logging.Handler.__init__(self)
        self.rows = []

    def emit(self, record):
        text = record.getMessage()
        if not text.startswith("From "):  # TensorFlow's own advice about the names
            self.rows.append([record.levelname, text])


def _logged(module, act):
    kept = _Kept()
    logger = logging.getLogger("tensorflow")
    before = module.get_verbosity()
    stream, sys.stderr = sys.stderr, io.StringIO()
    logger.addHandler(kept)
    try:
        act(module)
    finally:
        logger.removeHandler(kept)
        module.set_verbosity(before)
        sys.stderr.close()
        sys.stderr = stream
    return kept.rows


def _say(module):
    module.set_verbosity(module.INFO)
    module.info("one %d", 1)
    module.debug("hidden")
    module.warn("two")
    module.warning("three %s", "x")
    module.error("four")
    module.set_verbosity(module.DEBUG)
    module.debug("five")
    module.log(module.INFO, "six")
    for i in range(5):
        module.log_every_n(module.INFO, "seven %d", 2, i)
    module.log_if(module.INFO, "nine", True)
    module.set_verbosity(module.ERROR)
    module.warn("hidden")
    module.vlog(module.INFO, "hidden")


def log(tf):
    levels = ["DEBUG", "ERROR", "FATAL", "INFO", "WARN"]
    module = tf.logging
    values = [module.DEBUG, module.ERROR, module.FATAL, module.INFO, module.WARN]
    return [values, levels, _logged(tf.logging, _say)]


def fatal(tf):
    return _logged(tf.logging, lambda m: m.fatal("gone"))


def inner_logging(tf):
    path = "python.platform.tf_logging"
    rows = []
    for name in ("INFO", "WARN", "DEBUG", "ERROR"):
        rows.append(inner(tf, path, name))

    def act(module):
        module.set_verbosity(module.INFO)
        for name in ("info", "error", "warning", "debug"):
            inner(tf, path, name)("said")

    return [rows, _logged(tf.logging, act)]


def compat(tf):
    c = tf.compat
    return [
        c.as_bytes("a\u00e9").decode("latin-1"), c.as_str(b"abc"), c.as_text(b"d"),
        c.as_str_any(5), inner(tf, "python.util.compat", "as_bytes")("x").decode(),
        [t.__name__ for t in c.bytes_or_text_types],
    ]  # fmt: skip


def collections(tf):
    k = tf.GraphKeys
    return [
        k.GLOBAL_VARIABLES, k.TRAINABLE_VARIABLES, k.UPDATE_OPS, k.REGULARIZATION_LOSSES,
        k.SUMMARIES, k.QUEUE_RUNNERS, k.LOSSES, k.VARIABLES, k.SAVEABLE_OBJECTS,
        k.ASSET_FILEPATHS, k.GLOBAL_STEP, k.LOCAL_VARIABLES, k.MODEL_VARIABLES, k.SAVERS, k.WEIGHTS,
        k.BIASES, k.ACTIVATIONS, k.INIT_OP, k.LOCAL_INIT_OP, k.READY_OP, k.SUMMARY_OP,
        k.TABLE_INITIALIZERS, k.TRAIN_OP, k.COND_CONTEXT, k.WHILE_CONTEXT, k.EVAL_STEP,
        k.METRIC_VARIABLES, k.CONCATENATED_VARIABLES, k.MOVING_AVERAGE_VARIABLES,
        k.READY_FOR_LOCAL_INIT_OP, k.RESOURCES, k.LOCAL_RESOURCES, k.TRAINABLE_RESOURCE_VARIABLES,
    ]  # fmt: skip


def collection_functions(tf):
    tf.add_to_collection("c", 1)
    tf.get_collection_ref("c").append(2)
    keys = sorted(tf.get_default_graph().get_all_collection_keys())
    return [tf.get_collection("c"), keys]


def versions(tf):
    return [
        tf.__version__.split(".")[:2], tf.VERSION.split(".")[:2], tf.GRAPH_DEF_VERSION > 100,
        tf.version.VERSION.split(".")[:2],
    ]  # fmt: skip


def old_initializers(tf):
    tf.get_variable("a", initializer=3.0)
    tf.Variable(4.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="local")
    ops = [tf.initialize_all_variables(), tf.initialize_local_variables()]
    uninitialized = tf.report_uninitialized_variables()
    with tf.Session() as sess:
        before = sess.run(uninitialized).tolist()
        sess.run(ops)
        after = sess.run(uninitialized).tolist()
        a = tf.all_variables()
        return [before, after, [v.name for v in a], sess.run(tf.get_default_session() and a[0])]


def old_names(tf):
    names = []

    def act():  # a thread has no nested graphs
        tf.constant(1.0, name="gone")
        tf.reset_default_graph()
        inner(tf, "python.framework.ops", "reset_default_graph")()
        tf.constant(1.0, name="only")
        names.extend(op.name for op in tf.get_default_graph().get_operations())

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    return names


def errors_of_runs(tf):
    e = tf.errors
    kinds = [
        e.NotFoundError, e.DeadlineExceededError, e.AbortedError, e.InternalError,
        e.InvalidArgumentError, e.OutOfRangeError, e.CancelledError, e.UnavailableError,
        e.FailedPreconditionError, e.AlreadyExistsError, e.PermissionDeniedError,
        e.ResourceExhaustedError, e.UnimplementedError, e.DataLossError, e.UnauthenticatedError,
    ]  # fmt: skip
    made = [k(None, None, "text") for k in kinds]
    return [[m.message, m.error_code, type(m).__name__, isinstance(m, tf.OpError)] for m in made]


def error_codes(tf):
    e = tf.errors
    return [
        e.exception_type_from_error_code(5).__name__,
        e.error_code_from_exception_type(e.AbortedError),
        e.exception_type_from_error_code(e.INVALID_ARGUMENT).__name__,
    ]


def shapes(tf):
    d = tf.Dimension(3)
    scalar = inner(tf, "python.framework.tensor_shape", "scalar")()
    return [(d * 2).value, (d + None).value, str(tf.Dimension(None)), scalar.as_list(), d == 3]


def devices(tf):
    spec = tf.DeviceSpec(job="ps", task=1, device_type="CPU", device_index=0)
    other = tf.DeviceSpec.from_string("/job:w/device:GPU:3")
    spec.merge_from(tf.DeviceSpec(job="q"))
    with tf.container("box"), tf.device(spec):
        op = tf.constant(1.0).op
    listed = inner(tf, "python.client.device_lib", "list_local_devices")()
    cpus = [d.name for d in listed if d.device_type == "CPU"]
    return [
        spec.to_string(), other.job, other.device_type, other.device_index, op.device, cpus,
        tf.test.is_gpu_available(), tf.test.gpu_device_name(),
    ]  # fmt: skip


def configuration(tf):
    made = tf.ConfigProto(
        gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True),
        graph_options=tf.GraphOptions(
            optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
        ),
    )
    rewriter = inner(tf, "core.protobuf.rewriter_config_pb2", "RewriterConfig")
    made.graph_options.rewrite_options.constant_folding = rewriter.OFF
    run = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=20000)
    metadata = tf.RunMetadata()
    with tf.Session(config=made) as sess:
        value = sess.run(tf.constant(2.0) * 3.0, options=run, run_metadata=metadata)
    made_again = tf.ConfigProto.FromString(made.SerializeToString())
    trace = inner(tf, "python.client.timeline", "Timeline")(metadata.step_stats)
    text = trace.generate_chrome_trace_format()
    return [str(made_again), value, len(metadata.step_stats.dev_stats) > 0, "traceEvents" in text]


def eager_switches(tf):
    tf.disable_v2_behavior()
    tf.disable_eager_execution()
    tf.compat.v1.disable_eager_execution()
    return [tf.executing_eagerly(), tf.test.is_built_with_cuda() in (True, False)]


def memory_growth(tf):
    devices = tf.config.experimental.list_physical_devices("GPU")
    for d in devices:
        tf.config.experimental.set_memory_growth(d, True)
    return len(devices)


def memory_stats(tf):
    """Memory is the machine's: only that there is some."""
    stats = tf.contrib.memory_stats
    used = inner(tf, "contrib.memory_stats.python.ops.memory_stats_ops", "BytesInUse")
    with tf.device("/cpu:0"):
        made = [stats.BytesLimit(), stats.MaxBytesInUse(), used()]
    return [[t.dtype.name, t.shape.as_list()] for t in made]
