"""Runs fuzz cases on one library: ``python runner.py tensorflow|headrace [fresh] < cases >
outcomes``, a JSON object a line. With ``fresh`` each case has a process in which nothing ran.

This file runs under TensorFlow's Python 3.7 too, so it keeps to that language and imports nothing
of the repository. A case is described in cases.py. The outcome of a case is a dict:

    {"id": 3, "stage": "ok", "static": [["float32", [2, null]]], "values": [VALUE],
     "grads": [VALUE or None]}
    {"id": 4, "stage": "build", "error": "ValueError", "text": "Dimensions must be equal"}

``stage`` is where the case ended: ``build``, ``gradient`` (building the gradient), ``run`` or
``ok``. A VALUE is ``[dtype name, shape, data]`` with the data as base64 of the raw bytes, or a list
of base64 strings. The line ``{"id": 3, "stage": "begun"}`` comes before the work, so that the
reader knows which case killed the process.
"""

import base64
import importlib
import json
import os
import sys
import warnings

import numpy as np

try:
    import program_ops
except ImportError:  # as a module of the package, in the tests
    from tools.differential import program_ops

#: Dtypes whose bytes NumPy alone cannot name.
_OWN = ("bfloat16",)


class Library:
    """The library under test, with the few things that are spelt differently."""

    def __init__(self, name):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
        self.name, self.module, self.kernels = name, module, {}
        self.tf = getattr(getattr(module, "compat", None), "v1", module)
        self.tf.raw_ops = module.raw_ops
        self.tf.logging.set_verbosity(self.tf.logging.FATAL)
        self.bfloat16 = self.tf.bfloat16.as_numpy_dtype

    def numpy_dtype(self, name):
        if name == "string":
            return np.dtype(object)
        return np.dtype(self.bfloat16 if name == "bfloat16" else name)

    def with_xla(self, outcome, graph):
        """The outcome with the types of ``xla_only``, if there are any."""
        xla = self.xla_only(graph) if outcome["stage"] in ("ok", "run") else []
        if xla:
            outcome["xla"] = xla
        return outcome

    def xla_only(self, graph):
        """Types of the graph's operations for which TensorFlow has no CPU kernel: with these dtypes
        it runs them on its XLA device.
        """
        if self.name != "tensorflow":
            return []
        found = set()
        for op in graph.get_operations():
            kernels = self.kernels_of(op.type)
            on = {k.device_type for k in kernels if _takes(k, op)}
            if "CPU" not in on and "XLA_CPU" in on:
                found.add(op.type)
        return sorted(found)

    def kernels_of(self, op_type):
        if op_type not in self.kernels:
            from tensorflow.python.framework import kernels

            self.kernels[op_type] = kernels.get_registered_kernels_for_op(op_type).kernel
        return self.kernels[op_type]

    def decode(self, v):
        return decode_array(self, v)

    def encode(self, value):
        return encode_array(value)

    def resolve(self, path):
        """The function that ``path`` names.

        ``Tensor.x`` and ``operator.x`` are handled by the caller.
        """
        found = self.module if path.startswith("contrib.") else self.tf
        for part in path.split("."):
            found = getattr(found, part)
        return found


def _takes(kernel, op):
    """Whether the types of an operation satisfy what a kernel asks of them."""
    for constraint in kernel.constraint:
        allowed = set(constraint.allowed_values.list.type)
        given = op.node_def.attr[constraint.name]
        if not set(given.list.type or [given.type]) <= allowed:
            return False
    return True


def decode_array(lib, v):
    """The NumPy array of a value: ``dtype``, ``shape``, ``data``."""
    dtype = lib.numpy_dtype(v["dtype"])
    if v["dtype"] == "string":
        flat = np.empty(len(v["data"]), object)
        for i, text in enumerate(v["data"]):
            flat[i] = base64.b64decode(text)
        return flat.reshape(v["shape"])
    return np.frombuffer(base64.b64decode(v["data"]), dtype).reshape(v["shape"]).copy()


def encode_array(value):
    value = np.asarray(value)
    name = str(value.dtype)
    if value.dtype.kind in "OSU":
        items = [x if isinstance(x, bytes) else str(x).encode() for x in value.reshape(-1).tolist()]
        return ["string", list(value.shape), [base64.b64encode(x).decode() for x in items]]
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return [name if name not in ("|V2", "V2") else "bfloat16", list(value.shape), data]


