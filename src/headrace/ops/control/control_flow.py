"""``tf.cond``, ``tf.case`` and ``tf.while_loop``.

They make the same Switch / Merge / Enter / Exit / NextIteration operations as TF 1.15, in the user's own graph, so that
names inside branches and bodies exist and GraphDefs are TensorFlow's.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from headrace.core import dtypes, nest, shapes
from headrace.core.build import apply, apply_op
from headrace.core.contexts import Context
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import constant, identity
from headrace.ops.control.control_contexts import CondContext, WhileContext, in_context
from headrace.ops.control.control_flow_eager import eager_cond, eager_while
from headrace.ops.control.control_flow_ops import EXIT, LOOP_COND, MERGE, NEXT_ITERATION, SWITCH
from headrace.ops.control.dependencies import with_dependencies

__all__ = ["case", "cond", "merge", "switch", "switch_case", "while_loop"]


def switch(
    data: Any, pred: Any, dtype: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(output_false, output_true)."""
    data = convert_to_tensor(data, dtype)
    return apply(SWITCH, data, pred, name=name or "Switch")  # type: ignore[no-any-return]


def merge(inputs: Any, name: str | None = None) -> Any:
    """The one of the inputs that is there, and its index."""
    return apply(MERGE, [convert_to_tensor(i) for i in inputs], name=name or "Merge")


# cond -------------------------------------------------------------------------------------------


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """``true_fn()`` if ``pred`` else ``false_fn()``; only one of them is computed."""
    true_fn = fn1 if fn1 is not None else true_fn
    false_fn = fn2 if fn2 is not None else false_fn
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if get_default_graph()._is_eager:
        return eager_cond(pred, true_fn, false_fn, strict)
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with name_scope(name, "cond", [pred]):
        graph = get_default_graph()
        pred = convert_to_tensor(pred, dtypes.bool)
        if pred._shape not in (None, ()):
            raise ValueError(f"pred of tf.cond must be a scalar, not of shape {pred.shape}")
        if_false, if_true = apply(SWITCH, pred, pred, name="Switch")
        pivot_true = identity(if_true, name="switch_t")
        pivot_false = identity(if_false, name="switch_f")
        pred = identity(pred, name="pred_id")
        outer = graph._context
        branch_true = CondContext(pred, pivot_true, 1, graph.unique_name("cond_text"), outer)
        branch_false = CondContext(pred, pivot_false, 0, graph.unique_name("cond_text"), outer)
        for pivot, branch in ((pivot_true, branch_true), (pivot_false, branch_false)):
            pivot._op._context = branch
        _open_regions(graph, branch_true, branch_false)
        given_true, results_true = _branch(branch_true, true_fn)
        if given_true is None and not graph._is_function:
            raise ValueError("true_fn must have a return value.")
        given_false, results_false = _branch(branch_false, false_fn)
        if given_false is None and not graph._is_function:
            raise ValueError("false_fn must have a return value.")
        _check_structures(given_true, given_false, results_true, results_false)
        merged = [
            _merge_pair(f, t, pred, given)
            for f, t, given in zip(results_false, results_true, _results_of(given_true))
        ]
        _note_gradient_context(branch_true, branch_false)
        _close_branches(graph, (branch_true, branch_false), (if_true._op, pred._op), merged)
        packed = None if given_true is None else nest.pack_sequence_as(given_true, merged)
    if (
        not strict
        and isinstance(packed, (list, tuple))
        and len(packed) == 1
        and not hasattr(packed, "_fields")
    ):
        return packed[0]
    return packed


def _results_of(given: Any) -> list[Any]:
    """What a branch returned, flat; in a function a branch may return nothing: its effects happen all the same."""
    return [] if given is None else nest.flatten(given)


def _open_regions(graph: Graph, *contexts: Context) -> None:
    """In a function, effects inside a branch or a loop are ordered among themselves (core/effects.py)."""
    if graph._effects is not None:
        for context in contexts:
            graph._effects.open(context)


def _pending(graph: Graph, context: Context) -> list[Operation]:
    """The effects inside that results have to wait for."""
    return [] if graph._effects is None else graph._effects.pending(context)


