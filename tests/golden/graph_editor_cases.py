"""``tf.contrib.graph_editor``. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def _names(items):
    return sorted(i.name for i in items)


def _graph(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.name_scope("first"):
        a = tf.multiply(x, 2.0, name="a")
        b = tf.add(a, 1.0, name="b")
    with tf.name_scope("second"):
        c = tf.multiply(b, a, name="c")
        d = tf.exp(c * 0.01, name="d")
    y = tf.reduce_sum(d, name="y")
    return x, a, b, c, d, y


def _holes(graph):
    """The placeholders that an edit has made."""
    ops = graph.get_operations()
    return [o.outputs[0] for o in ops if o.name.split("/")[-1].startswith("geph")]


def _value(tf, fetch, feeds):
    with tf.Session() as sess:
        return sess.run(fetch, feeds)


def walks(tf):
    ge = tf.contrib.graph_editor
    x, a, b, c, d, y = _graph(tf)
    backward = ge.get_backward_walk_ops([y.op], inclusive=True)
    return [
        _names(backward),
        _names(ge.get_backward_walk_ops(y.op, inclusive=False, stop_at_ts=[b])),
        _names(ge.get_backward_walk_ops([c], within_ops=[c.op, b.op])),
        _names(ge.get_forward_walk_ops([x.op], inclusive=True, within_ops=backward)),
        _names(ge.get_forward_walk_ops(b, inclusive=False)),
        _names(ge.get_forward_walk_ops([a.op], within_ops_fn=lambda op: "second" in op.name)),
        _names(ge.get_walks_intersection_ops([a.op], [c.op])),
        _names(ge.get_walks_union_ops([d.op], [b.op])),
        _names(ge.get_within_boundary_ops(tf.get_default_graph(), [b.op], [d.op, x.op])),
        _names(ge.get_ops_ios([b.op, c.op])),
    ]


def selections(tf):
    ge = tf.contrib.graph_editor
    x, a, b, c, _d, _y = _graph(tf)
    graph = tf.get_default_graph()
    return [
        _names(ge.filter_ts([b.op, c.op], True)),
        _names(ge.filter_ts_from_regex(graph, "first/(a|b):0$")),
        _names(ge.filter_ops(graph, lambda op: op.type == "Mul")),
        _names(ge.filter_ops_from_regex(graph, "^second")),
        _names(ge.get_name_scope_ops(graph, "second/")),
        _names(ge.select_ops("^first", graph=graph)),
        _names(ge.select_ops(a.op, [b.op, c.op], positive_filter=lambda op: op.type == "Mul")),
        _names(ge.select_ts("^second/c", graph=graph)),
        _names(ge.select_ts(a, [b])),
        [_names(v) for v in ge.compute_boundary_ts([b.op, c.op])],
        [_names(v) for v in ge.select_ops_and_ts(a.op, x, "(?#ts)d", "second", graph=graph)],
        _names(ge.get_tensors(graph)),
        _names(ge.get_generating_ops([a, b])),
        _names(ge.get_consuming_ops([a, b])),
        _names(ge.make_list_of_op([a.op, b.op])),
        _names(ge.make_list_of_t([a, b, c])),
    ]


def views(tf):
    ge = tf.contrib.graph_editor
    x, a, b, c, _d, _y = _graph(tf)
    graph = tf.get_default_graph()
    view = ge.sgv(b.op, c.op)
    scope = ge.sgv_scope("second", graph)
    passing = ge.make_view(c.op, x)
    return [
        [[t.name for t in v.inputs], [t.name for t in v.outputs], [o.name for o in v.ops]]
        for v in (
            view,
            scope,
            passing,
            view.remap_inputs([1]),
            view.remap_outputs([0, 0]),
            view.remap([0], [0]).remap_default(),
            view.remap_outputs([0, 0]).remap_outputs_make_unique(),
            ge.make_view(a.op).remap_outputs_to_consumers(),
            ge.make_view("second", graph=graph),
        )
    ] + [
        view.input_index(a),
        view.output_index(c),
        _names(view.consumers()),
        view.find_op_by_name("first/b").name,
        passing.is_passthrough(x),
        [t.name for t in passing.connected_inputs],
        [t.name for t in passing.passthroughs],
        "\n".join(str(passing).split("\n")[1:]),
        str(ge.SubGraphView()),
        bool(view),
        bool(ge.SubGraphView()),
        view.op(1).name,
    ]


def replace(tf):
    ge = tf.contrib.graph_editor
    x, a, b, c, d, y = _graph(tf)
    other = tf.constant([5.0, 6.0], name="other")
    new_y = ge.graph_replace(y, {a: other})
    new_pair = ge.graph_replace([y, c], {x: other * 2}, dst_scope="copied")
    by_key = ge.graph_replace({"y": y, "x": x}, {b: other}, dst_scope="copied")
    feeds = {x: [1.0, 2.0]}
    values = _value(tf, [new_y, new_pair, by_key, y], feeds)
    names = [new_y.name] + [t.name for t in new_pair] + [by_key["y"].name, by_key["x"].name]
    try:
        ge.graph_replace(a, {d: other})
    except ValueError as error:
        return values, names, str(error), sorted(o.name for o in x.graph.get_operations())
    return None


def copies(tf):
    ge = tf.contrib.graph_editor
    x, a, b, c, d, y = _graph(tf)
    other = tf.constant([5.0, 6.0], name="other")
    view, info = ge.copy(ge.sgv_scope("second", x.graph), dst_scope="third", src_scope="second")
    again, more = ge.copy_with_input_replacements(ge.sgv([b.op, c.op, d.op]), {a: other})
    with tf.Graph().as_default() as graph:
        far, _ = ge.copy(ge.sgv([c.op, b.op]), graph)
        far_names = sorted(o.name for o in graph.get_operations())
        far_inputs = [t.name for t in far.inputs]
    feeds = {x: [1.0, 2.0]}
    feeds.update({t: [0.5, 0.25] for t in _holes(x.graph)})
    return [
        [t.name for t in view.outputs],
        [t.name for t in view.inputs],
        info.transformed(d).name,
        info.original(info.transformed(d)).name,
        info.transformed(y) is None,
        info.transformed([c, d.op])[1].name,
        [t.name for t in again.outputs],
        [t.name for t in again.inputs],
        more.transformed(c.op).name,
        _value(tf, [view.outputs[-1], again.outputs[-1], d], feeds),
        far_names,
        far_inputs,
    ]


def rerouting(tf):
    ge = tf.contrib.graph_editor
    found = []
    for edit in (
        lambda t: ge.reroute_ts([t[1]], [t[2]]),
        lambda t: ge.swap_ts(t[1], t[2], cannot_modify=[t[2].op]),
        lambda t: ge.reroute_ts(t[1], t[2], can_modify=[t[4].op]),
        lambda t: len(ge.swap_inputs(t[3].op, tf.multiply(t[0], t[0] + 1.0, name="z").op)),
        lambda t: len(ge.reroute_outputs(tf.negative(t[0], name="z").op, t[1].op)),
        lambda t: len(ge.swap_outputs(t[3].op, tf.negative(t[0], name="z").op)),
        lambda t: len(ge.connect(tf.negative(t[0], name="z").op, t[4].op)),
        lambda t: len(ge.bypass(t[4].op)),
        lambda t: [p.name for p in ge.detach_inputs(t[4].op)[1]],
        lambda t: [p.name for p in ge.detach_outputs(t[1].op)[1]],
        lambda t: [[p.name for p in v] for v in ge.detach(t[4].op)[1:]],
    ):
        with tf.Graph().as_default() as graph:
            tensors = _graph(tf)
            result = edit(tensors)
            edges = sorted((o.name, [t.name for t in o.inputs]) for o in graph.get_operations())
            feeds = {tensors[0]: [1.0, 2.0]}
            feeds.update({hole: [0.5, 0.25] for hole in _holes(graph)})
            found.append([result, edges, _value(tf, tensors[5], feeds)])
    return found


def run_before_and_after(tf):
    """An edit between two runs: the second sees it."""
    ge = tf.contrib.graph_editor
    x, _a, b, c, _d, y = _graph(tf)
    with tf.Session() as sess:
        before = sess.run(c, {x: [1.0, 2.0]})
    late = tf.negative(x, name="late")
    ge.reroute_ts(late, b)
    with tf.Session() as sess:
        return before, sess.run([c, y], {x: [1.0, 2.0]}), _names(late.consumers())


def control_inputs(tf):
    ge = tf.contrib.graph_editor
    x, a, b, _c, _d, y = _graph(tf)
    v = tf.Variable([1.0, 1.0], name="v")
    add = tf.assign_add(v, [1.0, 1.0], name="add")
    ge.add_control_inputs(b.op, add.op)
    messages = []
    for function in (ge.add_control_inputs, ge.remove_control_inputs):
        try:
            function(b.op, [add.op] if function is ge.add_control_inputs else [a.op])
        except ValueError as error:
            messages.append(str(error))
    outputs = ge.ControlOutputs(x.graph)
    waiting = _names(outputs.get(add.op))
    walked = _names(ge.get_forward_walk_ops([add.op], control_outputs=outputs))
    back = _names(ge.get_backward_walk_ops([b.op], control_inputs=True))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(y, {x: [1.0, 2.0]})
        once = sess.run(v)
    ge.remove_control_inputs(b.op, add.op)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(y, {x: [1.0, 2.0]})
        return messages, waiting, walked, back, once, sess.run(v)


def placeholders(tf):
    ge = tf.contrib.graph_editor
    _x, a, _b, _c, _d, _y = _graph(tf)
    one = ge.make_placeholder_from_tensor(a)
    two = ge.make_placeholder_from_tensor(a, scope="there")
    return [
        [t.name for t in (one, two, ge.ph(tf.float32), ge.ph(tf.int32, [2, 3], scope="s"))],
        ge.placeholder_name(a),
        ge.placeholder_name(a, scope=""),
        ge.placeholder_name(one),
        one.shape.as_list(),
    ]


def recomputed_gradients(tf):
    """Gradients that compute a part of the forward pass again, as memory-saving packages do."""
    ge = tf.contrib.graph_editor
    rng = np.random.RandomState(0)
    x = tf.constant(rng.randn(4, 3).astype("f"))
    weights = [tf.Variable(rng.randn(3, 3).astype("f") * 0.5, name="w%d" % i) for i in range(4)]
    layers = [x]
    for w in weights:
        layers.append(tf.tanh(tf.matmul(layers[-1], w)))
    loss = tf.reduce_sum(tf.square(layers[-1]))
    plain = tf.gradients(loss, weights)
    checkpoint = layers[2]
    cut = tf.stop_gradient(checkpoint, name="cut")
    bwd = ge.get_backward_walk_ops([loss.op], stop_at_ts=[checkpoint], inclusive=True)
    fwd = [o for o in bwd if o.inputs and o.type not in ("Identity", "VariableV2")]
    _copied, info = ge.copy_with_input_replacements(ge.sgv(fwd), {})
    changed = ge.reroute_ts([cut], [checkpoint], can_modify=list(info._transformed_ops.values()))
    for op in info._transformed_ops.values():
        if not op.control_inputs and op.type == "MatMul":
            ge.add_control_inputs(op, [loss.op])
    new_loss = info.transformed(loss)
    late = tf.gradients(new_loss, [cut] + weights[2:])
    early = tf.gradients(checkpoint, weights[:2], grad_ys=late[0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, b = sess.run([plain, early + late[1:]])
    return changed, a, b
