"""Products as primitives of the kernel library, with what follows them: bias, activation, sum."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels import packed_weights as packed
from headrace.kernels.numpy import activation_kernels as activations
from headrace.kernels.numpy.activation_kernels import name_inside
from headrace.lower.bound_values import FIXED, KNOWN, MOVING, STEADY
from headrace.lower.fusion import Fused
from headrace.lower.native_groups import native_expected
from headrace.lower.native_kernels import Warming
from headrace.lower.select_bound import FLOAT32, TAKEN, Binder, is_plain
from headrace.lower.storage_arena import NotBound
from headrace.ops.internal.packed_ops import PACKED_MATMUL, packed_forms
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.onednn.primitive import Call

__all__ = ["bind_product", "take_sum"]

#: Weights up to this many elements need no packing, nor do they for so many rows.
PLAIN, ROWS = 1 << 14, 16
#: Bytes of weights that one row is multiplied with by compiled code: more come from memory, which
#: limits every way.
MAX_ROW = 1 << 25
#: Multiply-adds of such a product that count as one element when it warms up.
ROW_WORK = 64


def bind_product(s: Binder, node: Node) -> str:
    """MatMul with what follows it; weights may be packed."""
    attrs = node.attrs
    is_packed = node.opdef is PACKED_MATMUL
    x, w = s.array(node.inputs[0]), s.array(node.inputs[1])
    if (
        s.kind(node.inputs[0]) not in (FIXED, MOVING)
        or attrs.get("weights", "float32") != "float32"
    ):
        return "an input is known before the run, or weights are of another type"
    if is_packed and (s.kind(node.inputs[1]) not in (KNOWN, STEADY) or attrs["transpose_a"]):
        return "its weights change in every run, or the left side is transposed"
    packs = is_packed and not packed_forms(s.array(node.inputs[2])).wait
    if not is_plain(x) or w.dtype != FLOAT32 or (not packs and not is_plain(w)):
        return "an input is not float32 and contiguous"
    x, w = x.T if attrs["transpose_a"] else x, w.T if attrs["transpose_b"] else w
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0] or not w.size:
        return "its sides do not fit"
    fused = attrs.get("fused_ops", ())
    if fused and fused[0] != "BiasAdd":
        return "its activation comes without a bias"
    bias = node.inputs[3 if is_packed else 2] if fused else None
    if bias is not None and not (is_plain(s.array(bias)) and s.array(bias).shape == (w.shape[1],)):
        return "its bias is not one contiguous row"
    if not packs and w.size > PLAIN and x.shape[0] < ROWS:
        return "its weights are large and unpacked, and there are few rows"
    return _bind_product(s, node, x, w, bias, fused[1] if len(fused) > 1 else None, packs)


def _bind_product(
    s: Binder,
    node: Node,
    x: Any,
    w: Any,
    bias: int | None,
    activation: str | None,
    packs: bool,
) -> str:
    inside = None if activation is None else name_inside(activation)
    if activation == "Relu" and _feeds_products(s, node.outputs[0]):
        inside = "hidden_relu"  # to a product, -0 is as good as 0; of NaN the last product tells
    weights = _Weights(s, node, x.shape[0]) if packs else None
    if weights is not None and weights.packed is None:
        return "its weights cannot be packed"
    value, shape = node.outputs[0], (x.shape[0], w.shape[1])
    added = None if activation is not None else _added(s, value, shape)
    packed_form = None if weights is None else weights.packed
    call = s.library.product(
        x, w, np.empty(shape, np.float32), bias is not None, inside, added is not None, packed_form
    )
    if call is None:
        return "the library has no product for it"
    s.work += x.size * shape[1]
    if added is None:
        out, name = s.target(value, shape)
    else:
        out, name = s.target(value, shape, added[0])
        s.sums[added[0]] = value
    places: list[int | None] = [node.inputs[0], None if weights else node.inputs[1], None]
    if added is not None:
        places.append(added[1])
    if bias is not None:
        places.append(bias)
    calls = [call]
    if inside is not None and s.accelerator.is_slow_inside(inside, out.size) and native_expected():
        plain = s.library.product(x, w, out, bias is not None, None, False, packed_form)
        calls += [plain] if plain is not None else []
    for each in calls:
        if weights is not None:
            s.renew(partial(weights.aim, each))
        s.aim_all(each, places, (2, out, name))
    guard = ""
    if len(calls) == 1:
        compiled = _row_by_compiled_code(s, node, w, bias, inside, activation, name)
        if compiled and activation is not None:
            s.emit(f"h = {compiled}")
            compiled, guard = "h", "if not h: "
        s.execute(call, compiled)
    else:
        assert inside is not None
        _activate_behind(s, calls, inside, out, name)
    if activation is not None and inside is None:
        _activate(s, activation, out, name, guard)
    made_of = frozenset(u for v in node.inputs if v in s.doubtful for u in (v, *s.doubtful[v]))
    if inside == "hidden_relu":
        s.doubtful[value] = made_of
    elif made_of or inside == "gelu_erf":
        s.leave_nan(name, made_of)
    return TAKEN


def _feeds_products(s: Binder, value: int) -> bool:
    """Whether products are all that reads a value (and the gradient of the relu that made it)."""
    for user in s.uses.get(value, []):
        if not isinstance(user, Node):
            return False
        name = user.opdef.name
        gradient = name == "ReluGrad" and user.inputs[0] != value
        product = user.opdef.role == "matmul" or user.opdef is PACKED_MATMUL
        if not gradient and (not product or value in user.inputs[2:]):
            return False
    return True


class _Weights:
    """The packed weights of a layer, packed again when they have changed."""

    def __init__(self, s: Binder, node: Node, rows: int) -> None:
        self.s, self.node, self.rows = s, node, rows
        self.packed = self._packed()
        s.packs[node.inputs[1]] += 1

    def _packed(self) -> Any:
        node, s = self.node, self.s
        w = s.array(node.inputs[1])
        turned = w.T if node.attrs["transpose_b"] else w
        forms = packed_forms(s.array(node.inputs[2]))
        pack, rows = s.accelerator.pack, self.rows
        make = lambda: pack(np.ascontiguousarray(turned), rows, bias=True)
        pixels = s.accelerator.as_pixels(rows, turned.shape)
        return forms.get(packed.product_key(turned, pixels), make, at_once=True)

    def aim(self, call: Call) -> None:
        now = self._packed()
        if now is None or not self.s.library.same_layout(self.packed, now):
            raise NotBound("weights are packed in another layout")
        self.packed = now
        call.aim(1, now.data)


class _CompiledRow:
    """The product of one row by compiled code; a call says whether it has done the work."""

    __slots__ = ("_activation", "_made", "_settled", "_turned", "is_hot")

    def __init__(self, weights: Array, turned: bool, activation: str, settled: bool) -> None:
        self._turned, self._activation, self._settled = turned, activation, settled
        self.is_hot = Warming(weights.size // ROW_WORK)
        self._made: Any = None

    def forget(self) -> None:
        """The weights have changed."""
        self._made = None

    def __call__(self, x: Array, weights: Array, bias: Array | None, out: Array) -> bool:
        if self._made is None:
            if not self.is_hot():
                return False
            from headrace.kernels.native.row_products import RowProduct

            made = RowProduct(weights.T if self._turned else weights, bias, self._activation)
            self._made = made.settle(x, out) if self._settled else made
        self._made(x, out)
        return True


def _row_by_compiled_code(
    s: Binder,
    node: Node,
    w: Array,
    bias: int | None,
    inside: str | None,
    activation: str | None,
    name: str,
) -> str:
    """The condition of a product of one row that is compiled once it is hot; empty for others."""
    kind = "relu" if activation == "Relu" else inside or ""
    if s.array(node.inputs[0]).shape[0] != 1 or w.nbytes > MAX_ROW or not native_expected():
        return ""
    if (activation and not kind) or kind not in ("", "relu", "gelu", "tanh", "sigmoid"):
        return ""
    if s.kind(node.inputs[1]) not in (KNOWN, STEADY) or node.outputs[0] in s.sums.values():
        return ""
    settled = s.kind(node.inputs[0]) == FIXED and name[:1] != "r"
    row = _CompiledRow(w, node.attrs["transpose_b"], kind, settled)
    s.warming = row.is_hot
    s.renew(row.forget)
    names = [s.name(i) for i in node.inputs[:2]]
    names += ["None" if bias is None else s.name(bias), name]
    return f"{s.new_param(row)}({', '.join(names)})"


def _activate_behind(s: Binder, calls: list[Any], inside: str, out: Array, name: str) -> None:
    """The activation in the product's own pass or, once it is hot, by compiled code behind it."""

    def apply(array: Array) -> None:
        from headrace.kernels.native import activation_loops

        activation_loops.apply(array, inside)

    s.warming = Warming(out.size)
    s.emit(f"h = {s.new_param(s.warming)}()")
    s.execute(calls[0], "h")
    s.execute(calls[1], "(not h)")
    s.emit(f"if h: {s.new_param(apply)}({name})")


