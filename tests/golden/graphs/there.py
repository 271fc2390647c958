"""The TensorFlow side: ``python tests/golden/graphs/there.py run|samples|models DIR``.

``run``: load every case of DIR, run its steps, write the results beside it (``x.case`` ->
``x.out``) or the error (``x.err``). ``samples``: write a case for every sample of tests/samples (TF
1.15 only). ``models``: the whole models of ``programs.py``. ``pack``: only the GraphDefs of the
samples, all in one file (``samples.xz`` in DIR).

Runs in TensorFlow's environment (1.15 on Python 3.7, or 2.x) and never imports headrace.
"""

import os
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tensorflow_module  # noqa: E402

from tests.golden.graphs.cases import Case  # noqa: E402

tf = tensorflow_module.compat.v1
BFLOAT16 = tf.bfloat16.as_numpy_dtype


def config():
    options = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    options.graph_options.optimizer_options.opt_level = -1
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    return options


def run_steps(graph, steps):
    rows = []
    with tf.Session(graph=graph, config=config()) as session:
        for fetches, feeds in steps:
            targets = [graph.as_graph_element(f) for f in fetches]
            rows.append(session.run(targets, feeds))
    return rows


def run_all(folder):
    failed = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".case"):
            continue
        base = os.path.join(folder, name[:-5])
        if os.path.exists(base + ".out") or os.path.exists(base + ".err"):
            continue
        with open(base + ".err", "w") as out:  # what stands here if the process does not survive it
            out.write("TensorFlow crashed")
        case = Case.load(base + ".case", BFLOAT16)
        graph = tf.Graph()
        try:
            message = tf.GraphDef()
            message.ParseFromString(case.graph)
            with graph.as_default():
                tf.import_graph_def(message, name="")
            case.results = run_steps(graph, case.steps)
            case.graph = b""
            case.save(base + ".out")
            os.unlink(base + ".err")
        except Exception as error:
            failed += 1
            with open(base + ".err", "w") as out:
                out.write("%s: %s" % (type(error).__name__, error))
    print("%d failed" % failed)


def samples(folder):
    from tests.golden import make, store

    for family in store.families():
        for key, sample in store.load_samples(family):
            if not sample.golden or sample.check is not None or sample.op not in make.op_defs():
                continue
            try:
                write_sample(
                    make.Run(sample),
                    os.path.join(folder, "%s.%s.case" % (family, key.replace("/", "-"))),
                )
            except Exception as error:
                print(key, type(error).__name__, str(error)[:200])


def write_sample(run, path):
    from tests.golden import make

    graph = tf.Graph()
    with graph.as_default():
        inputs = {
            a.name: run._input(a) for a in run.op_def.input_arg if a.name in run.sample.inputs
        }
        make._library().apply_op(run.sample.op, name="sample", **dict(inputs, **run._attrs()))
        op = graph.get_operation_by_name("sample")
        outputs = [make._fetchable(t).name for t in op.outputs] or [op.name]
        after = [v.read_value().name for v in run.variables.values()]
        init = tf.global_variables_initializer().name
    feeds = {t.name: v for t, v in run.feeds.items()}
    steps = [([init], {}), (outputs, feeds), (after, {})]
    results = run_steps(graph, steps)
    Case(graph.as_graph_def().SerializeToString(), steps, results, run.sample.tol).save(path)


def pack(folder):
    """All sample graphs in one compressed file.

    Their values are in the sample table's own golden files.
    """
    import json
    import lzma

    from tests.golden import make, store

    index, blobs = {}, []
    for family in store.families():
        for key, sample in store.load_samples(family):
            if not sample.golden or sample.op not in make.op_defs():
                continue
            run = make.Run(sample)
            graph = tf.Graph()
            try:
                with graph.as_default():
                    inputs = {
                        a.name: run._input(a)
                        for a in run.op_def.input_arg
                        if a.name in sample.inputs
                    }
                    make._library().apply_op(
                        sample.op, name="sample", **dict(inputs, **run._attrs())
                    )
                    init = tf.global_variables_initializer().name if run.variables else None
            except Exception as error:
                print(key, type(error).__name__, str(error)[:100])
                continue
            data = graph.as_graph_def().SerializeToString()
            names = {id(v): t.name for t, v in run.feeds.items()}
            feeds = {}
            for name, value in sample.inputs.items():
                parts = value if isinstance(value, (list, tuple)) else [value]
                found = [t.name for t in _tensors(inputs[name]) if t in run.feeds]
                if len(found) == len(parts):
                    feeds[name] = found
            del names
            index["%s:%s" % (family, key)] = [
                len(data),
                feeds,
                init,
                {k: v.name for k, v in run.variables.items()},
            ]
            blobs.append(data)
    head = json.dumps(index, sort_keys=False).encode()
    body = b"%d\n" % len(head) + head + b"".join(blobs)
    with open(os.path.join(folder, "samples.xz"), "wb") as out:
        out.write(lzma.compress(body, preset=9))
    print("%d graphs" % len(blobs))


def _tensors(value):
    return value if isinstance(value, list) else [value]


def models(folder):
    from tests.golden.graphs import programs

    for name, build in sorted(programs.PROGRAMS.items()):
        graph = tf.Graph()
        try:
            with graph.as_default():
                tf.set_random_seed(1)
                steps = build(tf, np)
            results = run_steps(graph, steps)
        except Exception:
            print(name)
            traceback.print_exc()
            continue
        Case(graph.as_graph_def().SerializeToString(), steps, results, 1e-4).save(
            os.path.join(folder, name + ".case")
        )


if __name__ == "__main__":
    {"run": run_all, "samples": samples, "models": models, "pack": pack}[sys.argv[1]](sys.argv[2])
