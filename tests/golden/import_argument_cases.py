"""The arguments of ``import_graph_def`` and functions in a GraphDef's library, one row each.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

from google.protobuf import text_format

from tests.golden.import_cases import FLOAT, INT32, X, node

TWO = X + node("s", "Split", ["d", "x"], T=FLOAT, num_split="i:2")
DIM = node("d", "Const", dtype=INT32, value="tensor{dtype:DT_INT32 tensor_shape{} int_val:0}")
ADD = TWO.replace(X, X + DIM) + node("a", "Add", ["s", "s:1"], "input:'^d'", T=FLOAT)
CALLED = """library{function{
  signature{name:"twice" input_arg{name:"v" type:DT_FLOAT} output_arg{name:"w" type:DT_FLOAT}}
  node_def{name:"sum" op:"Add" input:"v" input:"v" attr{key:"T" value{type:DT_FLOAT}}}
  ret{key:"w" value:"sum:z:0"}}}"""


def _rows(tf, table):
    found = {}
    for name, run in sorted(table.items()):
        try:
            with tf.Graph().as_default() as graph:
                elements = run(graph)
                ops = [
                    [o.name, o.type, [i.name for i in o.inputs],
                     sorted(c.name for c in o.control_inputs), o.device]
                    for o in graph.get_operations()
                ]  # fmt: skip
                named = elements and [getattr(e, "name", str(e)) for e in elements]
                found[name] = [sorted(ops), named]
        except Exception as error:  # the error is what is compared
            found[name] = type(error).__name__
    return found


def _parsed(tf, text):
    return text_format.Parse(text, tf.GraphDef())


def maps(tf):
    """input_map and return_elements."""

    def run(text, make=lambda: {}, **kinds):
        def imported(graph):
            given = make()
            with tf.name_scope("given"):
                return tf.import_graph_def(
                    _parsed(tf, text), **dict({"name": "p"}, **kinds, **given)
                )

        return imported

    def value():
        return tf.constant([1.0, 2.0], name="k")

    return _rows(tf, {
        "tensor": run(ADD, lambda: {"input_map": {"x": value()}}),
        "port": run(ADD, lambda: {"input_map": {"x:0": value()}}),
        "bytes": run(ADD, lambda: {"input_map": {b"x:0": value()}}),
        "second output": run(ADD, lambda: {"input_map": {"s:1": value()}}),
        "both outputs": run(ADD, lambda: {"input_map": {"s": value(), "s:1": value()}}),
        "control": run(ADD, lambda: {"input_map": {"^d": value()}}),
        "control in vain": run(ADD, lambda: {"input_map": {"^x": value()}}),
        "no scope": run(ADD, lambda: {"input_map": {"x": value()}}, name=""),
        "number": run(ADD, input_map={"x": 3.0}), "list": run(ADD, input_map=["x"]),
        "number key": run(ADD, input_map={3: 3.0}), "none": run(ADD, input_map=None),
        "wrong port": run(ADD, lambda: {"input_map": {"x:1": value()}}),
        "in vain": run(ADD, lambda: {"input_map": {"none": value()}}),
        "elements": run(ADD, return_elements=["a", "a:0", "s:1", "d"]),
        "elements twice": run(ADD, return_elements=["a", "a"]),
        "elements of bytes": run(ADD, return_elements=[b"a:0"]),
        "elements in a tuple": run(ADD, return_elements=("a", "s:0")),
        "no elements": run(ADD, return_elements=[]),
        "elements are text": run(ADD, return_elements="a"),
        "element is a number": run(ADD, return_elements=[3]),
        "element of a control": run(ADD, return_elements=["^a"]),
        "mapped element": run(
            ADD, lambda: {"input_map": {"x": value()}, "return_elements": ["x:0"]}),
        "mapped operation": run(
            ADD, lambda: {"input_map": {"x": value()}, "return_elements": ["x"]}),
        "op_dict": run(ADD, op_dict={}),
        "no message": lambda graph: tf.import_graph_def("text"),
        "bytes of a message": lambda graph: tf.import_graph_def(_parsed(tf, X).SerializeToString()),
        "nothing": lambda graph: tf.import_graph_def(None),
        "empty": run(""),
    })  # fmt: skip


def producers(tf):
    """producer_op_list, versions, attributes that are stripped."""
    messages = type(tf.MetaGraphDef().meta_info_def.stripped_op_list)

    def run(text, ops="", name=""):
        return lambda graph: tf.import_graph_def(
            _parsed(tf, text), name=name, producer_op_list=text_format.Parse(ops, messages())
        )

    def unknown(value):
        return X + node("a", "Identity", ["x"], T=FLOAT, new="i:%d" % value)

    default = """op{name:"Identity" input_arg{name:"input" type_attr:"T"}
      output_arg{name:"output" type_attr:"T"} attr{name:"T" type:"type"}
      attr{name:"new" type:"int" default_value{i:3}}}"""
    bare = (
        X
        + node("w", "Placeholder", dtype=FLOAT)
        + node(
            "c", "Conv2D", ["x", "w"], T=FLOAT, padding='s:"SAME"', strides="list{i:1 i:1 i:1 i:1}"
        )
    )
    return _rows(tf, {
        "default": run(unknown(3), default), "no default": run(unknown(4), default),
        "not told": run(unknown(3)), "stripped": run(bare),
        "version 0": run(X + "versions{producer:0}"),
        "version 12": run(X + "versions{producer:12}"),
        "in a scope": run(unknown(3), default, "p"),
    })  # fmt: skip


def functions(tf):
    """Functions of a library, called by their names; the values that they give."""

    def run(text, **kinds):
        def imported(graph):
            (y,) = tf.import_graph_def(_parsed(tf, text), return_elements=["y:0"], **kinds)
            with tf.Session() as sess:
                return [str(sess.run(y, {graph.get_tensor_by_name(y.name[:-3] + "x:0"): 3.0}))]

        return imported

    call = X + node("y", "twice", ["x"])
    partitioned = X + node(
        "y", "PartitionedCall", ["x"], Tin="list{type:DT_FLOAT}", Tout="list{type:DT_FLOAT}",
        f='func{name:"twice"}',
    )  # fmt: skip

    def values(rows):
        return {k: v if isinstance(v, str) else v[1] for k, v in rows.items()}

    return values(_rows(tf, {
        "called": run(call + CALLED), "in a scope": run(call + CALLED, name="p/q"),
        "partitioned": run(partitioned + CALLED), "not there": run(call),
        "other type": run(
            node("x", "Placeholder", dtype=INT32) + node("y", "twice", ["x"]) + CALLED),
        "no input": run(X + node("y", "twice") + CALLED),
        "two inputs": run(X + node("y", "twice", ["x", "x"]) + CALLED),
        "second output": run(X + node("z", "twice", ["x"])
                             + node("y", "Identity", ["z:1"], T=FLOAT) + CALLED),
    }))  # fmt: skip


def devices(tf):
    """Devices of nodes, of scopes around the import, and of colocated nodes."""
    placed = node("x", "Placeholder", (), 'device:"/job:a/cpu:0"', dtype=FLOAT)

    def run(text, device=None, **kinds):
        def imported(graph):
            with tf.device(device):
                return tf.import_graph_def(_parsed(tf, text), **kinds)

        return imported

    beside = node("a", "Identity", ["x"], T=FLOAT, _class='list{s:"loc:@x"}')
    own = node("a", "Identity", ["x"], 'device:"/cpu:1"', T=FLOAT, _class='list{s:"loc:@x"}')
    return _rows(tf, {
        "own": run(placed), "scope": run(X, "/gpu:1"), "both": run(placed, "/job:b/gpu:1"),
        "part": run(node("x", "Placeholder", (), 'device:"/cpu:0"', dtype=FLOAT), "/job:b"),
        "colocated": run(placed + beside),
        "colocated in a scope": run(placed + beside, name=""),
        "colocated, own": run(placed + own), "colocated, scope": run(X + own, "/job:b"),
        "colocated with itself": run(
            node("x", "Placeholder", (), 'device:"/cpu:1"', dtype=FLOAT,
                 _class='list{s:"loc:@x"}')),
    })  # fmt: skip