def _activate(s: Binder, activation: str, out: Array, name: str, guard: str) -> None:
    if activation == "Relu" and out.size < activations.LARGE_RELU:
        zero = s.param("zero", np.float32(0))
        s.emit(f"{guard}{s.param('maximum', np.maximum)}({zero}, {name}, out={name})")
    else:
        function = partial(activations.in_place, activation)
        s.emit(f"{guard}{s.new_param(function)}({name})")


def _added(s: Binder, value: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """A sum with this product that nothing else stands between.

    The sum's value and its other summand.
    """
    at = value
    while True:
        users = s.uses.get(at, [])
        if len(users) != 1 or users[0] is None:
            return None
        step = users[0]
        if isinstance(step, Node) and step.opdef.role == "reshape" and step.inputs[0] == at:
            at = step.outputs[0]
            continue
        break
    if not isinstance(step, (Node, Fused)):
        return None
    nodes = step.nodes if isinstance(step, Fused) else (step,)
    inputs = step.inputs
    if len(nodes) != 1 or nodes[0].opdef.role != "+" or len(inputs) != 2:
        return None
    other = inputs[1] if inputs[0] == at else inputs[0]
    values = s.program.values
    if other == at or values[other].shape is None or values[other].shape != values[at].shape:
        return None
    if s.kinds.get(other) != FIXED:  # it comes later
        return None
    array = s.array(other)
    if not is_plain(array) or array.size != shape[0] * shape[1]:
        return None
    output = step.output if isinstance(step, Fused) else step.outputs[0]
    whole = array.reshape(shape)
    s.place(-1 - other, whole)  # as the product sees it
    return output, -1 - other


def take_sum(s: Binder, output: int) -> bool:
    """A sum that a product has made already."""
    product = s.sums.get(output)
    if product is None:
        return False
    summands = [s.array(i).shape for i in _inputs_of(s, output)]
    if summands[0] != summands[1]:
        raise NotBound("a sum that broadcasts")
    s.place(output, s.array(product).reshape(summands[0]))
    return True


def _inputs_of(s: Binder, output: int) -> tuple[int, ...]:
    for step in s.plan.block:
        found = (step.output,) if isinstance(step, Fused) else step.outputs  # type: ignore[union-attr]
        if output in found:
            return step.inputs  # type: ignore[union-attr]
    raise NotBound("a sum without summands")
