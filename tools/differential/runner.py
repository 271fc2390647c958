"""Runs fuzz cases on one library: ``python runner.py tensorflow|headrace < cases > outcomes``, a
JSON object a line.

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

#: Dtypes whose bytes NumPy alone cannot name.
_OWN = ("bfloat16",)


class Library:
    """The library under test, with the few things that are spelt differently."""

    def __init__(self, name):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
        self.tf = getattr(getattr(module, "compat", None), "v1", module)
        self.tf.logging.set_verbosity(self.tf.logging.FATAL)
        self.bfloat16 = self.tf.bfloat16.as_numpy_dtype

    def numpy_dtype(self, name):
        if name == "string":
            return np.dtype(object)
        return np.dtype(self.bfloat16 if name == "bfloat16" else name)

    def resolve(self, path):
        """The function that ``path`` names.

        ``Tensor.x`` and ``operator.x`` are handled by the caller.
        """
        found = self.tf
        for part in path.split("."):
            found = getattr(found, part)
        return found


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
        self.feeds[tensor] = decode_array(self.lib, v)
        return self._given(v, tensor)

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
        args = [self.argument(v) for v in self.spec["args"]]
        kwargs = {str(k): self.argument(v) for k, v in sorted(self.spec["kwargs"].items())}
        head, _, method = self.spec["fn"].partition(":")
        if head == "method":
            return getattr(args[0], method)(*args[1:], **kwargs)
        return self.lib.resolve(head)(*args, **kwargs)

    def outcome(self):
        stage = "build"
        try:
            with self.tf.Graph().as_default():
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
        values, gradients = iter(given[0]), iter(given[1])
        shown = [
            _encoded(next(values)) if isinstance(t, kinds) else ["text", [], str(t)]
            for t in fetches
        ]
        return shown, [None if g is None else encode_array(next(gradients)) for g in grads]


def _encoded(value):
    return None if value is None else encode_array(value)


def main(name):
    lib = Library(name)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what ops print goes to stderr
    for line in sys.stdin:
        spec = json.loads(line)
        out.write(json.dumps({"id": spec["id"], "stage": "begun"}) + "\n")
        out.flush()
        outcome = Case(lib, spec).outcome()
        outcome["id"] = spec["id"]
        out.write(json.dumps(outcome) + "\n")
        out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
