"""Programs with branches and loops whose MetaGraphs are read again, and differentiated then.

    python tests/golden/flow_contexts.py golden tests/golden/flow_contexts.json   # with TF 1.15
    python -m tests.golden.flow_contexts live /tmp/x --tf1 /env/tf1/bin/python    # with Headrace

``live`` writes each program's MetaGraph here, lets TensorFlow import it and take gradients through
its branches and loops, and the other way; results and collections must be equal.
"""

import argparse
import base64
import json
import os
import subprocess
import sys

POINTS = (1.3, -1.3, -2.5)
COLLECTIONS = ("cond_context", "while_context")


def powers(tf, x, times, start=None, **options):
    """x times ``start``, again and again."""
    first = x if start is None else start
    variables = [tf.constant(0), first]
    return tf.while_loop(lambda i, a: i < times, lambda i, a: [i + 1, a * x], variables, **options)[
        1
    ]


def branch(tf, x):
    return tf.cond(x > 0, lambda: x * x * 2, lambda: x - 1)


def loop(tf, x):
    w = tf.Variable(1.5, name="w")
    variables = [tf.constant(0), x]
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * w * x], variables)[1]


def limited(tf, x):
    return powers(tf, x, 9, maximum_iterations=4, swap_memory=True)


def nested(tf, x):
    def body(i, a):
        def inner():
            return a + tf.while_loop(lambda j, b: j < 2, lambda j, b: [j + 1, b * a], [0, x])[1]

        return [i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * x, inner)]

    return tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), x])[1]


def several(tf, x):
    a = powers(tf, x, 3)
    with tf.name_scope("sub"):
        b = powers(tf, a, 2)
    return b + tf.cond(b > 2, lambda: b * a, lambda: x)


def mapped(tf, x):
    return tf.reduce_sum(tf.map_fn(lambda v: v * v * x, tf.stack([x, x * 2, x * 3])))


def recurrent(tf, x):
    cell = tf.nn.rnn_cell.LSTMCell(3, initializer=tf.constant_initializer(0.1))
    inputs = tf.ones([2, 4, 2]) * x
    out, _ = tf.nn.dynamic_rnn(cell, inputs, sequence_length=[4, 2], dtype=tf.float32)
    return tf.reduce_sum(out)


def without_gradient(tf, x):
    return x * x + powers(tf, x, 3, back_prop=False)


def differentiated(tf, x):
    y = loop(tf, x)
    tf.identity(tf.gradients(y, x)[0], name="before")
    return y


def loop_in_branch(tf, x):
    return tf.cond(
        x > 0,
        lambda: powers(tf, x, 3),
        lambda: tf.cond(x < -2, lambda: x * x, lambda: x * 3),
    )


def same_scope(tf, x):
    """Two loops in one name scope: their frames have names of their own."""
    with tf.name_scope("both") as scope:
        a = powers(tf, x, 2, name=scope)
        return a + powers(tf, x, 3, a, name=scope)


PROGRAMS = {
    f.__name__: f
    for f in (
        branch, loop, limited, nested, several, mapped, recurrent, without_gradient,
        differentiated, loop_in_branch, same_scope,
    )
}  # fmt: skip


def write(tf, name):
    """(MetaGraphDef, its results) of a program."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.identity(PROGRAMS[name](tf, x), name="y")
        meta = tf.train.export_meta_graph()
        return meta, _results(tf, graph, x, y)


def read(tf, meta, scope=""):
    """The results of a MetaGraph that is imported."""
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta, import_scope=scope or None)
        prefix = scope + "/" if scope else ""
        names = [prefix + "x:0", prefix + "y:0"]
        return _results(tf, graph, *[graph.get_tensor_by_name(n) for n in names])


def _results(tf, graph, x, y):
    """Sizes of the collections; y and its gradient at some points."""
    sizes = [len(graph.get_collection(k)) for k in COLLECTIONS]
    gradient = tf.gradients(y, x)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows = [[float(v) for v in session.run([y, gradient], {x: p})] for p in POINTS]
    return {"collections": sizes, "values": rows}


def golden(tf, path):
    found = {}
    for name in PROGRAMS:
        meta, results = write(tf, name)
        results["meta"] = base64.b64encode(meta.SerializeToString()).decode()
        found[name] = results
    with open(path, "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


def exchange(tf, folder, mode):
    """Write all programs to a folder, or read them from there."""
    os.makedirs(folder, exist_ok=True)
    found = {}
    for name in PROGRAMS:
        path = os.path.join(folder, name + ".meta")
        if mode == "write":
            meta, found[name] = write(tf, name)
            with open(path, "wb") as file:
                file.write(meta.SerializeToString())
        else:
            found[name] = [read(tf, path, scope) for scope in ("", "again")]
    with open(os.path.join(folder, mode + ".json"), "w") as file:
        json.dump(found, file)


def live(tf, folder, tf1):
    """Both ways; returns how many programs differ."""
    here, there = os.path.join(folder, "here"), os.path.join(folder, "there")
    exchange(tf, here, "write")
    for place, mode in ((here, "read"), (there, "write")):
        subprocess.run([tf1, os.path.abspath(__file__), mode, place], check=True)
    exchange(tf, there, "read")
    bad = 0
    for place in (here, there):
        with open(place + "/write.json") as a, open(place + "/read.json") as b:
            wrote, got = json.load(a), json.load(b)
        for name in PROGRAMS:
            if not all(is_equal(wrote[name], again) for again in got[name]):
                bad += 1
                print(place, name, wrote[name], got[name])
    print(2 * len(PROGRAMS) - bad, "of", 2 * len(PROGRAMS), "programs are read with equal results")
    return bad


def is_equal(a, b):
    pairs = [(p, q) for r, s in zip(a["values"], b["values"]) for p, q in zip(r, s)]
    near = all(abs(p - q) <= 1e-5 * max(1.0, abs(p)) for p, q in pairs)
    return near and a["collections"] == b["collections"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["golden", "live", "read", "write"])
    parser.add_argument("path")
    parser.add_argument("--tf1")
    args = parser.parse_args()
    if args.mode == "live":
        import headrace as tf

        sys.exit(live(tf, args.path, args.tf1) > 0)
    import tensorflow as tf

    golden(tf, args.path) if args.mode == "golden" else exchange(tf, args.path, args.mode)


if __name__ == "__main__":
    main()