def functions_of(tf):
    """Functions that a case may pass to another one, by name."""
    return {
        "double": lambda x: x + x,
        "same": lambda x: x,
        "square": lambda x: x * x,
        "pair": lambda x: (x, x + x),
        "sum": lambda a, x: a + x,
        "product": lambda a, x: a * x,
        "latest": lambda a, x: x,
        "none": lambda: tf.constant(1.0),
        "two": lambda: tf.constant(2.0),
        "vector": lambda: tf.constant([1.0, 2.0]),
        "whole": lambda: tf.constant(1),
        "nothing": lambda: None,
        "list": lambda: [tf.constant(1.0), tf.constant(2)],
        "tuple": lambda: (tf.constant(3.0), tf.constant(4)),
        "random": lambda: tf.random_uniform([]),
        "below_three": lambda i, *rest: i < 3,
        "never": lambda i, *rest: i < 0,
        "wrong_test": lambda i, *rest: i,
        "count": lambda i: i + 1,
        "grow": lambda i, x: (i + 1, x * 2),
        "drift": lambda i, x: (i + 1, tf.cast(x, tf.float64)),
        "lengthen": lambda i, x: (i + 1, tf.concat([x, x], 0)),
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "l2": lambda w: 0.1 * tf.reduce_sum(w * w),
        "numpy_double": lambda x: x * 2,
        "numpy_float32": lambda x: np.float32(x),
        "numpy_none": lambda x: None,
    }


def ways_of(tf):
    """Ways for a tensor that leave its values alone, by name."""

    def assigned(resource):
        def way(x):
            check = x.shape.is_fully_defined()
            v = tf.Variable(tf.zeros_like(x), use_resource=resource, validate_shape=check)
            with tf.control_dependencies([v.initializer]):
                with tf.control_dependencies([tf.assign(v, x, validate_shape=check)]):
                    return v.read_value()

        return way

    yes = lambda: tf.placeholder_with_default(True, [])
    return {
        "cond": lambda x: tf.cond(yes(), lambda: tf.identity(x), lambda: tf.zeros_like(x)),
        "not_cond": lambda x: tf.cond(
            tf.logical_not(yes()), lambda: tf.zeros_like(x), lambda: tf.identity(x)
        ),
        "while": lambda x: tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a), [0, x])[1],
        "open_while": lambda x: tf.while_loop(
            lambda i, a: i < 2,
            lambda i, a: (i + 1, tf.identity(a)),
            [0, x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
        )[1],
        "case": lambda x: tf.case(
            [(yes(), lambda: tf.identity(x))], default=lambda: tf.zeros_like(x)
        ),
        "function": lambda x: tf.function(lambda a: tf.identity(a))(x),
        "py_func": lambda x: tf.py_func(lambda a: a, [x], x.dtype),
        "transposed": lambda x: tf.transpose(tf.transpose(x)),
        "default": lambda x: tf.placeholder_with_default(x, None),
        "stacked": lambda x: tf.stack([x, x])[1],
        "concatenated": lambda x: tf.split(tf.concat([x, x], 0), 2)[0],
        "ref": assigned(False),
        "resource": assigned(True),
        "ordered": lambda x: tf.tuple([x, tf.constant(1)])[0],
    }


