"""Makes the golden values with TensorFlow 1.15: ``python tests/golden/make.py [family ...]``.

Runs each sample as one op in a graph of its own. Inputs named in ``const`` are constants, the
others are fed; inputs that are references (or resource handles) become variables that hold the
given array, and their values after the run are kept too. Also writes ``opdefs.json.gz``, the
signatures of TensorFlow's ops, when no family is named.

This file runs in TensorFlow's environment (Python 3.7) and never imports headrace.
"""

import gzip
import json
import os
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402
from tensorflow.python.framework import op_def_library, op_def_registry  # noqa: E402

from tests.golden import store  # noqa: E402

_RESOURCE = tf.resource.as_datatype_enum


def op_defs():
    return op_def_registry.get_registered_ops()


class Run(object):
    """One sample, built and run."""

    def __init__(self, sample):
        self.sample = sample
        self.op_def = op_defs()[sample.op]
        self.feeds = {}
        self.variables = {}

    def __call__(self):
        """(outputs, values of written-to inputs after the run)."""
        graph = tf.Graph()
        with graph.as_default():
            if self.op_def.HasField("deprecation"):
                _make_older(self.op_def.deprecation.version - 1)
            inputs = {
                arg.name: self._input(arg)
                for arg in self.op_def.input_arg
                if arg.name in self.sample.inputs
            }
            missing = set(self.sample.inputs) - set(inputs)
            if missing:
                raise ValueError("no inputs named %s" % sorted(missing))
            _library().apply_op(self.sample.op, name="sample", **dict(inputs, **self._attrs()))
            op = graph.get_operation_by_name("sample")
            after = {name: v.read_value() for name, v in self.variables.items()}
            with tf.compat.v1.Session(graph=graph, config=_config()) as session:
                session.run(tf.compat.v1.global_variables_initializer())
                outputs = session.run([_fetchable(t) for t in op.outputs] or [op], self.feeds)
                return (outputs if op.outputs else []), session.run(after)

    def _input(self, arg):
        value = self.sample.inputs[arg.name]
        if arg.number_attr or arg.type_list_attr:
            return [self._tensor(arg, v) for v in value]
        return self._tensor(arg, value)

    def _tensor(self, arg, value):
        value = np.asarray(value)
        if arg.is_ref or arg.type == _RESOURCE:
            variable = tf.compat.v1.Variable(
                value, use_resource=not arg.is_ref, name="in_" + arg.name
            )
            self.variables[arg.name] = variable
            return variable._ref() if arg.is_ref else variable.handle
        if arg.name in self.sample.const:
            return tf.constant(value, dtype=_dtype(value))
        placeholder = tf.compat.v1.placeholder(_dtype(value), value.shape)
        self.feeds[placeholder] = value
        return placeholder

    def _attrs(self):
        """Attributes that inputs determine are left out, TensorFlow refuses them.

        None asks for a default.
        """
        inferred = {
            a
            for arg in self.op_def.input_arg
            for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)
        }
        kinds = {a.name: a.type for a in self.op_def.attr}
        attrs = {
            a.name: None
            for a in self.op_def.attr
            if a.HasField("default_value") and a.name not in inferred
        }
        for name, value in self.sample.attrs.items():
            if name in inferred:
                continue
            if kinds[name] == "tensor":
                value = tf.compat.v1.make_tensor_proto(value)
            attrs[name] = value
        return attrs


def _make_older(version):
    """The default graph takes ops that later versions refuse."""
    nothing = tf.compat.v1.GraphDef()
    nothing.versions.producer = version
    tf.import_graph_def(nothing)


def _library(made=[]):
    """TensorFlow's op builder that knows every registered op."""
    if not made:
        made.append(op_def_library.OpDefLibrary())
        made[0].add_op_list(op_def_pb2.OpList(op=op_defs().values()))
    return made[0]


def _dtype(value):
    return tf.string if value.dtype == object else tf.as_dtype(value.dtype)


def _fetchable(tensor):
    """References are read through Identity, so that the value is a copy."""
    return tf.identity(tensor) if tensor.dtype._is_ref_dtype else tensor


def _config():
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
    )
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def make(family):
    """Writes one family; returns the number of samples and a list of complaints."""
    writer = store.Writer()
    complaints = []
    pairs = store.load_samples(family)
    for key, sample in pairs:
        if not sample.golden:
            continue
        if sample.op not in op_defs():
            complaints.append("%s: TensorFlow 1.15 has no op named %s" % (key, sample.op))
            writer.add_error(key, sample, "no such op")
            continue
        try:
            outputs, after = Run(sample)()
            writer.add(key, sample, outputs, after)
        except Exception as e:
            message = str(e).strip().split("\n")[0][:300]
            complaints.append("%s: %s: %s" % (key, type(e).__name__, message))
            writer.add_error(key, sample, message)
    writer.save(store.path_of(family))
    return len(pairs), complaints


def write_op_defs():
    """Signatures in a form that the tests can compare: names, types, defaults."""
    table = {name: _signature(op_def) for name, op_def in op_defs().items()}
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    with open(os.path.join(store.HERE, "opdefs.json.gz"), "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as f:
            f.write(text.encode())


def _signature(op_def):
    return {
        "inputs": [_arg(a) for a in op_def.input_arg],
        "outputs": [_arg(a) for a in op_def.output_arg],
        "attrs": {a.name: _attr(a) for a in op_def.attr},
        "stateful": op_def.is_stateful,
    }


def _arg(arg):
    kind = (
        "*" + arg.type_list_attr
        if arg.type_list_attr
        else arg.type_attr or tf.as_dtype(arg.type).name
    )
    number = arg.number_attr + "*" if arg.number_attr else ""
    return [arg.name, ("&" if arg.is_ref else "") + number + kind]


def _attr(attr):
    """[kind], or [kind, default]."""
    if not attr.HasField("default_value"):
        return [attr.type]
    return [attr.type, _attr_value(attr.type, attr.default_value)]


def _attr_value(kind, value):
    if kind.startswith("list("):
        inner = kind[5:-1]
        field = {
            "int": "i",
            "float": "f",
            "bool": "b",
            "string": "s",
            "type": "type",
            "shape": "shape",
        }.get(inner)
        return [_plain(inner, v) for v in getattr(value.list, field)] if field else str(value)
    field = {
        "int": "i",
        "float": "f",
        "bool": "b",
        "string": "s",
        "type": "type",
        "shape": "shape",
    }.get(kind)
    return _plain(kind, getattr(value, field)) if field else str(value)


def _plain(kind, value):
    if kind == "string":
        return value.decode("latin-1")
    if kind == "type":
        return tf.as_dtype(value).name
    if kind == "shape":
        return None if value.unknown_rank else [None if d.size < 0 else d.size for d in value.dim]
    return value


def main(names):
    failed = 0
    for family in names or store.families():
        try:
            count, complaints = make(family)
        except Exception:
            failed += 1
            print("%-20s cannot be loaded" % family)
            traceback.print_exc()
            continue
        failed += len(complaints)
        size = os.path.getsize(store.path_of(family)) / 1024.0
        print("%-20s %4d samples %4d not run %7.1f KB" % (family, count, len(complaints), size))
        for line in complaints:
            print("    " + line)
    if not names:
        write_op_defs()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
