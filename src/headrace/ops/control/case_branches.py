"""``tf.case`` and ``tf.switch_case``: one of several branches, built from ``tf.cond``."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.build import apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.control.control_flow import cond

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation

__all__ = ["case", "switch_case"]


# case -------------------------------------------------------------------------------------------


def case(
    pred_fn_pairs: object,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate is true, else of ``default``.

    ``pred_fn_pairs`` are pairs (scalar bool tensor, function), or a dict. With ``exclusive`` it is
    an error if several predicates are true. Without ``default`` one has to be true.

        y = tf.case([(x < 0, lambda: -1.0), (x > 0, lambda: 1.0)], default=lambda: 0.0)
    """
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
        if checks:
            count_more(get_default_graph(), 11)  # TF shows the predicates in the assertion
        if default is None:
            count_more(get_default_graph(), 32)
        with get_default_graph().control_dependencies(checks):
            return function()


def _tested(pred_fn_pairs: object, exclusive: bool) -> list[tuple[Any, Callable[[], Any]]]:
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
    pred: TensorLike, fn: Callable[[], Any], otherwise: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(pred, fn, otherwise, strict=strict)


def _asserted(pred: TensorLike, fn: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        message = "Input error: None of conditions evaluated as True (tf.case has no default)"
        check = apply_operation(lookup("Assert"), pred, [constant(message)], summarize=1)
        with get_default_graph().control_dependencies([check]):
            return fn()

    return run


def _at_most_one(preds: list[Any]) -> Operation:
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
    branch_index: Any,
    branch_fns: object,
    default: Callable[..., Any] | None = None,
    name: str = "switch_case",
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
        return _only_branch(branch_index, functions[0])
    return case(tests, default=functions[-1], name=name, strict=True)


def _only_branch(branch_index: Tensor, function: Callable[[], Any]) -> Any:
    """The one function there is; the run tells if its number is no scalar."""
    if branch_index._shape == ():
        return function()
    test = apply_op("Equal", apply_op("Rank", branch_index), constant(0))
    check = apply_operation(lookup("Assert"), test, ["branch_index must be a scalar"])
    with control_dependencies([check]):
        return nest.map_structure(lambda x: apply_op("Identity", x), function())


def _numbered(
    branch_index: TensorLike, branch_fns: object, default: Callable[..., Any] | None
) -> list[Callable[[], Any]]:
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