class Case:
    """One case under way: its graph, its feeds and the tensors that gradients may be taken of."""

    def __init__(self, lib, spec):
        self.lib, self.tf, self.spec = lib, lib.tf, spec
        self.feeds, self.inputs = {}, []

    def argument(self, v):
        """The argument that a value describes."""
        return getattr(self, "_" + v["k"])(v)

    def _py(self, v):
        return v["v"]

    def _bytes(self, v):
        return base64.b64decode(v["v"])

    def _float(self, v):
        return float(v["v"])

    def _dtype(self, v):
        return getattr(self.tf, v["v"])

    def _np(self, v):
        return decode_array(self.lib, v)

    def _nested(self, v):
        return decode_array(self.lib, v).tolist()

    def _list(self, v):
        return [self.argument(x) for x in v["v"]]

    def _tuple(self, v):
        return tuple(self.argument(x) for x in v["v"])

    def _shape(self, v):
        return self.tf.TensorShape(v["v"])

    def _slice(self, v):
        return slice(*[None if x is None else self.argument(x) for x in v["v"]])

    def _ellipsis(self, v):
        return Ellipsis

    def _const(self, v):
        return self._given(
            v, self.tf.constant(decode_array(self.lib, v), getattr(self.tf, v["dtype"]))
        )

    def _ph(self, v):
        tensor = self.tf.placeholder(getattr(self.tf, v["dtype"]), v["static"])
        self.feeds[tensor] = decode_array(self.lib, v.get("fed", v))
        return self._given(v, tensor)

    def _call(self, v):
        """The result of a call within the arguments: a cell, an optimizer, a dataset, a loss."""
        return self.called(v["fn"], v["args"], v["kwargs"])

    def _fn(self, v):
        return functions_of(self.tf)[v["v"]]

    def _made(self, v):
        """The argument passed through something that leaves its values alone: a branch, a loop."""
        tensor = self.tf.convert_to_tensor(self.argument(v["v"]))
        return ways_of(self.tf)[v["how"]](tensor)

    def _var(self, v):
        variable = self.tf.Variable(
            self.tf.constant(decode_array(self.lib, v), getattr(self.tf, v["dtype"])),
            use_resource=v["resource"],
        )
        return self._given(v, variable)

    def _given(self, v, tensor):
        if v["dtype"] in ("float16", "float32", "float64"):
            self.inputs.append(tensor)
        return tensor

    def _sparse(self, v):
        return self.tf.SparseTensor(*[self.argument(v[p]) for p in ("indices", "values", "shape")])

    def _slices(self, v):
        return self.tf.IndexedSlices(self.argument(v["values"]), self.argument(v["indices"]))

    def call(self):
        """The result of the call, with everything that it took."""
        result = self.called(self.spec["fn"], self.spec["args"], self.spec["kwargs"])
        pick = self.spec.get("pick")
        return result if pick is None else result[pick]

    def called(self, fn, args, kwargs):
        args = [self.argument(v) for v in args]
        kwargs = {str(k): self.argument(v) for k, v in sorted(kwargs.items())}
        head, _, method = fn.partition(":")
        if head == "method":
            return getattr(args[0], method)(*args[1:], **kwargs)
        return self.lib.resolve(head)(*args, **kwargs)

    def outcome(self):
        graph = self.tf.Graph()
        return self.lib.with_xla(self.outcome_in(graph), graph)

    def outcome_in(self, graph):
        stage = "build"
        try:
            with graph.as_default():
                if self.spec.get("seed") is not None:
                    self.tf.set_random_seed(self.spec["seed"])
                result = self.call()
                fetches = self.flat(result)
                static = [self.static(t) for t in fetches]
                stage = "gradient"
                grads = self.gradients(fetches) if self.spec.get("grad") else []
                stage = "run"
                values, grads = self.run(fetches, grads)
            return {"stage": "ok", "static": static, "values": values, "grads": grads}
        except Exception as error:
            return {"stage": stage, "error": type(error).__name__, "text": str(error)[:400]}

    def flat(self, result):
        """Tensors and operations of a result, in order; anything else is described."""
        if result is None:
            return []
        if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
            return [t for r in result for t in self.flat(r)]
        if isinstance(result, dict):
            return [t for k in sorted(result) for t in self.flat(result[k])]
        if isinstance(result, (self.tf.SparseTensor, self.tf.SparseTensorValue)):
            return self.flat([result.indices, result.values, result.dense_shape])
        if isinstance(result, self.tf.IndexedSlices):
            return self.flat([result.values, result.indices])
        if isinstance(result, tuple):
            return [t for r in result for t in self.flat(r)]
        return [result]

    def static(self, t):
        if isinstance(t, self.tf.Operation):
            return ["operation", None]
        if not isinstance(t, (self.tf.Tensor, self.tf.Variable)):
            return [type(t).__name__, None]
        shape = t.shape
        return [t.dtype.base_dtype.name, None if shape.ndims is None else shape.as_list()]

    def gradients(self, fetches):
        ys = [
            t for t in fetches if isinstance(t, self.tf.Tensor) and t.dtype.base_dtype.is_floating
        ]
        if not ys or not self.inputs:
            return []
        return [
            g.values if isinstance(g, self.tf.IndexedSlices) else g
            for g in self.tf.gradients(ys, self.inputs)
        ]

    def run(self, fetches, grads):
        """Values of the fetched tensors (None for operations, text for other things) and of the
        gradients.
        """
        kinds = (self.tf.Tensor, self.tf.Variable, self.tf.Operation)
        wanted = [t for t in fetches if isinstance(t, kinds)]
        config = self.tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with self.tf.Session(config=config) as session:
            session.run(self.tf.global_variables_initializer())
            session.run(self.tf.local_variables_initializer())
            given = session.run([wanted, [g for g in grads if g is not None]], self.feeds)
            later = self.run_again(session, wanted)
        values, gradients = iter(given[0]), iter(given[1])
        shown = [
            _encoded(next(values)) if isinstance(t, kinds) else ["text", [], str(t)]
            for t in fetches
        ]
        grads = [None if g is None else encode_array(next(gradients)) for g in grads]
        return shown + later, grads

    def run_again(self, session, wanted):
        """Values of the later runs in the session, if there are to be some, and of the variables
        after them.
        """
        runs = self.spec.get("runs", 1)
        if runs == 1:
            return []
        values = [v for _ in range(runs - 1) for v in session.run(wanted, self.feeds)]
        variables = self.tf.global_variables() + self.tf.local_variables()
        return [_encoded(v) for v in values + session.run(variables)]


def _encoded(value):
    return None if value is None else encode_array(value)


def outcome_of(lib, spec):
    """The outcome of a case: a call, or a whole program."""
    if spec.get("program"):
        graph = lib.tf.Graph()
        return lib.with_xla(program_ops.outcome(lib, spec, graph), graph)
    return Case(lib, spec).outcome()


def main(name, fresh):
    lib = Library(name)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what ops print goes to stderr
    for line in sys.stdin:
        spec = json.loads(line)
        out.write(json.dumps({"id": spec["id"], "stage": "begun"}) + "\n")
        out.flush()
        child = os.fork() if fresh else 0
        if child:
            os.waitpid(child, 0)
            continue
        outcome = outcome_of(lib, spec)
        outcome["id"] = spec["id"]
        out.write(json.dumps(outcome) + "\n")
        out.flush()
        if fresh:
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["fresh"])
