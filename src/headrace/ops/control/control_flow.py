"""``tf.cond``, ``tf.case`` and ``tf.while_loop``.

They make the same Switch / Merge / Enter / Exit / NextIteration operations as TF 1.15, in the
user's own graph, so that names inside branches and bodies exist and GraphDefs are TensorFlow's.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from headrace.core import dtypes, nest, shapes, specs
from headrace.core.build import apply, apply_any, apply_many, apply_op, apply_operation
from headrace.core.contexts import Context
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.opdef import lookup
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
    made: tuple[Tensor, Tensor] = apply_any(SWITCH, data, pred, name=name or "Switch")
    return made


def merge(inputs: Any, name: str | None = None) -> Any:
    """The one of the inputs that is there, and its index."""
    return apply_many(MERGE, [convert_to_tensor(i) for i in inputs], name=name or "Merge")


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
    true_fn = _branch_function("true_fn", true_fn, "fn1", fn1)
    false_fn = _branch_function("false_fn", false_fn, "fn2", fn2)
    if get_default_graph()._is_eager:
        return eager_cond(pred, true_fn, false_fn, strict)
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with name_scope(name, "cond", [pred]):
        graph = get_default_graph()
        pred = convert_to_tensor(pred, dtypes.bool)
        if pred._shape not in (None, ()):
            raise ValueError(f"pred of tf.cond must be a scalar, not of shape {pred.shape}")
        if_false, if_true = apply_many(SWITCH, pred, pred, name="Switch")
        pivot_true = identity(if_true, name="switch_t")
        pivot_false = identity(if_false, name="switch_f")
        pred = identity(pred, name="pred_id")
        outer = graph._context
        branch_true = CondContext(pred, pivot_true, 1, graph.unique_name("cond_text"), outer)
        branch_false = CondContext(pred, pivot_false, 0, graph.unique_name("cond_text"), outer)
        for pivot, branch in ((pivot_true, branch_true), (pivot_false, branch_false)):
            pivot._op._context = branch
        for op in (if_true._op, pivot_true._op, pivot_false._op, pred._op):
            graph.prevent_fetching(op)
        _open_regions(graph, branch_true, branch_false)
        given_true, results_true = _branch(branch_true, true_fn)
        if given_true is None and not graph._is_function:
            raise ValueError("true_fn must have a return value.")
        given_false, results_false = _branch(branch_false, false_fn)
        if given_false is None and not graph._is_function:
            raise ValueError("false_fn must have a return value.")
        if not graph._is_function and not strict:  # in functions TF 1.15 has TF 2's cond
            given_true, given_false = _unpacked(given_true), _unpacked(given_false)
        _check_structures(given_true, given_false, graph._is_function)
        for i in _indices_at(given_true):
            _widen_indices(graph, i, (branch_true, results_true), (branch_false, results_false))
        _check_types(results_true, results_false)
        merged = [
            _merge_pair(f, t, pred, given)
            for f, t, given in zip(results_false, results_true, _flat(given_true))
        ]
        _note_gradient_context(branch_true, branch_false)
        _close_branches(graph, (branch_true, branch_false), (if_true._op, pred._op), merged)
        if given_true is None:
            return None
        return nest.pack_sequence_as(given_true, merged, expand_composites=True)


def _branch_function(name: str, function: Any, old_name: str, old: Any) -> Callable[[], Any]:
    if old is not None:
        if function is not None:
            raise TypeError(f"cond(): {name} and {old_name} may not be set simultaneously.")
        function = old
    elif function is None:
        raise TypeError(f"cond(): {name} argument required")
    if not callable(function):
        raise TypeError(f"{name} must be callable.")
    return function  # type: ignore[no-any-return]


def _unpacked(given: Any) -> Any:
    """A list or tuple of one value counts as that value."""
    if isinstance(given, (list, tuple)) and len(given) == 1:
        return given[0]
    return given


def _flat(given: Any) -> list[Any]:
    """What a branch returned, flat.

    In a function a branch may return nothing: its effects happen all the same.
    """
    return [] if given is None else nest.flatten(given, expand_composites=True)


def _indices_at(given: Any) -> list[int]:
    """Where the flat results of a branch have the indices of IndexedSlices."""
    found, at = [], 0
    for value in nest.flatten(given):
        if isinstance(value, IndexedSlices):
            found.append(at + 1)
        at += len(nest.flatten(value, expand_composites=True))
    return found


def _widen_indices(graph: Graph, at: int, *branches: tuple[CondContext, list[Tensor]]) -> None:
    """Indices that are int32 in one branch and int64 in the other become int64."""
    if branches[0][1][at]._dtype is branches[1][1][at]._dtype:
        return
    for branch, results in branches:
        with in_context(graph, branch):
            results[at] = apply_op("Cast", results[at], DstT=dtypes.int64)


def _open_regions(graph: Graph, *contexts: Context) -> None:
    """In a function, effects inside a branch or a loop are ordered among themselves
    (core/effects.py).
    """
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


def _branch(context: CondContext, function: Callable[[], Any]) -> tuple[Any, list[Tensor]]:
    """What the function of a branch returned, and that as tensors of the branch."""
    context.Enter()
    try:
        given = function()
        graph = get_default_graph()
        after = _pending(graph, context)
        with graph.control_dependencies(after):
            return given, [_branch_result(v, context, bool(after)) for v in _flat(given)]
    finally:
        context.Exit()


def _branch_result(value: Any, context: CondContext, waits: bool = False) -> Any:
    """What a branch returned as a tensor of that branch.

    ``waits``: for the control dependencies that are set.
    """
    if isinstance(value, Operation):
        return with_dependencies([value], context.pivot)
    if value is None:
        raise ValueError(
            "None values not supported. A branch of tf.cond returned None: return a "
            "tensor or an operation."
        )
    if hasattr(value, "_as_tensor_for_control_flow"):
        value = value._as_tensor_for_control_flow()
    tensor = convert_to_tensor(value)
    if tensor._op._context is context and not waits:
        return tensor
    # a tensor from outside passes through the branch's Switch; an identity keeps Merge's inputs
    # inside
    count_more(tensor._op.graph, -1)
    return identity(tensor)


def _check_structures(given_t: Any, given_f: Any, in_function: bool) -> None:
    try:
        nest.assert_same_structure(given_t, given_f, expand_composites=True)
    except (TypeError, ValueError) as error:
        if in_function:
            for i, (t, f) in enumerate(zip(nest.flatten(given_t), nest.flatten(given_f))):
                if type(t) is not type(f):
                    raise TypeError(
                        f"Cannot reconcile tf.cond {i}-th outputs:\n  outputs from "
                        f"true_fn: {t}\n  outputs from false_fn: "
                        f"{f}\ntrue_fn and false_fn arguments to tf.cond must have the "
                        f"same structure. {error}"
                    ) from None
            raise TypeError(
                "true_fn and false_fn arguments to tf.cond must have the same number, "
                "type, and overall structure of "
                f"return values. {error}"
            ) from None
        if isinstance(error, ValueError):
            raise ValueError(
                f"Incompatible return values of true_fn and false_fn: {error}"
            ) from None
        raise TypeError(f"Incompatible return types of true_fn and false_fn: {error}") from None
    if given_t is not None and not _flat(given_t):
        raise ValueError("true_fn and false_fn must return at least one result.")


def _check_types(res_t: list[Tensor], res_f: list[Tensor]) -> None:
    for t, f in zip(res_t, res_f):
        if t.dtype.base_dtype is not f.dtype.base_dtype:
            raise ValueError(
                "Outputs of true_fn and false_fn must have the same type: "
                f"{t.dtype.base_dtype.name}, "
                f"{f.dtype.base_dtype.name}"
            )


def _merge_pair(f: Any, t: Any, pred: Tensor, given: Any) -> Any:
    merged = merge_on(f, t, pred)
    rebuild = getattr(given, "_from_tensor_for_control_flow", None)
    return merged if rebuild is None else rebuild(merged)


def merge_on(if_false: Tensor, if_true: Tensor, pred: Tensor) -> Tensor:
    """A Merge that is known to choose by ``pred``."""
    out: Tensor = apply_many(MERGE, [if_false, if_true], name="Merge")[0]
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
    pairs = _tested(pred_fn_pairs, exclusive)
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


def _tested(pred_fn_pairs: Any, exclusive: bool) -> list[tuple[Any, Callable[[], Any]]]:
    """The pairs of a predicate and a function, in order.

    Those of a plain dict by the names of the predicates.
    """
    if not isinstance(pred_fn_pairs, (list, tuple, dict)):
        raise TypeError("fns must be a list, tuple, or dict")
    if not isinstance(pred_fn_pairs, dict):
        pairs = list(pred_fn_pairs)
    elif isinstance(pred_fn_pairs, collections.OrderedDict):
        pairs = list(pred_fn_pairs.items())
    elif get_default_graph()._is_eager:
        if not exclusive:
            raise ValueError(
                "Unordered dictionaries are not supported for the `pred_fn_pairs` "
                "argument when `exclusive=False` and "
                "eager mode is enabled."
            )
        pairs = list(pred_fn_pairs.items())
    else:
        pairs = sorted(pred_fn_pairs.items(), key=lambda pair: getattr(pair[0], "name", ""))
    eager = get_default_graph()._is_eager
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple")
        if isinstance(pair[0], Tensor):
            if pair[0]._dtype is not dtypes.bool:
                raise TypeError(f"pred must be Tensor of type bool: {pair[0]!r}")
        elif not (eager and isinstance(pair[0], bool)):
            raise TypeError(f"pred must be a Tensor, got: {pair[0]!r}")
        if not callable(pair[1]):
            raise TypeError(f"fn for pred {pair[0]!r} must be callable.")
    return pairs


def _choose(
    pred: Any, fn: Callable[[], Any], otherwise: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(pred, fn, otherwise, strict=strict)


def _asserted(pred: Any, fn: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        message = "Input error: None of conditions evaluated as True (tf.case has no default)"
        check = apply_operation(lookup("Assert"), pred, [constant(message)], summarize=1)
        with get_default_graph().control_dependencies([check]):
            return fn()

    return run


def _at_most_one(preds: list[Any]) -> Any:
    stacked = apply_op("Pack", [convert_to_tensor(p) for p in preds], axis=0)
    total = apply_op(
        "Sum", apply_op("Cast", stacked, DstT=dtypes.int32), constant([0]), keep_dims=False
    )
    names = ", ".join(getattr(p, "name", None) or repr(p) for p in preds) if not _eager() else ""
    message = constant(
        f"Input error: exclusive=True: more than 1 conditions ({names}) evaluated as True"
    )
    return apply_operation(
        lookup("Assert"), apply_op("LessEqual", total, constant(1)), [message], summarize=1
    )


def _eager() -> bool:
    return get_default_graph()._is_eager


def switch_case(
    branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case"
) -> Any:
    """The function with the given number; ``default`` (or the one with the largest number) if there
    is none.

    ``branch_fns``: functions, or pairs of a number and a function, or a dict of them; the numbers
    are 0, 1, 2 and so on.
    """
    functions = _numbered(branch_index, branch_fns, default)
    if get_default_graph()._is_eager:
        at = int(branch_index)
        return functions[at if 0 <= at < len(functions) else -1]()
    if branch_index._dtype is not dtypes.int32:
        raise TypeError(
            f"Input 'branch_index' of 'Case' Op has type {branch_index.dtype.name} that "
            "does not match expected type "
            "of int32. Convert it with tf.cast."
        )
    tests = [
        (apply_op("Equal", branch_index, constant(i)), fn) for i, fn in enumerate(functions[:-1])
    ]
    if not tests:
        return functions[0]()
    return case(tests, default=functions[-1], name=name, strict=True)


def _numbered(branch_index: Any, branch_fns: Any, default: Any) -> list[Callable[[], Any]]:
    """The functions in the order of their numbers, the default last."""
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"branch_index must a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"branch_index must an integer Tensor, got {branch_index.dtype!r}")
    if not branch_fns:
        raise ValueError("Must provide at least one item in branch_fns")
    if not isinstance(branch_fns, (list, tuple, dict)):
        raise TypeError("branch_fns must be a list, tuple, or dict")
    pairs = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    if all(callable(fn) for fn in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in branch_fns must be a 2-tuple")
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        if not callable(pair[1]):
            raise TypeError(f"fn for key {pair[0]} must be callable.")
    keys = sorted(k for k, _ in pairs)
    if keys != list(range(len(keys))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found "
            f"{{{','.join(map(str, keys))}}}"
        )
    functions = [fn for _, fn in sorted(pairs, key=lambda pair: pair[0])]
    if default is not None and not callable(default):
        raise TypeError(f"default must be callable, got {default!r}")
    return functions if default is None else [*functions, default]


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
    if single or (
        not return_same_structure and len(nest.flatten(results, expand_composites=True)) == 1
    ):
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
        with name_scope(
            "add"
        ) as scope:  # TF counts before it builds the body, which random seeds follow from
            one = constant(1, limit.dtype, name="y")
            following = apply_op("AddV2", i, one, name=scope)
        new = body(*values)
        if not isinstance(new, (list, tuple)) or (len(values) == 1 and not _is_one_list(new)):
            new = [new]
        return [following, *new]

    return limited_cond, limited_body


def _is_one_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 1 and not hasattr(value, "_fields")


def _build_loop(
    context: WhileContext, cond: Any, body: Any, variables: list[Any], invariants: Any
) -> list[Any]:
    graph = get_default_graph()
    flat = nest.flatten(variables, expand_composites=True)
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
        merges = [apply_many(MERGE, [e, e], name="Merge")[0] for e in enters]
        context.pivot = merges[0]._op
        merged = _repack(variables, flat, merges)
        test = convert_to_tensor(cond(*merged), dtypes.bool)
        test = _waiting(graph, context, [test])[0]
        if test._shape not in (None, ()):
            raise ValueError(
                f"The condition of tf.while_loop must be a scalar, not of shape {test.shape}"
            )
        loop_cond = apply(LOOP_COND, test, name="LoopCond")
        switches = [apply_many(SWITCH, m, loop_cond, name="Switch") for m in merges]
        inside = [identity(s[1]) for s in switches]
        context.pivot = inside[0]._op
        packed = _repack(variables, flat, inside)
        results = body(*packed)
        next_values = _waiting(graph, context, _body_results(results, packed))
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
    return _repack(variables, flat, exits)  # type: ignore[no-any-return]


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
    return nest.pack_sequence_as(variables, _rebuilt(flat, tensors), expand_composites=True)


def _body_results(results: Any, variables: list[Any]) -> list[Tensor]:
    if (
        (isinstance(results, (list, tuple)) and len(variables) == 1 and not _is_one_list(results))
        or not isinstance(results, (list, tuple))
        or (hasattr(results, "_fields") and len(variables) == 1)
    ):
        packed = [results]
    else:
        packed = list(results)
    nest.assert_same_structure(list(variables), packed, expand_composites=True)
    flat = nest.flatten(packed, expand_composites=True)
    want = nest.flatten(variables, expand_composites=True)
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
    values = nest.flatten(variables)
    if invariants is None:
        given: list[Any] = [None] * len(values)
        if len(values) == len(tensors):
            return [t._shape for t in tensors]
    else:
        given = [leaf.value for leaf in nest.flatten(_as_leaves(invariants))]
        if len(given) != len(values):
            raise ValueError(
                f"{len(given)} shape invariants are given for {len(values)} loop variables"
            )
    wanted = [
        shape for v, g in zip(values, given) for shape in _part_shapes(v, g, invariants is None)
    ]
    out = []
    for t, want in zip(tensors, wanted):
        if want is _OWN:
            want = t._shape
        if not _is_generalisation(want, t._shape):
            raise ValueError(
                f"The shape invariant specified for {t.name} is not compatible with the "
                "initial shape of the loop "
                f"variable. It enters the loop with shape {t.shape}, but the specified "
                "shape invariant is "
                f"{shapes.from_plain(want)}."
            )
        out.append(want)
    return out


_OWN: Any = object()  # the shape that a variable enters the loop with


def _part_shapes(value: Any, given: Any, default: bool) -> list[Any]:
    """The invariant shapes of the tensors that a loop variable consists of.

    One, or those of its parts.
    """
    if not nest.is_sequence_or_composite(value) or nest.is_nested(value):
        return [_OWN if default else _tensor_shape(value, given)]
    spec = specs.type_spec_from_value(value)
    if isinstance(given, specs.TypeSpec):
        if not given.is_compatible_with(spec):
            raise TypeError(f"TypeSpec {given!r} is not compatible with {value!r}")
        spec = given
    elif not default:
        spec = _spec_of_shape(value, spec, shapes.as_shape(given))
    return [part.shape._plain for part in spec.component_specs]


def _tensor_shape(value: Any, given: Any) -> Any:
    if not isinstance(given, specs.TypeSpec):
        return shapes.to_plain(given)
    dtype = getattr(value, "dtype", None)
    if not isinstance(given, specs.TensorSpec) or (
        dtype is not None and dtypes.as_dtype(dtype).base_dtype is not given.dtype
    ):
        raise TypeError(f"TypeSpec {given!r} is not compatible with {value!r}")
    return given.shape._plain


def _spec_of_shape(value: Any, spec: Any, shape: shapes.TensorShape) -> Any:
    """What a plain shape says of a composite.

    The rank of a SparseTensor, the values' shape of IndexedSlices.
    """
    if isinstance(value, IndexedSlices):
        dense = shapes.TensorShape([None]).concatenate(shape[1:])
        dense_type = None if value.dense_shape is None else value.dense_shape.dtype
        return specs.IndexedSlicesSpec(
            dense, value.dtype.base_dtype, value.indices.dtype, dense_type, shape[:1]
        )
    if isinstance(spec, specs.SparseTensorSpec):
        if shape.rank not in (None, 1):
            raise ValueError("Expected a shape with 1 dimension")
        rank = None if shape.rank is None else shape.as_list()[0]
        return specs.SparseTensorSpec(None if rank is None else [None] * rank, spec.dtype)
    raise TypeError(
        f"To describe or constrain a {type(value).__name__}, use a {type(spec).__name__} "
        "instead of a TensorShape."
    )


class _Leaf:
    def __init__(self, value: Any) -> None:
        self.value = value


def _as_leaves(invariants: Any) -> Any:
    if invariants is None or isinstance(invariants, (shapes.TensorShape, specs.TypeSpec)):
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
            f"The loop variable {merge_out.name} enters the loop with type "
            f"{merge_out._dtype.name}, but has type "
            f"{next_value._dtype.name} after one iteration."
        )
    if not _is_generalisation(merge_out._shape, next_value._shape):
        start = merge_out._op._inputs[0]._op._inputs[0]
        raise ValueError(
            f"Input tensor '{start.name}' enters the loop with shape {start.shape}, but "
            f"has shape {next_value.shape} "
            "after one iteration. To allow the shape to vary across iterations, use the "
            "`shape_invariants` argument of "
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
