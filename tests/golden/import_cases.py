"""GraphDefs that TensorFlow 1.15 accepts or refuses in ``import_graph_def``, most of them damaged.

    PYTHON_OF_TF1 -m tests.golden.import_cases      # writes import_cases.json

The file holds, for each case, the operations of the graph and the elements returned, or the class
of the error.
"""

import json
import os

FLOAT = "type:DT_FLOAT"
INT32 = "type:DT_INT32"
WINDOW = "list{i:1 i:2 i:2 i:1}"


def node(name, op, inputs=(), more="", **attrs):
    """A node in the text format."""
    given = "".join(' input:"%s"' % i for i in inputs)
    values = "".join(' attr{key:"%s" value{%s}}' % item for item in sorted(attrs.items()))
    return 'node{name:"%s" op:"%s"%s%s%s}\n' % (name, op, given, values, more)


X = node("x", "Placeholder", dtype=FLOAT)


def _pool(**attrs):
    attrs = dict(dict(T=FLOAT, ksize=WINDOW, strides=WINDOW, padding='s:"SAME"'), **attrs)
    return X + node("c", "MaxPool", ["x"], **attrs)


def _identity(*inputs, **attrs):
    return X + node("a", "Identity", inputs or ["x"], **dict({"T": FLOAT}, **attrs))


#: label -> text of the GraphDef, or that and keywords of import_graph_def
CASES = {
    "plain": _identity(),
    "string of an attribute": _pool(padding='s:"FOO"'),
    "string with a default": _pool(data_format='s:"ABCD"'),
    "short list": _pool(ksize="list{i:1}"),
    "sum of none": node("c", "AddN", T=FLOAT, N="i:0"),
    "pack of none": node("c", "Pack", T=FLOAT, N="i:0"),
    "pack of a negative number": node("c", "Pack", T=FLOAT, N="i:-3"),
    "twice": X + X,
    "itself": X + node("a", "Add", ["a", "x"], T=FLOAT),
    "itself as control": _identity("x", "^a"),
    "later node": node("a", "Identity", ["x"], T=FLOAT) + X,
    "blank in a name": node("a b", "NoOp"),
    "no name": node("", "NoOp"),
    "name of an inner node": node("_a", "NoOp"),
    "name with a slash in front": node("/a", "NoOp"),
    "name of two lines": node("a\\nb", "NoOp"),
    "name with a dot": node(".a/b-c_d.e", "NoOp"),
    "control first": _identity("^x", "x"),
    "control first, later": node("a", "Identity", ["^x", "x"], T=FLOAT) + X,
    "control with an index": X + node("a", "NoOp", ["^x:0"]),
    "negative output": _identity("x:-1"),
    "no number of an output": _identity("x:"),
    "no such output": _identity("x:1"),
    "no such node": _identity("y"),
    "too few inputs": X + node("a", "Add", ["x"], T=FLOAT),
    "too many inputs": _identity("x", "x"),
    "another type": _identity(T=INT32),
    "attribute missing": X + node("a", "Identity", ["x"]),
    "attribute of another kind": _identity(T="i:3"),
    "attribute too many": _identity(foo="i:3"),
    "own attribute": _identity(_foo="i:3"),
    "unknown op": X + node("a", "FooBar", ["x"], T=FLOAT),
    "returned": (X, {"return_elements": ["x", "x:0"]}),
    "returned node is missing": (X, {"return_elements": ["y"]}),
    "returned output is missing": (X, {"return_elements": ["x:3"]}),
    "returned name is none": (X, {"return_elements": ["x:y"]}),
    "scope with a slash": (X, {"name": "foo/"}),
    "two scopes": (X, {"name": "a/b"}),
    "no valid scope": (X, {"name": "a b"}),
    "default scope": (X, {"name": None}),
    "assign": node("v", "VariableV2", dtype=FLOAT, shape="shape{dim{size:2}}")
    + node("a", "Assign", ["v", "v"], T=FLOAT),
    "assign to no variable": X + node("a", "Assign", ["x", "x"], T=FLOAT),
    "default attribute": X + node("a", "Cast", ["x"], SrcT=FLOAT, DstT=INT32),
    "device": X + node("a", "Identity", ["x"], 'device:"/gpu:0"', T=FLOAT),
    "no device": X + node("a", "Identity", ["x"], 'device:"nonsense"', T=FLOAT),
    "colocated": _identity(_class='list{s:"loc:@x"}'),
    "colocated in a scope": (_identity(_class='list{s:"loc:@x"}'), {"name": "p"}),
    "colocated with nothing": _identity(_class='list{s:"loc:@nope"}'),
    "wrong shape": node(
        "x", "Const", dtype=FLOAT, value="tensor{dtype:DT_FLOAT tensor_shape{dim{size:2}}}"
    )
    + node("a", "Identity", ["x"], T=FLOAT, _output_shapes="list{shape{dim{size:3}}}"),
    "shape of a constant": node(
        "x", "Const", dtype=FLOAT, value="tensor{dtype:DT_FLOAT tensor_shape{dim{size:-2}}}"
    ),
    "versions of a later TensorFlow": X + "versions{producer:500 min_consumer:600}",
    "version too old": X + "versions{producer:-1}",
    "refused version": X + "versions{producer:100 bad_consumers:134}",
    "mapped in vain": (_identity(), {"input_map": {"y": 3.0}, "name": "p"}),
    "mapped": (_identity(), {"input_map": {"x": 3.0}, "name": "p"}),
    "mapped without users": (_identity(), {"input_map": {"a": 3.0, "x": 3.0}, "name": "p"}),
    "mapped second output of one": (_identity(), {"input_map": {"a:1": 3.0}, "name": "p"}),
    "mapped to another type": (_identity(), {"input_map": {"x:0": 3}, "name": "p"}),
    "mapped without a scope": (_identity(), {"input_map": {"x:0": 3.0}}),
    "mapped and returned": (
        _identity(),
        {"input_map": {"x:0": 3.0}, "name": "p", "return_elements": ["x:0", "a"]},
    ),
}


def outcome(tf, case):
    """What ``import_graph_def`` makes of a case."""
    from google.protobuf import text_format

    text, keywords = case if isinstance(case, tuple) else (case, {})
    message = text_format.Parse(text, tf.GraphDef())
    with tf.Graph().as_default() as graph:
        try:
            found = tf.import_graph_def(message, **dict({"name": ""}, **keywords))
        except Exception as error:
            return [type(error).__name__]
        ops = sorted([op.name, op.type] for op in graph.get_operations())
        return [ops, None if found is None else [element.name for element in found]]


def main():
    """Write what TensorFlow does."""
    import tensorflow as tf

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "import_cases.json")
    with open(path, "w") as file:
        outcomes = {label: outcome(tf, case) for label, case in sorted(CASES.items())}
        json.dump(outcomes, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
