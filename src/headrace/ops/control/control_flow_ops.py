"""TF-1's control-flow primitives as operations.

They are never computed as such: a Program turns them into branches and loops (program/snapshot.py),
and gradients pass through them by the rules in autodiff. The stacks that backward loops read
forward values from are real operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import shapes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shape_fns import no_outputs, scalar, unchanged, unknown
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Operation, Tensor
    from headrace.ops.control.tensor_array_ops import ArrayState

__all__ = [
    "CONTROL_TRIGGER",
    "ENTER",
    "EXIT",
    "LOOP_COND",
    "MERGE",
    "NEXT_ITERATION",
    "STACK",
    "STACK_POP",
    "STACK_PUSH",
    "SWITCH",
]


def _structural(xp: ArrayNamespace, *inputs: object, node: KernelNode) -> Array:
    raise errors.InternalError(None, node.op, f"{node.op_type} stands outside of a branch or loop")


def _by_engine(op: Operation, *grads: object) -> Tensor:
    raise AssertionError(f"the gradient of {op.type} is made by headrace.autodiff")


def _merge_shape(c: Inference) -> list[Shape]:
    out = c.shape(0)
    for shape in c.shapes()[1:]:
        out = shapes.generalize(out, shape)
    return [out, ()]


def _two_outputs(c: Inference) -> list[Shape]:
    return [c.shape(0), c.shape(0)]


_COMMON: dict[str, Any] = {"kernel": _structural, "grad": _by_engine, "stateful": True}

SWITCH = define(
    "Switch",
    "data: T, pred: bool -> output_false: T, output_true: T",
    shape=_two_outputs,
    **_COMMON,
    role="switch",
)
REF_SWITCH = define(
    "RefSwitch",
    "data: &T, pred: bool -> output_false: &T, output_true: &T",
    shape=_two_outputs,
    **_COMMON,
    role="switch",
)
MERGE = define(
    "Merge",
    "inputs: N*T -> output: T, value_index: int32",
    shape=_merge_shape,
    **_COMMON,
    role="merge",
)
REF_MERGE = define(
    "RefMerge",
    "inputs: &N*T -> output: &T, value_index: int32",
    shape=_merge_shape,
    **_COMMON,
    role="merge",
)
_ENTER = "frame_name: str, is_constant: bool=False, parallel_iterations: int=10"
ENTER = define("Enter", f"data: T -> output: T; {_ENTER}", shape=unchanged, **_COMMON, role="enter")
REF_ENTER = define(
    "RefEnter", f"data: &T -> output: &T; {_ENTER}", shape=unchanged, **_COMMON, role="enter"
)
EXIT = define("Exit", "data: T -> output: T", shape=unchanged, **_COMMON, role="exit")
REF_EXIT = define("RefExit", "data: &T -> output: &T", shape=unchanged, **_COMMON, role="exit")
NEXT_ITERATION = define(
    "NextIteration", "data: T -> output: T", shape=unchanged, **_COMMON, role="next"
)
REF_NEXT_ITERATION = define(
    "RefNextIteration", "data: &T -> output: &T", shape=unchanged, **_COMMON, role="next"
)
LOOP_COND = define(
    "LoopCond", "input: bool -> output: bool", shape=scalar, **_COMMON, role="loop condition"
)
REF_IDENTITY = define(
    "RefIdentity", "input: &T -> output: &T", shape=unchanged, **_COMMON, role="identity"
)
CONTROL_TRIGGER = define(
    "ControlTrigger",
    "->",
    shape=no_outputs,
    kernel=lambda xp: None,
    grad=NOT_DIFFERENTIABLE,
    role="nothing",
)


# stacks -----------------------------------------------------------------------------------------


def _stack(xp: ArrayNamespace, max_size: Array) -> list[Any]:
    return []


def _push(xp: ArrayNamespace, handle: list[Any], elem: Array | ArrayState) -> Array | ArrayState:
    handle.append(elem)
    return elem


def _pop(xp: ArrayNamespace, handle: list[Any]) -> Any:
    if not handle:
        raise errors.InvalidArgumentError(None, None, "Stack is empty when calling Pop()")
    return handle.pop()


def _close(xp: ArrayNamespace, handle: list[Any]) -> None:
    handle.clear()


STACK = define(
    "StackV2",
    "max_size: int32 -> handle: resource; elem_type: type, stack_name: str=''",
    shape=lambda c: [(2,)],  # what TensorFlow says of a handle
    kernel=_stack,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
STACK_PUSH = define(
    "StackPushV2",
    "handle: resource, elem: T -> output: T; swap_memory: bool=False",
    shape=lambda c: [c.shape(1)],
    kernel=_push,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    stored="write",
)
STACK_POP = define(
    "StackPopV2",
    "handle: resource -> elem: elem_type; elem_type: type",
    shape=unknown,
    kernel=_pop,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    stored="read",
)
STACK_CLOSE = define(
    "StackCloseV2",
    "handle: resource ->",
    shape=no_outputs,
    kernel=_close,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    stored="read",
)
