"""GraphDefs through the public API.

Writing, importing, control flow, functions, freezing, and files that are wrong.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.core.graph import Graph
from tests.golden.graphs import cases, live, programs
from tests.tolerances import assert_close

GOLDEN = Path(os.path.abspath(cases.__file__)).parent


def nodes_of(message: Any) -> dict[str, bytes]:
    return {n.name: n.SerializeToString(deterministic=True) for n in message.node}


def imported(message: Any, **options: Any) -> tuple[Graph, Any]:
    graph = Graph()
    with graph.as_default():
        found = tf.import_graph_def(message, **options)
    return graph, found


# whole programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_programs_written_by_tensorflow(version: str, name: str) -> None:
    case = live.load(str(GOLDEN / version / f"{name}.case"))
    live.check(case)


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_programs_give_the_same_after_a_round_trip(name: str) -> None:
    graph = Graph()
    with graph.as_default():
        tf.set_random_seed(1)
        steps = programs.PROGRAMS[name](tf, np)
    wanted = live.run_steps(graph, steps)
    message = graph.as_graph_def()
    again, _ = imported(message, name="")
    for row, want in zip(live.run_steps(again, steps), wanted):
        for value, expected in zip(row, want):
            if expected is not None:
                # the plan of training steps may differ: what a backward pass did is not in a
                # GraphDef
                assert_close(value, expected, 1e-5)
    assert nodes_of(again.as_graph_def()) == nodes_of(message)
    golden = live.load(str(GOLDEN / "tf1" / f"{name}.case"))
    live.compare(wanted, golden.results, golden.tol)


def test_forward_graph_is_tensorflows_node_for_node() -> None:
    case = live.load(str(GOLDEN / "tf1" / "conv_net.case"))
    theirs = tf.GraphDef()
    theirs.ParseFromString(case.graph)
    graph = Graph()
    with graph.as_default():
        tf.set_random_seed(1)
        programs.conv_net(tf, np)
    assert nodes_of(graph.as_graph_def()) == nodes_of(theirs)


def test_imported_loop_has_gradients() -> None:
    graph = Graph()
    with graph.as_default():
        steps = programs.loops(tf, np)
    feeds = steps[2][1]
    want = live.run_steps(graph, [(["gradient:0"], feeds)])[0][0]
    again, _ = imported(graph.as_graph_def(), name="")
    with again.as_default():
        out, x = again.get_tensor_by_name("out:0"), again.get_tensor_by_name("x:0")
        gradient = tf.gradients(tf.reduce_sum(out), x)[0]
    np.testing.assert_allclose(
        live.run_steps(again, [([gradient.name], feeds)])[0][0], want, rtol=1e-6
    )


def test_plan_of_an_imported_graph_is_that_of_the_built_one() -> None:
    graph = Graph()
    with graph.as_default():
        programs.conv_net(tf, np)
    again, _ = imported(graph.as_graph_def(), name="")
    texts = []
    for g in (graph, again):
        with tf.Session(graph=g) as session:
            found = session.explain("probabilities:0", ["x:0"])
            texts.append(dict(found.rewrites) if hasattr(found, "rewrites") else str(found))
    assert _without_lines(texts[0]) == _without_lines(texts[1])


def _without_lines(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    return [line.split("  ")[0] for line in text.splitlines()]


# the arguments of import_graph_def ----------------------------------------------------------------


def small() -> Any:
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.add(x, 1.0, name="y")
    return graph.as_graph_def()


def test_name_scopes() -> None:
    graph = Graph()
    message = small()
    with graph.as_default():
        tf.import_graph_def(message)
        tf.import_graph_def(message)
        tf.import_graph_def(message, name="net")
        tf.import_graph_def(message, name="")
    names = {op.name for op in graph.get_operations()}
    assert {"import/y", "import_1/y", "net/y", "y"} <= names
    with graph.as_default(), pytest.raises(ValueError, match="already exists"):
        tf.import_graph_def(message, name="")
    with graph.as_default():
        assert tf.add(1.0, 2.0, name="y").name == "y_1:0"


def test_input_map_and_return_elements() -> None:
    graph = Graph()
    with graph.as_default():
        z = tf.constant([5.0, 6.0])
        op, tensor = tf.import_graph_def(small(), {"x:0": z}, ["y", "y:0"])
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(tensor), [6, 7])
        assert op.outputs[0] is tensor
        (other,) = tf.import_graph_def(small(), {"x": [1.0, 1.0]}, ["y:0"])
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(other), [2, 2])
        with pytest.raises(ValueError, match=r"not found in graph_def: \[nothing:0\]"):
            tf.import_graph_def(small(), {"nothing:0": z})
        with pytest.raises(ValueError, match="'q' not found in graph_def"):
            tf.import_graph_def(small(), return_elements=["q"])


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="must be a GraphDef proto"):
        tf.import_graph_def(b"")
    with pytest.raises(TypeError, match="dictionary"):
        tf.import_graph_def(small(), input_map=[1])
    with pytest.raises(TypeError, match="list of strings"):
        tf.import_graph_def(small(), return_elements=[7])


def test_colocation_and_devices_follow_the_scope() -> None:
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        with tf.colocate_with(x.op):
            tf.negative(x, name="y")
        with tf.device("/cpu:0"):
            tf.negative(x, name="z")
    again, _ = imported(graph.as_graph_def(), name="net")
    op = again.get_operation_by_name("net/y")
    assert op.colocation_groups() == [b"loc:@net/x"]
    assert again.get_operation_by_name("net/z").device == "/device:CPU:0"


def test_default_attributes_are_restored() -> None:
    message = small()
    graph = Graph()
    with graph.as_default():
        a = tf.placeholder(tf.float32, [2, 2], name="a")
        tf.matmul(a, a, name="m")
    message = graph.as_graph_def()
    for node in message.node:
        for key in ("transpose_a", "transpose_b"):
            if key in node.attr:
                del node.attr[key]
    again, _ = imported(message, name="")
    assert again.get_operation_by_name("m").get_attr("transpose_a") is False


def test_attributes_of_later_tensorflows() -> None:
    message = small()
    message.node[0].attr["some_new_attr"].b = True
    with pytest.raises(ValueError, match=r"some_new_attr.*not in Op<Placeholder>"):
        imported(message)
    graph = Graph()
    with graph.as_default():
        a = tf.placeholder(tf.float32, [2, 2])
        tf.matmul(a, a, name="m")
    message = graph.as_graph_def()
    message.node[1].attr["grad_a"].b = False
    imported(message)


def test_producer_op_list_strips_defaults() -> None:
    from tensorboard.compat.proto.op_def_pb2 import OpList

    message = small()
    message.node[0].attr["later"].i = 3
    ops = OpList()
    op = ops.op.add(name="Placeholder")
    attr = op.attr.add(name="later", type="int")
    attr.default_value.i = 3
    imported(message, producer_op_list=ops)


def test_output_shapes_are_kept() -> None:
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, None, name="x")
        y = tf.identity(x, name="y")
        y.set_shape([2, 3])
    again, _ = imported(graph.as_graph_def(add_shapes=True), name="")
    assert again.get_tensor_by_name("y:0").shape.as_list() == [2, 3]


def test_from_version() -> None:
    graph = Graph()
    with graph.as_default():
        tf.constant(1, name="a")
        version = graph.version
        tf.constant(2, name="b")
    assert [n.name for n in graph.as_graph_def(from_version=version).node] == ["b"]


def test_write_graph_text_and_binary(tmp_path: Path) -> None:
    from google.protobuf import text_format

    graph = Graph()
    with graph.as_default():
        tf.constant([1.5, 2.5], name="c")
    path = tf.io.write_graph(graph, str(tmp_path / "new"), "g.pbtxt")
    text = tf.GraphDef()
    text_format.Merge(Path(path).read_text(), text)
    binary = tf.train.write_graph(graph.as_graph_def(), str(tmp_path), "g.pb", as_text=False)
    message = tf.GraphDef()
    message.ParseFromString(Path(binary).read_bytes())
    assert text == message == graph.as_graph_def()


def test_tensor_protos() -> None:
    for value in (
        [1.5, 2.0],
        3,
        [[True, False]],
        [b"a", b"\xff"],
        np.array([1 + 2j]),
        np.float16([1, 2]),
    ):
        array = (
            np.asarray(value)
            if not isinstance(value, list) or not isinstance(value[0], bytes)
            else None
        )
        back = tf.make_ndarray(tf.make_tensor_proto(value))
        if array is None:
            assert back.tolist() == [b"a", b"\xff"]
        else:
            np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal(
        tf.make_ndarray(tf.make_tensor_proto(7.0, shape=[2, 2])), np.full([2, 2], 7.0)
    )


def test_get_attr_gives_messages_where_tensorflow_does() -> None:
    graph = Graph()
    with graph.as_default():
        c, p = tf.constant([1, 2]), tf.placeholder(tf.int32, [None, 4])
    assert tf.make_ndarray(c.op.get_attr("value")).tolist() == [1, 2]
    assert [d.size for d in p.op.get_attr("shape").dim] == [-1, 4]
    assert c.op.get_attr("dtype") is tf.int32


# freezing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["conv_net", "training_step", "lstm_by_hand", "conditions"])
def test_frozen_programs(name: str) -> None:
    output = {
        "conv_net": "probabilities",
        "training_step": "loss",
        "lstm_by_hand": "out",
        "conditions": "y",
    }[name]
    graph = Graph()
    with graph.as_default():
        steps = programs.PROGRAMS[name](tf, np)
    with tf.Session(graph=graph) as session:
        session.run(steps[0][0])
        feeds = dict(steps[1][1])
        want = session.run(f"{output}:0", feeds)
        frozen = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [output]
        )
    assert not [n for n in frozen.node if "Var" in n.op]
    again, _ = imported(frozen, name="")
    with tf.Session(graph=again) as session:
        np.testing.assert_allclose(session.run(f"{output}:0", feeds), want, rtol=1e-5)


def test_black_and_white_lists() -> None:
    graph = Graph()
    with graph.as_default():
        a, b = tf.Variable(1.0, name="a"), tf.get_variable("b", initializer=2.0, use_resource=True)
        tf.add(a, b, name="y")
        init = tf.global_variables_initializer()
    with tf.Session(graph=graph) as session:
        session.run(init)
        message = graph.as_graph_def()

        def kinds(**lists: Any) -> dict[str, str]:
            out = tf.graph_util.convert_variables_to_constants(session, message, ["y"], **lists)
            return {n.name: n.op for n in out.node}

        assert kinds(variable_names_whitelist=["a"])["b"] == "VarHandleOp"
        assert kinds(variable_names_blacklist=["a"])["a"] == "VariableV2"
        assert kinds()["a"] == kinds()["b"] == "Const"


def test_sub_graphs() -> None:
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.identity(tf.check_numerics(tf.identity(x), "no"), name="y")
        tf.negative(y, name="z")
        tf.constant(1.0, name="unused")
    message = graph.as_graph_def()
    cut = tf.graph_util.extract_sub_graph(message, ["z"])
    assert "unused" not in nodes_of(cut)
    with pytest.raises(AssertionError, match="q is not in graph"):
        tf.graph_util.extract_sub_graph(message, ["q"])
    bare = tf.graph_util.remove_training_nodes(cut)
    assert [(n.op, list(n.input)) for n in bare.node] == [("Placeholder", []), ("Neg", ["x"])]
    kept = tf.graph_util.remove_training_nodes(cut, protected_nodes=["y"])
    assert "y" in nodes_of(kept)
    assert tf.graph_util.tensor_shape_from_node_def_name(graph, "x").as_list() == [2]


SEED = """
# Get the input tensor and output tensor
input_tensor = graph.get_tensor_by_name("input_placeholder:0")
output_tensor = graph.get_tensor_by_name("output_tensor:0")

