"""tf.profiler: reports and messages. Run on TF 1.15 (make_cases.py) and on Headrace."""

import os
import tempfile

import numpy as np


def _network(tf):
    x = tf.placeholder(tf.float32, [8, 10])
    image = tf.placeholder(tf.float32, [2, 9, 9, 3])
    with tf.variable_scope("net"):
        w, b = tf.get_variable("w", [10, 4]), tf.get_variable("b", [4], trainable=False)
        h = tf.nn.bias_add(tf.matmul(x, w), b)
        with tf.variable_scope("out"):
            y = tf.matmul(tf.nn.softmax(h), tf.get_variable("v", [4, 2]))
        kernel = tf.get_variable("kernel", [3, 3, 3, 200])
        c = tf.nn.max_pool(
            tf.nn.conv2d(image, kernel, [1, 2, 2, 1], "SAME"), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"
        )
    return tf.reduce_mean(tf.square(y)) + tf.reduce_sum(c) + tf.nn.l2_loss(w)


def _report(tf, cmd, options):
    """The report as it is written to a file, without the file's name."""
    path = os.path.join(tempfile.mkdtemp(), "report")
    builder = tf.profiler.ProfileOptionBuilder(options)
    message = tf.profiler.profile(
        tf.get_default_graph(), cmd=cmd, options=builder.with_file_output(path).build()
    )
    names = [f for f in os.listdir(os.path.dirname(path))]
    with open(os.path.join(os.path.dirname(path), names[0])) as f:
        text = f.read()
    return [text.split("\n"), _tree(message)]


def _kinds(tf, options):
    """Lines of the view by type, in the order of their names: equal ones come in any order."""
    lines, tree = _report(tf, "op", options)
    start = next(i for i, line in enumerate(lines) if line.startswith("node name"))
    own = sorted(line.split("(")[0].split() for line in lines[start + 1 :])
    return [lines[: start + 1], own, tree[:5]]


def _tree(message):
    return [
        message.name,
        message.parameters,
        message.float_ops,
        message.total_parameters,
        message.total_float_ops,
        [_tree(child) for child in message.children],
    ]


def parameters(tf):
    _network(tf)
    options = tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
    return [_report(tf, cmd, options) for cmd in ("scope", "op")]


def float_operations(tf):
    _network(tf)
    options = tf.profiler.ProfileOptionBuilder.float_operation()
    return [_report(tf, "scope", options), _kinds(tf, options)]


def chosen_columns(tf):
    _network(tf)
    make = tf.profiler.ProfileOptionBuilder
    some = make().select(["params", "float_ops", "occurrence"]).order_by("occurrence").build()
    ordered = make(make.trainable_variables_parameter()).order_by("params").build()
    large = make(make.trainable_variables_parameter()).with_min_parameters(20).build()
    named = (
        make(make.trainable_variables_parameter())
        .with_node_names(show_name_regexes=[".*w", ".*v"])
        .account_displayed_op_only(True)
        .build()
    )
    kinds = make().with_accounted_types(["MatMul"]).select(["float_ops"]).build()
    return [
        _kinds(tf, some),
        _report(tf, "scope", ordered),
        _report(tf, "scope", large),
        _report(tf, "scope", named),
        _report(tf, "op", kinds),
    ]


def gradients_count(tf):
    loss = _network(tf)
    tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    make = tf.profiler.ProfileOptionBuilder
    quiet = make(make.trainable_variables_parameter()).with_empty_output().build()
    return tf.profiler.profile(tf.get_default_graph(), options=quiet).total_parameters


def builder(tf):
    make = tf.profiler.ProfileOptionBuilder
    changed = (
        make()
        .with_max_depth(7)
        .with_min_memory(1, 2, 3, 4)
        .with_min_execution_time(5, 6, 7)
        .with_min_occurrence(2)
        .with_min_float_operations(3)
        .with_step(2)
        .with_stdout_output()
        .build()
    )
    return [
        make().build(),
        make.float_operation(),
        make.trainable_variables_parameter(),
        make.time_and_memory(min_cpu_micros=3),
        changed,
    ]


def older_names(tf):
    _network(tf)
    analyzer = tf.contrib.tfprof.model_analyzer
    options = dict(analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, output="none")
    flops = dict(analyzer.FLOAT_OPS_OPTIONS, output="none")
    graph = tf.get_default_graph()
    found = [
        analyzer.print_model_analysis(graph, tfprof_options=options).total_parameters,
        analyzer.print_model_analysis(graph, tfprof_options=flops).total_float_ops,
    ]
    return [found, np.sum([np.prod(v.shape.as_list()) for v in tf.trainable_variables()])]