def _close_branches(
    graph: Graph,
    branches: tuple[CondContext, CondContext],
    starts: tuple[Operation, ...],
    merged: list[Any],
) -> None:
    effects = graph._effects
    if effects is None:
        return
    if not merged and any(effects.pending(b) for b in branches):
        merged = [_merge_of_effects(graph, *branches)]
    end = None
    if merged:
        end = merged[0].op if not hasattr(merged[0], "flow") else merged[0].flow.op
    effects.close(branches, branches[0].outer_context, starts, end)


def _merge_of_effects(graph: Graph, if_true: CondContext, if_false: CondContext) -> Tensor:
    """Something that comes after the effects of branches which return nothing."""
    ends = []
    for branch in (if_false, if_true):
        with in_context(graph, branch), graph.control_dependencies(graph._effects.pending(branch)):
            ends.append(identity(branch.pivot))
    return merge_on(ends[0], ends[1], if_true.pred)


def _note_gradient_context(*branches: CondContext) -> None:
    for a, b in (branches, branches[::-1]):
        a.__dict__["sibling"] = b


def _branch(context: CondContext, function: Callable[[], Any]) -> tuple[Any, list[Any]]:
    context.Enter()
    try:
        given = function()
        if given is None:
            return None, []
        if not isinstance(given, (list, tuple, dict)) and not nest.is_sequence(given):
            given_flat = [given]
        else:
            given_flat = nest.flatten(given)
        graph = get_default_graph()
        after = _pending(graph, context)
        with graph.control_dependencies(after):
            results = [_branch_result(v, context, bool(after)) for v in given_flat]
    finally:
        context.Exit()
    return given, results


def _branch_result(value: Any, context: CondContext, waits: bool = False) -> Any:
    """What a branch returned as a tensor of that branch; ``waits``: for the control dependencies that are set."""
    if isinstance(value, Operation):
        return with_dependencies([value], context.pivot)
    if value is None:
        raise ValueError(
            "None values not supported. A branch of tf.cond returned None: return a tensor or an operation."
        )
    if isinstance(value, IndexedSlices):
        dense = None if value.dense_shape is None else identity(value.dense_shape)
        return IndexedSlices(identity(value.values), identity(value.indices), dense)
    if hasattr(value, "dense_shape") and hasattr(value, "indices"):
        return type(value)(
            identity(value.indices), identity(value.values), identity(value.dense_shape)
        )
    if hasattr(value, "_as_tensor_for_control_flow"):
        value = value._as_tensor_for_control_flow()
    tensor = convert_to_tensor(value)
    if tensor._op._context is context and not waits:
        return tensor
    # a tensor from outside passes through the branch's Switch; an identity keeps Merge's inputs inside
    count_more(tensor._op.graph, -1)
    return identity(tensor)


def _check_structures(given_t: Any, given_f: Any, res_t: list[Any], res_f: list[Any]) -> None:
    if len(res_t) != len(res_f):
        raise ValueError(
            f"true_fn and false_fn must return the same number of values: they returned {len(res_t)} and {len(res_f)}"
        )
    try:
        nest.assert_same_structure(given_t, given_f)
    except (ValueError, TypeError) as error:
        raise ValueError(f"Incompatible return values of true_fn and false_fn: {error}") from None
    for t, f in zip(res_t, res_f):
        if t.dtype.base_dtype is not f.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {t.dtype.base_dtype.name}, "
                f"{f.dtype.base_dtype.name}"
            )


def _merge_pair(f: Any, t: Any, pred: Tensor, given: Any) -> Any:
    if isinstance(t, IndexedSlices):
        dense = (
            None
            if t.dense_shape is None or f.dense_shape is None
            else merge_on(f.dense_shape, t.dense_shape, pred)
        )
        return IndexedSlices(
            merge_on(f.values, t.values, pred), merge_on(f.indices, t.indices, pred), dense
        )
    if hasattr(t, "dense_shape") and hasattr(t, "indices"):
        parts = [
            merge_on(getattr(f, n), getattr(t, n), pred)
            for n in ("indices", "values", "dense_shape")
        ]
        return type(t)(*parts)
    merged = merge_on(f, t, pred)
    rebuild = getattr(given, "_from_tensor_for_control_flow", None)
    return merged if rebuild is None else rebuild(merged)


