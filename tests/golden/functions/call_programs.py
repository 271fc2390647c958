"""Programs with Defun and tf.function.

With TF 1.15, ``python call_programs.py`` writes their graphs and results into this folder.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

X = np.float32([1, 2, 3])


def defun(tf: Any, function: Any) -> dict[str, Any]:
    """Results by name of a graph with every kind of Defun."""

    @function.Defun(tf.float32, tf.float32, func_name="plus")
    def plus(x: Any, y: Any) -> Any:
        return x * 2.0 + y

    @function.Defun(tf.float32, tf.float32, func_name="mygrad")
    def mygrad(x: Any, dy: Any) -> Any:
        return dy * 100.0 + x

    @function.Defun(tf.float32, grad_func=mygrad, func_name="withgrad")
    def withgrad(x: Any) -> Any:
        return x * x

    @function.Defun(
        tf.float32,
        python_grad_func=lambda op, dy: dy * 7.0 * op.inputs[0] + op.outputs[0],
        func_name="pygrad",
        shape_func=lambda op: [op.inputs[0].get_shape()],
    )
    def pygrad(x: Any) -> Any:
        return x * 3.0

    @function.Defun(tf.float32, out_names=["s", "p"], func_name="two")
    def two(x: Any) -> Any:
        return x + 1.0, x * 3.0

    @function.Defun()
    def poly(x: Any) -> Any:
        return x + x

    w = tf.constant(5.0)

    @function.Defun(tf.float32, func_name="captures")
    def captures(x: Any) -> Any:
        return plus(x, w)

    v = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0), use_resource=True)

    @function.Defun(func_name="noargs")
    def noargs() -> Any:
        return v * 2.0

    x = tf.placeholder(tf.float32, [3], name="x")
    d, e = two(x)
    results = {
        "a": plus(x, x, name="first"),
        "b": withgrad(x),
        "c": pygrad(x),
        "d": d,
        "e": e,
        "f": poly(x),
        "g": captures(x),
        "h": noargs(),
    }
    for name, t in results.items():
        tf.identity(t, name=f"out_{name}")
    return results


def defun_gradients(tf: Any, results: dict[str, Any]) -> dict[str, Any]:
    """Gradients of the results by the placeholder."""
    x = tf.get_default_graph().get_tensor_by_name("x:0")
    return {f"d{k}": tf.gradients(tf.reduce_sum(results[k]), x)[0] for k in "abcdefg"}


def nested(tf: Any, function: Any, factor: float) -> None:
    """A function with a gradient of its own, called alone, by another function and in a branch."""

    @function.Defun(tf.float32, tf.float32, tf.float32, tf.float32, func_name="pair_grad")
    def pair_grad(x: Any, y: Any, ds: Any, dp: Any) -> Any:
        return ds * factor + y, dp * x - ds

    @function.Defun(tf.float32, tf.float32, grad_func=pair_grad, func_name="pair")
    def pair(x: Any, y: Any) -> Any:
        return x * x, x * y

    @function.Defun(tf.float32, func_name="around")
    def around(x: Any) -> Any:
        s, p = pair(x, x + 1.0)
        return s * p

    x = tf.placeholder(tf.float32, [3], name="x")
    first, second = pair(x, 2.0 * x)
    tf.identity(first, name="out_a")
    tf.identity(second, name="out_b")
    tf.identity(first * second, name="out_c")
    tf.identity(around(x), name="out_d")


def imported_gradients(tf: Any, message: Any, names: str) -> list[Any]:
    """Gradients of a GraphDef's results by its placeholder."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(message, name="")
        x = graph.get_tensor_by_name("x:0")
        ys = [graph.get_tensor_by_name(f"out_{n}:0") for n in names]
        grads = [tf.gradients(tf.reduce_sum(y), x)[0] for y in ys]
        return [session.run(g, {x: X}).tolist() for g in grads]


def calls(tf: Any) -> dict[str, Any]:
    """Results by name of a graph that calls tf.functions."""
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0), use_resource=True)

    @tf.function
    def f(x: Any, n: float = 2.0) -> Any:
        if tf.reduce_sum(x) > 0.0:
            y = x * v
        else:
            y = x - n
        for i in tf.range(3):
            y = y + tf.cast(i, tf.float32)
        return {"y": y, "z": tf.reduce_sum(y)}

    @tf.function
    def pure(x: Any) -> Any:
        return x * 2.0

    @tf.function
    def up(d: Any) -> Any:
        v.assign_add(d)
        return v.read_value()

    x = tf.placeholder(tf.float32, [3], name="x")
    found = f(x)
    results = {"a": found["y"], "b": found["z"], "c": pure(x), "d": up(1.0)}
    for name, t in results.items():
        tf.identity(t, name=f"out_{name}")
    return results


