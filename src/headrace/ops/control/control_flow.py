"""``tf.cond``; while_loops.py has ``tf.while_loop``, case_branches.py ``tf.case``.

They make the same Switch / Merge / Enter / Exit / NextIteration operations as TF 1.15, in the
user's own graph, so that names inside branches and bodies exist and GraphDefs are TensorFlow's.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from headrace.core import dtypes, nest
from headrace.core.build import apply_any, apply_many, apply_op
from headrace.core.contexts import Context
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import identity
from headrace.ops.control.context_messages import note_contexts
from headrace.ops.control.control_contexts import CondContext, in_context
from headrace.ops.control.control_flow_eager import eager_cond
from headrace.ops.control.control_flow_ops import MERGE, SWITCH
from headrace.ops.control.dependencies import with_dependencies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.ops.control.tensor_array import TensorArray

__all__ = ["cond", "merge", "note_flat", "switch"]


def switch(
    data: TensorLike, pred: TensorLike, dtype: DType | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(output_false, output_true): ``data`` on the side that ``pred`` names, nothing on the other.

    What lies between a Switch and a Merge gets its place when a session runs it
    (program/flow_structure.py).
    """
    if nest.is_composite(data):
        parts = nest.flatten(data, expand_composites=True)
        sides = zip(*[switch(part, pred) for part in parts])
        packed = [nest.pack_sequence_as(data, s, expand_composites=True) for s in sides]
        return packed[0], packed[1]
    data = convert_to_tensor(data, dtype)
    made: tuple[Tensor, Tensor] = apply_any(SWITCH, data, pred, name=name or "Switch")
    note_flat(made[0])
    return made


Merged = collections.namedtuple("Merged", ["output", "value_index"])


def merge(inputs: Sequence[TensorLike], name: str | None = None) -> Any:
    """The one of the inputs that is there, and its index."""
    if any(i is None for i in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    if all(nest.is_composite(i) for i in inputs):
        parts = zip(*[nest.flatten(i, expand_composites=True) for i in inputs])
        joined = [merge(list(p), name if at == 0 else None) for at, p in enumerate(parts)]
        values = [m.output for m in joined]
        whole = nest.pack_sequence_as(inputs[0], values, expand_composites=True)
        return Merged(whole, joined[0].value_index)
    merged = apply_many(MERGE, [convert_to_tensor(i) for i in inputs], name=name or "Merge")
    note_flat(merged[0])
    return Merged(*merged)


def note_flat(tensor: Tensor) -> None:
    """Remember a Switch or Merge that no ``tf.cond`` made: a session finds its place."""
    graph = tensor._op.graph
    if not graph._is_eager and graph._context is None:
        graph._flat_flow.append(tensor._op)


# cond -------------------------------------------------------------------------------------------


def _predicate(pred: object) -> Tensor:
    """The condition of ``tf.cond``; what becomes a Switch is told in a Switch's words."""
    tensor = convert_to_tensor(pred)
    if tensor._dtype._base is not dtypes.bool:
        raise TypeError(
            f"Input 'pred' of 'Switch' Op has type {tensor._dtype._base.name} that does not match "
            "expected type of bool."
        )
    return tensor


@overload
def cond(
    pred: TensorLike,
    true_fn: Callable[[], Tensor],
    false_fn: Callable[[], Tensor],
    strict: bool = False,
    name: str | None = None,
) -> Tensor: ...
@overload
def cond(
    pred: object,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any: ...
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """``true_fn()`` if the scalar ``pred`` is true, else ``false_fn()``; only that one is computed.

    Both functions return the same structure of tensors, with equal types. ``strict`` keeps a list
    of one tensor a list. ``fn1`` and ``fn2`` are old names. Operations made outside of the
    functions run in any case.

        y = tf.cond(x > 0, lambda: x, lambda: -x)
    """
    true_fn = _branch_function("true_fn", true_fn, "fn1", fn1)
    false_fn = _branch_function("false_fn", false_fn, "fn2", fn2)
    if get_default_graph()._is_eager:
        return eager_cond(pred, true_fn, false_fn, strict)
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with name_scope(name, "cond", [pred]):
        graph = get_default_graph()
        pred = _predicate(pred)
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
        note_contexts(graph, branch_true, branch_false)
        _close_branches(graph, (branch_true, branch_false), (if_true._op, pred._op), merged)
        if given_true is None:
            return None
        return nest.pack_sequence_as(given_true, merged, expand_composites=True)


def _branch_function(
    name: str,
    function: Callable[[], Any] | None,
    old_name: str,
    old: Callable[[], Any] | None,
) -> Callable[[], Any]:
    if old is not None:
        if function is not None:
            raise TypeError(f"cond(): {name} and {old_name} may not be set simultaneously.")
        function = old
    elif function is None:
        raise TypeError(f"cond(): {name} argument required")
    if not callable(function):
        raise TypeError(f"{name} must be callable.")
    return function


def _unpacked(given: object) -> Any:
    """A list or tuple of one value counts as that value."""
    if isinstance(given, (list, tuple)) and len(given) == 1:
        return given[0]
    return given


def _flat(given: object) -> list[Any]:
    """What a branch returned, flat.

    In a function a branch may return nothing: its effects happen all the same.
    """
    return [] if given is None else nest.flatten(given, expand_composites=True)


def _indices_at(given: object) -> list[int]:
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
        a.sibling = b


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


def _branch_result(value: object, context: CondContext, waits: bool = False) -> Tensor:
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


def _check_structures(given_t: object, given_f: object, in_function: bool) -> None:
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


def _merge_pair(f: Tensor, t: Tensor, pred: Tensor, given: object) -> Tensor | TensorArray:
    merged = merge_on(f, t, pred)
    rebuild = getattr(given, "_from_tensor_for_control_flow", None)
    return merged if rebuild is None else rebuild(merged)


def merge_on(if_false: Tensor, if_true: Tensor, pred: Tensor) -> Tensor:
    """A Merge that is known to choose by ``pred``."""
    out: Tensor = apply_many(MERGE, [if_false, if_true], name="Merge")[0]
    out._op._cond_pred = pred
    return out


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
