"""Graphs with what to run and what came out, in one file each: written here and run in TensorFlow,
or the other way.

A case file is a zip: ``graph.pb`` (a GraphDef), ``case.json`` (steps: fetches and feeds by name)
and the arrays. It has no pickles, and this module runs under Python 3.7 and NumPy 1.18 too.
"""

import base64
import io
import json
import zipfile

import numpy as np


class Case(object):
    """``steps``: a list of (fetches, feeds): tensor or operation names, and arrays by tensor
    name.
    """

    def __init__(self, graph, steps, results=None, tol=None):
        self.graph = graph  # bytes of a GraphDef
        self.steps = steps
        self.results = results  # a list per step; None for operations
        self.tol = tol

    def save(self, path):
        arrays = {}
        steps = [
            {"fetches": list(fetches), "feeds": {k: _put(v, arrays) for k, v in feeds.items()}}
            for fetches, feeds in self.steps
        ]
        results = None
        if self.results is not None:
            results = [
                [None if r is None else _put(r, arrays) for r in row] for row in self.results
            ]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            _write(out, "graph.pb", self.graph)
            head = {"steps": steps, "results": results, "tol": self.tol}
            _write(out, "case.json", json.dumps(head, sort_keys=True).encode())
            for name in sorted(arrays):
                _write(out, name, arrays[name])

    @classmethod
    def load(cls, path, bfloat16=None):
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read("case.json").decode())

            def get(ref):
                return None if ref is None else _get(file, ref, bfloat16)

            steps = [
                (s["fetches"], {k: get(v) for k, v in s["feeds"].items()}) for s in head["steps"]
            ]
            results = head["results"]
            if results is not None:
                results = [[get(r) for r in row] for row in results]
            return cls(file.read("graph.pb"), steps, results, head["tol"])


def _write(out, name, data):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes whenever it is made
    info.compress_type = zipfile.ZIP_DEFLATED
    out.writestr(info, data)


def _put(value, arrays):
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in array.reshape(-1).tolist()]
        text = [base64.b64encode(v).decode() for v in flat]
        return {"strings": text, "shape": list(array.shape)}
    name = "%04d.npy" % len(arrays)
    kind = array.dtype.name
    if kind == "bfloat16":
        array = array.view(np.uint16)
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array).reshape(array.shape), version=(1, 0), allow_pickle=False
    )
    arrays[name] = buffer.getvalue()
    return {"array": name, "bfloat16": kind == "bfloat16"}


def _get(file, ref, bfloat16):
    if "strings" in ref:
        out = np.empty(len(ref["strings"]), object)
        out[:] = [base64.b64decode(s) for s in ref["strings"]]
        return out.reshape(ref["shape"])
    array = np.lib.format.read_array(io.BytesIO(file.read(ref["array"])), allow_pickle=False)
    return array.view(bfloat16) if ref["bfloat16"] else array
