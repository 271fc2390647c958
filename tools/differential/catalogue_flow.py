"""Calls with functions, several runs and state: branches, loops, datasets, optimizers, metrics."""

from __future__ import annotations

from typing import Any

from tools.differential.cases import (
    EVERY,
    FLOATS,
    NUMBERS,
    REALS,
    Arguments,
    Source,
    Value,
    dtype,
    op,
    py,
)
from tools.differential.catalogue_other import sparse


def fn(name: str) -> Value:
    """A function of runner.functions_of."""
    return {"k": "fn", "v": name}


def call(name: str, *args: Value, **kwargs: Value) -> Value:
    return {"k": "call", "fn": name, "args": list(args), "kwargs": kwargs}


def listed(*values: Value) -> Value:
    return {"k": "list", "v": list(values)}


def _kept(s: Source, name: str, shape: list[int], *limits: float) -> Value:
    """A value that a one-shot iterator may capture."""
    return s.carried(s.array(name, shape, *limits), name, ["const", "np", "nested"])


# branches -----------------------------------------------------------------------------------------


@op("cond")
def cond(s: Source) -> Arguments:
    pairs = [("none", "two"), ("none", "none"), ("list", "tuple"), ("list", "list")]
    odd = [("none", "vector"), ("none", "whole"), ("none", "nothing"), ("nothing", "nothing")]
    true, false = s.of(odd if s.chance(0.3) else pairs)
    pred = s.one(s.value("bool", []), py(s.chance(0.5)), s.value(s.of(EVERY), []))
    out: Arguments = [("pred", pred), ("true_fn", fn(true)), ("false_fn", fn(false))]
    return [*out, ("*strict", py(s.chance(0.5)))] if s.chance(0.3) else out


@op("case")
def case(s: Source) -> Arguments:
    pairs = [
        {"k": "tuple", "v": [s.value("bool", []), fn(s.one("none", "two", "vector", "whole"))]}
        for _ in range(s.int(1, 3))
    ]
    return [
        ("pred_fn_pairs", {"k": "list", "v": pairs}),
        ("*default", s.one(py(None), fn("two"))),
        ("*exclusive", py(s.chance(0.3))),
        ("*strict", py(s.chance(0.3))),
    ]


@op("switch_case")
def switch_case(s: Source) -> Arguments:
    branches = [fn(s.one("none", "two", "two")) for _ in range(s.int(1, 3))]
    return [
        ("branch_index", s.ints(s.int(-1, 3), s.one("int32", "int32", "int64"))),
        ("branch_fns", {"k": "list", "v": branches}),
        ("default", s.one(py(None), fn("two"))),
    ]


# loops --------------------------------------------------------------------------------------------


@op("while_loop", grad=True)
def while_loop(s: Source) -> Arguments:
    start = s.ints(s.int(0, 2))
    test = fn("wrong_test" if s.chance(0.1) else s.one("below_three", "below_three", "never"))
    name, shape = s.of(FLOATS), s.dims(0, 2)
    if s.chance(0.15):
        out: Arguments = [("cond", test), ("body", fn("count")), ("loop_vars", listed(start))]
    else:
        body = s.one("grow", "grow", "grow", "drift", "lengthen")
        values = listed(start, s.value(name, shape))
        out = [("cond", test), ("body", fn(body)), ("loop_vars", values)]
        if s.chance(0.3):
            second = s.one({"k": "shape", "v": None}, {"k": "shape", "v": [None] * len(shape)})
            out.append(("*shape_invariants", listed({"k": "shape", "v": []}, second)))
    if s.chance(0.3):
        out.append(("*maximum_iterations", s.ints(s.int(0, 4))))
    if s.chance(0.3):
        out.append(("*parallel_iterations", py(s.one(1, 10, 0))))
    if s.chance(0.2):
        out.append(("*back_prop", py(s.chance(0.5))))
    return out