def described(graph_def: Any) -> list[Any]:
    """Name, type and inputs of all nodes; names of functions that hold a hash are left out."""
    return sorted(
        [n.name.partition("poly_")[0] or "poly", n.op.partition("poly_")[0] or "poly"]
        + ["poly" if i.startswith("poly_") else i for i in n.input]
        for n in graph_def.node
    )


KEYWORDS: list[dict[str, Any]] = [
    {},
    {"noinline": True},
    {"noinline": False},
    {"compiled": True, "separate_compiled_gradients": True},
    {"experimental_a": True, "experimental_b": 7, "experimental_c": "x", "experimental_d": 1.5},
    {"_implements": "swish", "_reference": "here"},
    {"_implements": 3},
    {"experimental_e": [1]},
    {"unknown": 1},
    {"capture_by_value": True},
]


def attributes(tf: Any, function: Any) -> list[Any]:
    """What keywords of Defun and of its calls become: attributes, or an error's class."""

    def texts(messages: Any) -> list[list[str]]:
        return sorted([k, str(v).strip()] for k, v in messages.items() if k != "T")

    out: list[Any] = []
    for keywords in KEYWORDS:
        with tf.Graph().as_default() as graph:
            outside = tf.constant([1.0, 2.0], name="outside") * 3.0

            def body(x: Any, outside: Any = [outside]) -> Any:
                return x * outside[0]

            try:
                made = function.Defun(tf.float32, func_name="f", **keywords)(lambda x: body(x))
                made(tf.constant(1.0), name="plain")
                made(tf.constant(1.0), name="called", noinline=True)
                message = graph.as_graph_def()
            except ValueError:
                out.append("ValueError")
                continue
        definition = message.library.function[0]
        nodes = {n.name: n for n in message.node}
        inside = sorted(n.op for n in definition.node_def)
        calls = [texts(nodes[n].attr) for n in ("plain", "called")]
        inputs = len(nodes["plain"].input)
        out.append([texts(definition.attr), calls, inputs, inside])
    with tf.Graph().as_default():
        for outside in (tf.placeholder(tf.float32, []), tf.random_uniform([])):
            try:
                made = function.Defun(tf.float32, capture_by_value=True)(lambda x: x * outside)  # noqa: B023
                made(tf.constant(1.0))
                out.append("taken")
            except ValueError as error:
                out.append(str(error).partition(" (")[0])
    return out


if __name__ == "__main__":
    import tensorflow as tf
    from tensorflow.python.framework import function

    def read(folder: str, name: str) -> Any:
        message = tf.GraphDef()
        with open(os.path.join(folder, f"{name}.pb"), "rb") as file:
            message.ParseFromString(file.read())
        return message

    here = os.path.dirname(os.path.abspath(__file__))
    answers: dict[str, Any] = {}
    for name in ("defun", "calls"):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            made = defun(tf, function) if name == "defun" else calls(tf)
            names = {k: t.name for k, t in made.items() if k != "f"}
            message = graph.as_graph_def()
            with open(os.path.join(here, f"{name}.pb"), "wb") as file:
                file.write(message.SerializeToString())
            if name == "defun":
                made.update(defun_gradients(tf, made))
            session.run("v/Assign")
            values = {k: session.run(t, {"x:0": X}).tolist() for k, t in sorted(made.items())}
            answers[name] = {"names": names, "nodes": described(message), "values": values}
    answers["imported"] = {"defun": imported_gradients(tf, read(here, "defun"), "abcdefg")}
    for name, factor in (("nested_10", 10.0), ("nested_20", 20.0)):
        with tf.Graph().as_default() as graph:
            nested(tf, function, factor)
        message = graph.as_graph_def()
        with open(os.path.join(here, f"{name}.pb"), "wb") as file:
            file.write(message.SerializeToString())
        answers["imported"][name] = imported_gradients(tf, message, "abcd")
    answers["attributes"] = attributes(tf, function)
    with open(os.path.join(here, "answers.json"), "w") as file:
        json.dump(answers, file)
    sys.exit(0)