# Freeze the graph
output_graph_def = tf.compat.v1.graph_util.convert_variables_to_constants(
    sess, graph_def, [output_tensor.name.split(':')[0]]
)

# Save the frozen graph
with tf.io.gfile.GFile("frozen_graph.pb", "wb") as f:
    f.write(output_graph_def.SerializeToString())

# Load the frozen graph for inference
with tf.io.gfile.GFile("frozen_graph.pb", "rb") as f:
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString(f.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        sess = tf.compat.v1.Session(graph=graph)
        #Inference using sess.run()
"""


def test_the_seed_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="input_placeholder")
        w = tf.get_variable("w", [4, 3])
        y = tf.nn.softmax(tf.matmul(x, w), name="output_tensor")
        sess = tf.Session()
        sess.run(tf.global_variables_initializer())
    feeds = np.ones([2, 4], np.float32)
    want = sess.run(y, {x: feeds})
    names = {"tf": tf, "graph": graph, "graph_def": graph.as_graph_def(), "sess": sess}
    exec(SEED, names)
    got = names["sess"].run("output_tensor:0", {"input_placeholder:0": feeds})  # type: ignore[attr-defined]
    np.testing.assert_array_equal(got, want)


# files that are wrong -----------------------------------------------------------------------------


def node(message: Any, name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    made = message.node.add(name=name, op=op, input=list(inputs))
    for key, value in attrs.items():
        if isinstance(value, bool):
            made.attr[key].b = value
        elif isinstance(value, int):
            made.attr[key].i = value
        elif isinstance(value, str):
            made.attr[key].s = value.encode()
        else:
            made.attr[key].type = value[0]
    return made


FLOAT = (1,)


def test_cycles_are_refused() -> None:
    message = tf.GraphDef()
    node(message, "a", "Neg", "b", T=FLOAT)
    node(message, "b", "Neg", "a", T=FLOAT)
    with pytest.raises(ValueError, match="cycle"):
        imported(message)


def test_missing_inputs_outputs_and_types() -> None:
    message = tf.GraphDef()
    node(message, "a", "Neg", "nowhere", T=FLOAT)
    with pytest.raises(ValueError, match="'a': Unknown input node 'nowhere'"):
        imported(message)
    message = small()
    node(message, "z", "Neg", "y:3", T=FLOAT)
    with pytest.raises(ValueError, match="invalid output 3"):
        imported(message)
    message = small()
    node(message, "z", "Neg", "y", T=(3,))
    with pytest.raises(ValueError, match="incompatible with expected int32"):
        imported(message)
    message = small()
    node(message, "z", "Neg", "y", "y", T=FLOAT)
    with pytest.raises(ValueError, match="takes 1 inputs, 2 are given"):
        imported(message)
    message = small()
    node(message, "z", "Neg", "y")
    with pytest.raises(ValueError, match="missing attr 'T'"):
        imported(message)


def test_unknown_ops_are_named() -> None:
    message = small()
    node(message, "a", "ZeroOut", "y")
    node(message, "b", "MatMull", "y")
    with pytest.raises(
        tf.errors.NotFoundError, match=r"(?s)2 op types.*MatMull \(near: MatMul.*ZeroOut: 'a'"
    ):
        imported(message)


@pytest.mark.parametrize("op", ["PyFunc", "PyFuncStateless", "EagerPyFunc"])
def test_python_is_never_called(op: str) -> None:
    message = tf.GraphDef()
    node(message, "evil", op, token="pyfunc_0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="never runs Python"):
        imported(message)


def test_declared_sizes_are_not_believed() -> None:
    message = tf.GraphDef()
    made = node(message, "c", "Const", dtype=FLOAT)
    tensor = made.attr["value"].tensor
    tensor.dtype = 1
    for _ in range(3):
        tensor.tensor_shape.dim.add().size = 1 << 20
    tensor.float_val.append(1.0)
    with pytest.raises(ValueError, match="limit"):
        imported(message)
    tensor.tensor_content = b"1234"
    with pytest.raises(ValueError, match="damaged"):
        imported(message)
    message = small()
    split = node(message, "s", "Split", "d", "y", num_split=1 << 40, T=FLOAT)
    dim = node(message, "d", "Const", dtype=(3,))
    dim.attr["value"].tensor.dtype = 3
    dim.attr["value"].tensor.int_val.append(0)
    dim.attr["value"].tensor.tensor_shape.SetInParent()
    assert split.op == "Split"
    with pytest.raises(ValueError, match="outputs"):
        imported(message)


def test_constants_that_do_not_agree_with_themselves() -> None:
    message = tf.GraphDef()
    made = node(message, "c", "Const", dtype=FLOAT, _extra=1)
    with pytest.raises(ValueError, match="missing attr 'value'"):
        imported(message)
    made.attr["value"].tensor.dtype = 3
    made.attr["value"].tensor.tensor_shape.SetInParent()
    with pytest.raises(ValueError, match="the value is int32, declared is float32"):
        imported(message)


def test_functions_that_call_themselves() -> None:
    message = small()
    function = message.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="x", type=1)
    function.signature.output_arg.add(name="y", type=1)
    node_def = function.node_def.add(name="again", op="f", input=["x"])
    function.ret["y"] = "again:y:0"
    assert node_def.op == "f"
    message.node.add(name="call", op="f", input=["y"])
    with pytest.raises(ValueError, match="calls itself"):
        imported(message)


def test_exponential_functions_are_cut_off() -> None:
    message = small()
    for i in range(40):
        function = message.library.function.add()
        function.signature.name = f"f{i}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        inner = f"f{i + 1}" if i < 39 else "Neg"
        for k in range(2):
            made = function.node_def.add(
                name=f"n{k}", op=inner, input=["x" if k == 0 else "n0:y:0"]
            )
            made.attr["T"].type = 1
        function.ret["y"] = "n1:y:0"
    message.node.add(name="call", op="f0", input=["y"])
    with pytest.raises(ValueError, match=r"expand to more than .* 2,199,023,255,550"):
        imported(message)  # counted, not built


def test_deep_nesting_of_branches() -> None:
    message = tf.GraphDef()
    node(message, "x0", "Placeholder", dtype=FLOAT)
    for i in range(300):
        node(message, f"p{i}", "Placeholder", dtype=(10,))
        node(message, f"x{i + 1}", "Switch", f"x{i}", f"p{i}", T=FLOAT)
    with pytest.raises(ValueError, match="nested more than"):
        imported(message)


def test_damaged_bytes_do_no_harm() -> None:
    """Bits flipped and tails cut: an error of ours or a graph, never another exception."""
    from google.protobuf.message import DecodeError

    case = live.load(str(GOLDEN / "tf1" / "loops.case"))
    random = np.random.RandomState(0)
    for _ in range(300):
        data = bytearray(case.graph)
        for _ in range(random.randint(1, 6)):
            data[random.randint(len(data))] = random.randint(256)
        if random.rand() < 0.3:
            data = data[: random.randint(len(data))]
        message = tf.GraphDef()
        try:
            message.ParseFromString(bytes(data))
        except DecodeError:
            continue
        with contextlib.suppress(ValueError, tf.errors.OpError):
            imported(message, name="")


def test_control_dependencies_around_a_loop_end_at_its_entrance() -> None:
    """TensorFlow refuses an Exit that waits for what is outside of its loop."""
    graph = Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        with tf.control_dependencies([tf.exp(x, name="side")]):
            _, y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * x), [0, x])
            tf.gradients(y, x)
    for node in graph.as_graph_def().node:
        controls = [i for i in node.input if i == "^side"]
        assert len(controls) == (node.op == "Enter" and node.name.startswith("while/Enter")) or (
            node.op not in ("Exit", "Merge", "Switch", "NextIteration", "LoopCond")
        )