@op("map_fn", grad=True)
def map_fn(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    body = s.one("double", "same", "square", "pair")
    out: Arguments = [("fn", fn(body)), ("elems", s.value(name, s.dims(1, 3)))]
    if body == "pair":
        kinds = {"k": "tuple", "v": [dtype(name), dtype(name)]}
        out.append(("*dtype", kinds if s.chance(0.7) else dtype(name)))
    elif s.chance(0.4):
        out.append(("*dtype", dtype(s.one(name, s.of(NUMBERS)))))
    if s.chance(0.2):
        out.append(("*infer_shape", py(s.chance(0.5))))
    return out


@op("foldl", "foldr", "scan", grad=True)
def fold(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), s.dims(1, 3)
    out: Arguments = [
        ("fn", fn(s.one("sum", "product", "latest"))),
        ("elems", s.value(name, shape, 1, 2)),
    ]
    if s.chance(0.5):
        out.append(("*initializer", s.value(name, s.one(shape[1:], []), 1, 2)))
    return out


@op("scan", grad=True)
def scan(s: Source) -> Arguments:
    return [
        ("fn", fn("sum")),
        ("elems", s.value("float32", s.dims(1, 2))),
        ("*reverse", py(s.chance(0.5))),
        ("*parallel_iterations", py(s.one(1, 10))),
    ]


@op("py_func")
def py_func(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    return [
        ("func", fn(s.one("same", "numpy_double", "numpy_float32", "numpy_none"))),
        ("inp", listed(s.value(name, s.dims(0, 2)))),
        ("Tout", s.one(dtype(name), listed(dtype(name)), dtype(s.of(NUMBERS)))),
        ("stateful", py(s.chance(0.7))),
    ]


@op("gradients")
def gradients(s: Source) -> Arguments:
    v = s.variable("float32", [2, 3])
    loss = s.one(call("square", v), call("reduce_sum", v), call("stop_gradient", v))
    out: Arguments = [("ys", loss), ("xs", s.one(v, listed(v), s.value("float32", [])))]
    if s.chance(0.3):
        out.append(("*grad_ys", s.value("float32", s.one([2, 3], []))))
    if s.chance(0.2):
        out.append(("*unconnected_gradients", py(s.one("none", "zero", "sum"))))
    return out


# several runs -------------------------------------------------------------------------------------


@op("method:minimize", positional=2, seeded=True, runs=3)
def minimize(s: Source) -> Arguments:
    v = s.variable(s.one("float32", "float32", "float64", "float16"), s.dims(1, 2))
    loss = s.one(
        call("nn.l2_loss", v),
        call("reduce_mean", call("square", v)),
        call("reduce_sum", call("gather", v, s.indices([2], v["shape"][0] if v["shape"] else 1))),
    )
    return [("", _optimizer(s)), ("", loss)]


def _optimizer(s: Source) -> Value:
    rate = s.one(py(0.1), py(0.5), s.value("float32", []), py(-1.0))
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("GradientDescentOptimizer", {}),
        ("MomentumOptimizer", {"momentum": py(0.9), "use_nesterov": py(s.chance(0.5))}),
        ("AdamOptimizer", {"beta1": py(s.one(0.9, 0.0)), "epsilon": py(s.one(1e-8, 1.0))}),
        ("AdagradOptimizer", {"initial_accumulator_value": py(s.one(0.1, 1.0, 0.0))}),
        ("AdadeltaOptimizer", {"rho": py(0.9)}),
        ("RMSPropOptimizer", {"centered": py(s.chance(0.5)), "momentum": py(s.one(0.0, 0.5))}),
        ("FtrlOptimizer", {"l1_regularization_strength": py(s.one(0.0, 0.1))}),
        ("ProximalGradientDescentOptimizer", {"l2_regularization_strength": py(0.1)}),
        ("ProximalAdagradOptimizer", {}),
    ]
    name, kwargs = s.of(kinds)
    return call(f"train.{name}", rate, **(kwargs if s.chance(0.7) else {}))


@op("assign_add", "assign_sub", "assign", runs=3)
def assign_again(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), s.dims(0, 2)
    return [("ref", s.variable(name, shape)), ("value", s.value(name, shape, 0, 2))]


@op("scatter_add", "scatter_update", "scatter_nd_add", runs=2)
def scatter_again(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), [s.int(1, 3), 2]
    return [
        ("ref", s.variable(name, shape)),
        ("indices", s.indices([2] if s.chance(0.5) else [2, 1], shape[0])),
        ("updates", s.value(name, [2, 2])),
    ]


@op("count_up_to", runs=2)
def count_again(s: Source) -> Arguments:
    return [("ref", s.variable("int32", [], 0, 2)), ("limit", py(s.int(2, 5)))]


@op("random.uniform", "random.normal", "random.truncated_normal", seeded=True, runs=3)
def random_again(s: Source) -> Arguments:
    return [("shape", py(s.dims(0, 2))), ("seed", py(s.one(None, 3)))]


@op(
    "metrics.mean",
    "metrics.accuracy",
    "metrics.precision",
    "metrics.recall",
    "metrics.auc",
    "metrics.mean_squared_error",
    "metrics.mean_absolute_error",
    "metrics.root_mean_squared_error",
    "metrics.true_positives",
    "metrics.false_negatives",
    runs=2,
    pick=1,
    positional=1,
    loose=4,
)
def metric_again(s: Source) -> Arguments:
    n = s.int(1, 4)
    name = s.one("float32", "float32", "int32", "bool", "float64")
    out: Arguments = [("", s.value(name, [n], 0, 1)), ("", s.value(name, [n], 0, 1))]
    return [*out, ("*weights", s.value("float32", s.one([n], []), 0, 2))] if s.chance(0.4) else out


@op("metrics.mean_iou", "metrics.mean_per_class_accuracy", runs=2, pick=1)
def class_metric(s: Source) -> Arguments:
    n = s.int(1, 4)
    return [
        ("labels", s.indices([n], 3)),
        ("predictions", s.indices([n], 3)),
        ("num_classes", py(3)),
    ]


@op("metrics.precision_at_k", "metrics.recall_at_k", runs=2, pick=1)
def at_k(s: Source) -> Arguments:
    return [
        ("labels", s.indices([2, 1], 4, "int64")),
        ("predictions", s.value("float32", [2, 4])),
        ("k", py(s.int(1, 3))),
    ]


# datasets -----------------------------------------------------------------------------------------


@op("method:get_next", positional=1, runs=2)
def dataset(s: Source) -> Arguments:
    name = s.of(EVERY)
    shape = [s.int(2, 6), *s.dims(0, 2)]
    source = s.one(
        call("data.Dataset.from_tensor_slices", _kept(s, name, shape)),
        call("data.Dataset.from_tensors", _kept(s, name, shape)),
        call("data.Dataset.range", py(s.int(0, 6))),
        call("data.Dataset.range", py(1), py(9), py(s.one(2, -1, 3))),
        call("data.Dataset.from_tensors", sparse(s, s.of(REALS), [2, 3])),
        call("data.Dataset.from_tensor_slices", sparse(s, s.of(REALS), [3, 2])),
    )
    for _ in range(s.int(0, 3)):
        source = _step(s, source)
    return [("", call("data.make_one_shot_iterator", source))]


def _step(s: Source, source: Value) -> Value:
    steps: list[tuple[str, list[Value], dict[str, Value]]] = [
        ("batch", [py(s.int(1, 3))], {"drop_remainder": py(s.chance(0.5))}),
        ("repeat", [py(s.one(None, 2, 0))], {}),
        ("take", [py(s.int(-1, 3))], {}),
        ("skip", [py(s.int(-1, 2))], {}),
        ("map", [fn("double" if s.chance(0.7) else "pair")], {}),
        ("shuffle", [py(s.int(1, 4))], {"seed": py(3)}),
        ("shard", [py(2), py(s.int(0, 2))], {}),
        ("prefetch", [py(1)], {}),
        ("cache", [], {}),
        ("padded_batch", [py(2), py([None])], {}),
        ("concatenate", [call("data.Dataset.range", py(2))], {}),
        ("filter", [fn("below_three")], {}),
        ("reduce", [py(0), fn("sum")], {}),
        ("window", [py(2)], {}),
        ("interleave", [fn("same")], {}),
        ("unbatch", [], {}),
        ("enumerate", [py(s.int(0, 3))], {}),
    ]
    name, args, kwargs = s.of(steps[:10] if s.chance(0.85) else steps)
    return call(f"method:{name}", source, *args, **kwargs)
