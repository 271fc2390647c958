"""Cases and outcomes for people: arrays from values, reproducers as Python source."""

from __future__ import annotations

import base64
from typing import Any

import ml_dtypes
import numpy as np


def plain_array(v: dict[str, Any]) -> Any:
    """The array of a value with ``dtype``, ``shape`` and ``data``."""
    return decoded([v["dtype"], v["shape"], v["data"]])


def decoded(value: list[Any]) -> Any:
    """The array of an outcome's ``[dtype, shape, data]``; text stays text."""
    name, shape, data = value
    if name == "text":
        return data
    if name == "string":
        flat = np.empty(len(data), object)
        for i, text in enumerate(data):
            flat[i] = base64.b64decode(text)
        return flat.reshape(shape)
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


def source_of(case: dict[str, Any]) -> str:
    """A program that makes the call and runs it."""
    if case.get("program"):
        return call_of(case)
    feeds: list[str] = []
    lines = ["import tensorflow.compat.v1 as tf, numpy as np"]
    if case.get("seed") is not None:
        lines.append(f"tf.set_random_seed({case['seed']})")
    args = [_text(v, feeds, lines) for v in case["args"]]
    kwargs = [f"{k}={_text(v, feeds, lines)}" for k, v in sorted(case["kwargs"].items())]
    fn = case["fn"]
    if fn.startswith("method:"):
        call = f"{args[0]}.{fn[7:]}({', '.join(args[1:] + kwargs)})"
    else:
        call = f"tf.{fn}({', '.join(args + kwargs)})"
    lines.append(f"y = {call}")
    if case.get("grad"):
        lines.append("g = tf.gradients(y, [inputs])")
    feed = "{" + ", ".join(feeds) + "}" if feeds else ""
    lines.append(f"print(y, tf.Session().run(y{', ' + feed if feed else ''}))")
    return "\n".join(lines)


def call_of(case: dict[str, Any]) -> str:
    """The call alone, on one line: placeholders with their values inside."""
    if case.get("program"):
        return _program(case)
    args = [_short(v) for v in case["args"]]
    args += [f"{k}={_short(v)}" for k, v in sorted(case["kwargs"].items())]
    return f"{case['fn']}({', '.join(args)})" + (" [grad]" if case.get("grad") else "")


def _program(case: dict[str, Any]) -> str:
    """The leaves and the steps of a program."""
    lines = []
    for i, leaf in enumerate(case["leaves"]):
        shape = leaf.get("static", leaf.get("shape"))
        lines.append(f"  {i} = {leaf['kind']} {leaf['dtype']}{shape}")
    for i, (name, inputs, parameters) in enumerate(case["steps"], len(lines)):
        given = {k: v for k, v in parameters.items() if k != "value"}
        lines.append(f"  {i} = {name} {inputs} {given or ''}")
    runs = [
        [f"{r['fetch']} {[a['shape'] for a in r['fed']]}" for r in runs]
        for runs in case["sessions"]
    ]
    lines.append(f"  results {case['results']}, order {case['order']}, wrt {case['wrt']}, {runs}")
    return f"program {case['dtype']}\n" + "\n".join(lines)


def _array_text(v: dict[str, Any], limit: int = 10**9) -> str:
    array = plain_array(v)
    name = "object" if v["dtype"] == "string" else v["dtype"]
    kind = "tf.bfloat16.as_numpy_dtype" if name == "bfloat16" else f"'{name}'"
    if array.size == 0:
        return f"np.zeros({list(array.shape)}, {kind})"
    text = repr(array.tolist())
    if len(text) > limit:
        text = text[:limit] + "…"
    return f"np.array({text}, {kind})".replace("nan", "np.nan").replace("inf", "np.inf")


def _text(v: dict[str, Any], feeds: list[str], lines: list[str]) -> str:
    kind = v["k"]
    if kind == "ph":
        name = f"p{len(feeds)}"
        lines.append(f"{name} = tf.placeholder(tf.{v['dtype']}, {v['static']})")
        feeds.append(f"{name}: {_array_text(v.get('fed', v))}")
        return name
    if kind == "const":
        return f"tf.constant({_array_text(v)}, tf.{v['dtype']})"
    if kind == "var":
        return f"tf.Variable(tf.constant({_array_text(v)}), use_resource={v['resource']})"
    return _plain(v, lambda x: _text(x, feeds, lines), _array_text)


def _short(v: dict[str, Any]) -> str:
    kind = v["k"]
    if kind in ("ph", "const", "var", "np", "nested"):
        array = plain_array(v)
        values = repr(array.tolist())
        values = values if len(values) < 60 else values[:57] + "…"
        static = "" if kind != "ph" or v["static"] == v["shape"] else f"~{v['static']}"
        if "fed" in v:
            static += f" fed {v['fed']['dtype']}{v['fed']['shape']}"
        resource = "r" if v.get("resource") else ""
        return f"{resource}{kind}:{v['dtype']}{v['shape']}{static}{values}"
    return _plain(v, _short, _array_text)


def _plain(v: dict[str, Any], inner: Any, array: Any) -> str:
    kind = v["k"]
    if kind == "py":
        return repr(v["v"])
    if kind == "float":
        return f"float({v['v']!r})"
    if kind == "bytes":
        return repr(base64.b64decode(v["v"]))
    if kind == "dtype":
        return f"tf.{v['v']}"
    if kind == "np":
        return str(array(v))
    if kind == "nested":
        return repr(plain_array(v).tolist())
    if kind == "list":
        return "[" + ", ".join(inner(x) for x in v["v"]) + "]"
    if kind == "tuple":
        return "(" + "".join(inner(x) + ", " for x in v["v"]) + ")"
    if kind == "shape":
        return f"tf.TensorShape({v['v']})"
    if kind == "slice":
        return "slice(" + ", ".join("None" if x is None else inner(x) for x in v["v"]) + ")"
    if kind == "ellipsis":
        return "..."
    if kind == "fn":
        return f"<{v['v']}>"
    if kind == "made":
        return f"{v['how']}⟨{inner(v['v'])}⟩"
    if kind == "call":
        args = [inner(x) for x in v["args"]]
        args += [f"{k}={inner(x)}" for k, x in sorted(v["kwargs"].items())]
        return f"tf.{v['fn']}({', '.join(args)})"
    if kind == "sparse":
        parts = ", ".join(inner(v[p]) for p in ("indices", "values", "shape"))
        return f"tf.SparseTensor({parts})"
    if kind == "slices":
        return f"tf.IndexedSlices({inner(v['values'])}, {inner(v['indices'])})"
    raise ValueError(kind)