def merge_on(if_false: Tensor, if_true: Tensor, pred: Tensor) -> Tensor:
    """A Merge that is known to choose by ``pred``."""
    out: Tensor = apply(MERGE, [if_false, if_true], name="Merge")[0]
    out._op.__dict__["_cond_pred"] = pred
    return out


# case -------------------------------------------------------------------------------------------


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The first function whose predicate is true, else ``default``."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(
                f"Each entry in pred_fn_pairs must be a 2-tuple of a predicate and a function, not {pair!r}"
            )
    if not pairs and default is None:
        raise ValueError("pred_fn_pairs must not be empty when there is no default")
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    with name_scope(name, "case", [p for p, _ in pairs]):
        checks: list[Any] = []
        if exclusive and len(pairs) > 1:
            checks = [_at_most_one([p for p, _ in pairs])]
        function: Callable[[], Any]
        if default is None:
            *pairs, (last_pred, last_fn) = pairs
            function = _asserted(last_pred, last_fn)
        else:
            function = default
        for pred, fn in reversed(pairs):
            function = _choose(pred, fn, function, strict)
        with get_default_graph().control_dependencies(checks):
            return function()


def _choose(
    pred: Any, fn: Callable[[], Any], otherwise: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(pred, fn, otherwise, strict=strict)


def _asserted(pred: Any, fn: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        message = "None of the conditions of tf.case was true and it has no default"
        check = apply_op("Assert", pred, [constant(message)], summarize=1)
        with get_default_graph().control_dependencies([check]):
            return fn()

    return run


def _at_most_one(preds: list[Any]) -> Any:
    stacked = apply_op("Pack", [convert_to_tensor(p) for p in preds], axis=0)
    total = apply_op(
        "Sum", apply_op("Cast", stacked, DstT=dtypes.int32), constant([0]), keep_dims=False
    )
    message = constant("More than one condition of an exclusive tf.case was true")
    return apply_op("Assert", apply_op("LessEqual", total, constant(1)), [message], summarize=1)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case"
) -> Any:
    """The function with the given number; ``default`` (or the last one) if there is none."""
    pairs = (
        list(branch_fns.items()) if isinstance(branch_fns, dict) else list(enumerate(branch_fns))
    )
    if pairs and isinstance(pairs[0][1], tuple):
        pairs = [fn for _, fn in pairs]
    index = convert_to_tensor(branch_index)
    fallback = default if default is not None else pairs[-1][1]
    tests = [(apply_op("Equal", index, constant(i, index.dtype)), fn) for i, fn in pairs]
    return case(tests, default=fallback, name=name)


# while ------------------------------------------------------------------------------------------


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` is true."""
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if (isinstance(loop_vars, (list, tuple)) and not loop_vars) or loop_vars is None:
        raise ValueError("No loop variables provided")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if get_default_graph()._is_eager:
        return eager_while(cond, body, loop_vars, maximum_iterations, return_same_structure)
    with name_scope(name, "while"):
        single = not isinstance(loop_vars, (list, tuple)) or hasattr(loop_vars, "_fields")
        variables = [loop_vars] if single else list(loop_vars)
        if shape_invariants is not None and single:
            shape_invariants = [shape_invariants]
        returned: list[
            Any
        ] = []  # the body's result as it came: the loop's result has its structure
        noted = _noting(body, returned)
        if maximum_iterations is not None:
            limit = _iteration_limit(maximum_iterations)
            cond, noted = _limited(cond, noted, limit)
            variables = [constant(0, limit.dtype, name="iteration_counter"), *variables]
            if shape_invariants is not None:
                shape_invariants = [shapes.TensorShape([]), *shape_invariants]
        context = WhileContext(
            get_default_graph()._name_stack, get_default_graph()._context, parallel_iterations
        )
        context.back_prop = back_prop
        results = _build_loop(context, cond, noted, variables, shape_invariants)
        if maximum_iterations is not None:
            results = results[1:]
    if len(results) == 1 and not return_same_structure:
        return results[0]
    return _like_sequence(returned[-1], results)


def _noting(function: Callable[..., Any], results: list[Any]) -> Callable[..., Any]:
    def noted(*values: Any) -> Any:
        results.append(function(*values))
        return results[-1]

    return noted


def _like_sequence(given: Any, values: list[Any]) -> Any:
    if isinstance(given, tuple) and len(given) == len(values):
        return type(given)(*values) if hasattr(given, "_fields") else tuple(values)
    return values


def _iteration_limit(limit: Any) -> Tensor:
    limit = convert_to_tensor(limit, name="maximum_iterations")
    if limit._shape not in (None, ()):
        raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
    return limit  # type: ignore[no-any-return]


def _limited(cond: Any, body: Any, limit: Tensor) -> tuple[Any, Any]:
    """Condition and body with a counter in front that stops the loop after ``limit`` iterations."""

    def limited_cond(i: Tensor, *values: Any) -> Any:
        return apply_op("LogicalAnd", apply_op("Less", i, limit), cond(*values))

    def limited_body(i: Tensor, *values: Any) -> Any:
        new = body(*values)
        if not isinstance(new, (list, tuple)) or (len(values) == 1 and not _is_one_list(new)):
            new = [new]
        return [apply_op("AddV2", i, constant(1, limit.dtype, name="y")), *new]

    return limited_cond, limited_body


def _is_one_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 1 and not hasattr(value, "_fields")


def _build_loop(
    context: WhileContext, cond: Any, body: Any, variables: list[Any], invariants: Any
) -> list[Any]:
    graph = get_default_graph()
    flat = nest.flatten(variables)
    tensors = [_loop_tensor(v) for v in flat]
    wanted = _invariant_shapes(tensors, invariants, variables)
    enters = [context.enter(t, is_constant=False) for t in tensors]
    for e, shape in zip(enters, wanted):
        e._shape = shape
    graph_controls = graph._control_ops
    graph._control_ops = ()
    _open_regions(graph, context)
    context.Enter()
    try:
        merges = [apply(MERGE, [e, e], name="Merge")[0] for e in enters]
        context.pivot = merges[0]._op
        merged = _repack(variables, flat, merges)
        test = convert_to_tensor(cond(*merged), dtypes.bool)
        test = _waiting(graph, context, [test])[0]
        if test._shape not in (None, ()):
            raise ValueError(
                f"The condition of tf.while_loop must be a scalar, not of shape {test.shape}"
            )
        loop_cond = apply(LOOP_COND, test, name="LoopCond")
        switches = [apply(SWITCH, m, loop_cond, name="Switch") for m in merges]
        inside = [identity(s[1]) for s in switches]
        context.pivot = inside[0]._op
        results = body(*_repack(variables, flat, inside))
        next_values = _waiting(graph, context, _body_results(results, variables))
        nexts = [apply(NEXT_ITERATION, v, name="NextIteration") for v in next_values]
    finally:
        context.Exit()
        graph._control_ops = graph_controls
    for m, e, n in zip(merges, enters, nexts):
        _check_invariant(m, n)
        m._op._inputs = (e, n)
    with in_context(graph, context.outer_context):
        exits = [apply(EXIT, s[0], name="Exit") for s in switches]
    if graph._effects is not None:
        starts = [e._op for e in enters]
        graph._effects.close([context], context.outer_context, starts, exits[0]._op)
    for op_part in exits:
        op_part._op.__dict__["_loop"] = context
    context.__dict__["loop_variables"] = [
        _LoopVariable(e, m, s[1], n, x)
        for e, m, s, n, x in zip(enters, merges, switches, nexts, exits)
    ]
    return nest.pack_sequence_as(variables, _rebuilt(flat, exits))  # type: ignore[no-any-return]


def _waiting(graph: Graph, context: Context, tensors: list[Tensor]) -> list[Tensor]:
    """The tensors after the effects of the loop so far."""
    after = _pending(graph, context)
    if not after:
        return tensors
    with graph.control_dependencies(after):
        return [identity(t) for t in tensors]


_LoopVariable = collections.namedtuple(
    "_LoopVariable", ["enter", "merge", "inside", "next", "exit"]
)


def _loop_tensor(value: Any) -> Tensor:
    if hasattr(value, "_as_tensor_for_control_flow"):
        return value._as_tensor_for_control_flow()  # type: ignore[no-any-return]
    return convert_to_tensor(value)


def _rebuilt(given: list[Any], tensors: list[Tensor]) -> list[Any]:
    """TensorArrays travel as their flow."""
    return [
        g._from_tensor_for_control_flow(t) if hasattr(g, "_from_tensor_for_control_flow") else t
        for g, t in zip(given, tensors)
    ]


def _repack(variables: list[Any], flat: list[Any], tensors: list[Tensor]) -> Any:
    return nest.pack_sequence_as(variables, _rebuilt(flat, tensors))


def _body_results(results: Any, variables: list[Any]) -> list[Tensor]:
    if (
        (isinstance(results, (list, tuple)) and len(variables) == 1 and not _is_one_list(results))
        or not isinstance(results, (list, tuple))
        or (hasattr(results, "_fields") and len(variables) == 1)
    ):
        packed = [results]
    else:
        packed = list(results)
    flat, want = nest.flatten(packed), nest.flatten(variables)
    if len(flat) != len(want):
        raise ValueError(
            f"The number of inputs and outputs of a loop body must be the same: {len(want)} go in, {len(flat)} come out"
        )
    out = []
    for given, start in zip(flat, want):
        if given is None:
            raise ValueError("The body of tf.while_loop returned None for a loop variable")
        if isinstance(given, Operation):
            raise TypeError("The body of tf.while_loop returned an operation; return tensors")
        if hasattr(given, "_as_tensor_for_control_flow"):
            out.append(given._as_tensor_for_control_flow())
        else:
            like = getattr(start, "dtype", None)
            try:
                out.append(convert_to_tensor(given, preferred_dtype=like))
            except (TypeError, ValueError):
                out.append(convert_to_tensor(given))
    return out


def _invariant_shapes(tensors: list[Tensor], invariants: Any, variables: list[Any]) -> list[Any]:
    if invariants is None:
        return [t._shape for t in tensors]
    flat = [s for s in nest.flatten(_as_leaves(invariants))]
    if len(flat) != len(tensors):
        raise ValueError(
            f"{len(flat)} shape invariants are given for {len(tensors)} loop variables"
        )
    out = []
    for t, leaf in zip(tensors, flat):
        want = shapes.to_plain(leaf.value)
        if not _is_generalisation(want, t._shape):
            raise ValueError(
                f"The shape invariant specified for {t.name} is not compatible with the initial shape of the loop "
                f"variable. It enters the loop with shape {t.shape}, but the specified shape invariant is "
                f"{shapes.from_plain(want)}."
            )
        out.append(want)
    return out


class _Leaf:
    def __init__(self, value: Any) -> None:
        self.value = value


def _as_leaves(invariants: Any) -> Any:
    if invariants is None or isinstance(invariants, shapes.TensorShape):
        return _Leaf(invariants)
    if isinstance(invariants, (list, tuple)) and hasattr(invariants, "_fields"):
        return type(invariants)(*[_as_leaves(i) for i in invariants])
    if isinstance(invariants, (list, tuple)):
        return [_as_leaves(i) for i in invariants]
    if isinstance(invariants, dict):
        return {k: _as_leaves(v) for k, v in invariants.items()}
    return _Leaf(invariants)


def _is_generalisation(general: Any, special: Any) -> bool:
    if general is None:
        return True
    if special is None or len(general) != len(special):
        return False
    return all(g is None or g == s for g, s in zip(general, special))


def _check_invariant(merge_out: Tensor, next_value: Tensor) -> None:
    if next_value._dtype._base is not merge_out._dtype._base:
        raise ValueError(
            f"The loop variable {merge_out.name} enters the loop with type {merge_out._dtype.name}, but has type "
            f"{next_value._dtype.name} after one iteration."
        )
    if not _is_generalisation(merge_out._shape, next_value._shape):
        start = merge_out._op._inputs[0]._op._inputs[0]
        raise ValueError(
            f"Input tensor '{start.name}' enters the loop with shape {start.shape}, but has shape {next_value.shape} "
            "after one iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )


def smart_cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None
) -> Any:
    """``cond``, decided while building where ``pred`` is known."""
    if isinstance(pred, Tensor):
        known = static_value(pred)
        if known is None:
            return cond(pred, true_fn, false_fn, name=name)
        pred = bool(known)
    return true_fn() if pred else false_fn()
