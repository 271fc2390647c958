"""Contractions of tensors by named axes: ``einsum`` and ``tensordot``.

Operands are joined from left to right. Axes that two operands share and that nobody needs later are
summed by one matrix product; shared axes that are needed later become its batch axes. Transposes
and reshapes are made only where the axes do not already lie as the product wants them.

    tf.einsum("bhqd,bhkd->bhqk", q, k)  # one BatchMatMulV2 with adj_y
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert, shapes
from headrace.core.build import apply_list, apply_many, apply_op, named_result
from headrace.core.dtypes import int32
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define, lookup
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, ops_counted
from headrace.core.shapes import Shape, ranked
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["einsum", "tensordot"]

Labels = list[Any]


class _Part:
    """A tensor whose axes have labels."""

    def __init__(self, tensor: Tensor, labels: Iterable[Any]) -> None:
        self.tensor = tensor
        self.labels: Labels = list(labels)
        self._shape: Any = None

    def size(self, label: Any) -> Any:
        """The length of an axis: an int where it is known, else a scalar tensor."""
        i = self.labels.index(label)
        known = ranked(self.tensor._shape)[i]
        if known is not None:
            return known
        if self._shape is None:
            self._shape = apply_op("Shape", self.tensor)
        return self._shape[i]

    def ordered(self, labels: Labels) -> _Part:
        if labels == self.labels:
            return self
        return _Part(
            apply_op("Transpose", self.tensor, [self.labels.index(a) for a in labels]), labels
        )

    def summed(self, keep: Collection[Any]) -> _Part:
        """Without the axes that are not in ``keep``."""
        gone = [i for i, a in enumerate(self.labels) if a not in keep]
        if not gone:
            return self
        return _Part(apply_op("Sum", self.tensor, gone), [a for a in self.labels if a in keep])

    def diagonal(self) -> _Part:
        """Repeated labels taken along the diagonal."""
        part = self
        for label in self.labels:
            if part.labels.count(label) > 1:
                at = [i for i, a in enumerate(part.labels) if a == label][:2]
                rest = [i for i in range(len(part.labels)) if i not in at]
                moved = apply_op("Transpose", part.tensor, rest + at)
                labels = [part.labels[i] for i in rest] + [label]
                part = _Part(apply_op("MatrixDiagPart", moved), labels).diagonal()
        return part


def _product(sizes: Iterable[Any]) -> Any:
    """An int where every factor is known, else a scalar tensor."""
    known, unknown = 1, None
    for s in sizes:
        if isinstance(s, int):
            known *= s
        else:
            unknown = s if unknown is None else unknown * s
    if unknown is None:
        return known
    return unknown if known == 1 else unknown * known


def _reshape(tensor: Tensor, sizes: list[Any]) -> Tensor:
    unknown = [i for i, s in enumerate(sizes) if not isinstance(s, int)]
    if len(unknown) == 1 and 0 not in [s for s in sizes if isinstance(s, int)]:
        sizes = [-1 if i == unknown[0] else s for i, s in enumerate(sizes)]
    elif unknown:
        return apply_op("Reshape", tensor, apply_op("Pack", sizes))
    return apply_op("Reshape", tensor, sizes)


def _join(a: _Part, b: _Part, wanted: Collection[Any]) -> _Part:
    """Two operands made one.

    Axes that are in neither ``wanted`` nor both operands are summed first.
    """
    a, b = a.summed({*wanted, *b.labels}), b.summed({*wanted, *a.labels})
    shared = [x for x in a.labels if x in b.labels]
    batch = [x for x in shared if x in wanted]
    contracted = [x for x in shared if x not in wanted]
    if not contracted:
        return _multiplied(a, b, batch)
    free_a = [x for x in a.labels if x not in shared]
    free_b = [x for x in b.labels if x not in shared]
    if [x for x in b.labels if x in contracted] != contracted and _lies_ready(
        b, batch, contracted, free_b
    ):
        contracted = [x for x in b.labels if x in contracted]
    left, flip_a = _as_matrices(a, batch, free_a, contracted, False)
    right, flip_b = _as_matrices(b, batch, free_b, contracted, True)
    if not batch:
        out = apply_op("MatMul", left, right, transpose_a=flip_a, transpose_b=flip_b)
    else:
        out = apply_op("BatchMatMulV2", left, right, adj_x=flip_a, adj_y=flip_b)
    labels = batch + free_a + free_b
    if len(free_a) != 1 or len(free_b) != 1:
        part = _Part(out, [*batch, None, None])
        sizes = (
            [part.size(x) for x in batch]
            + [a.size(x) for x in free_a]
            + [b.size(x) for x in free_b]
        )
        out = _reshape(out, sizes)
    return _Part(out, labels)


def _lies_ready(part: _Part, batch: Labels, contracted: Labels, free: Labels) -> bool:
    middle = [x for x in part.labels if x in contracted]
    return part.labels in (batch + middle + free, batch + free + middle)


def _as_matrices(
    part: _Part, batch: Labels, free: Labels, contracted: Labels, right: bool
) -> tuple[Any, bool]:
    """The operand as (batches of) matrices, and whether the product must transpose them."""
    straight = batch + (contracted + free if right else free + contracted)
    turned = batch + (free + contracted if right else contracted + free)
    # BatchMatMul transposes with conjugation, which is the same for real numbers only
    flip = part.labels == turned != straight and not (batch and part.tensor._dtype._kind == "c")
    part = part if flip else part.ordered(straight)
    if len(free) == 1 == len(contracted):
        return part.tensor, flip
    rows = _product(part.size(x) for x in free)
    inner = _product(part.size(x) for x in contracted)
    last = [inner, rows] if flip != right else [rows, inner]
    return _reshape(part.tensor, [part.size(x) for x in batch] + last), flip


def _multiplied(a: _Part, b: _Part, batch: Labels) -> _Part:
    """No axis to sum: an outer or element-wise product."""
    free_a = [x for x in a.labels if x not in batch]
    free_b = [x for x in b.labels if x not in batch]
    x, y = a.ordered(batch + free_a).tensor, b.ordered(batch + free_b).tensor
    if free_b:
        for _ in free_b:
            x = apply_op("ExpandDims", x, -1)
        for _ in free_a:
            y = apply_op("ExpandDims", y, len(batch))
    elif free_a:
        for _ in free_a:
            y = apply_op("ExpandDims", y, -1)
    return _Part(apply_op("Mul", x, y), batch + free_a + free_b)


# einsum -----------------------------------------------------------------------------------------


def einsum(equation: str, *inputs: object, **kwargs: Any) -> Tensor:
    """Einstein's summation.

    ``einsum("ij,jk->ik", a, b)``. Ellipses broadcast; a repeated label is a diagonal.
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"invalid keyword arguments for this function: {', '.join(sorted(kwargs))}")
    for value in inputs:
        convert.require_tensor(value, "tf.einsum")
    with name_scope(name, "einsum", [*inputs]):
        tensors = [convert.convert(x) for x in inputs]
        terms, output = _parse(equation.replace(" ", ""), [_rank(t) for t in tensors])
        _check_sizes(equation, tensors, terms)
        parts = [_Part(t, labels).diagonal() for t, labels in zip(tensors, terms)]
        joined = parts[0]
        for i, part in enumerate(parts[1:], 2):
            joined = _join(
                joined, part, {*output, *(x for later in parts[i:] for x in later.labels)}
            )
        return joined.summed(output).ordered(output).tensor


def einsum_v1(equation: str, *inputs: object, **kwargs: object) -> Tensor:
    """``einsum`` as TensorFlow 1.15 has it: a label occurs once in an input.

    The exception is a single input that reads the same backwards (``"ii"``, ``"ijji"``), without an
    output: that is ``tf.trace`` of it.
    """
    text = equation.replace(" ", "")
    terms = text.partition("->")[0].split(",")
    repeated = [t for t in terms if any(t.count(x) > 1 for x in t if x.isalpha())]
    if repeated and len(terms) == len(inputs) == 1 and "->" not in text and text == text[::-1]:
        return _trace(convert.convert(inputs[0]))
    if repeated:
        raise ValueError(f"Subscript not supported: an axis appears more than once: {repeated[0]}")
    return einsum(equation, *inputs, **kwargs)


def _trace(x: Tensor) -> Tensor:
    """The sum of the diagonals of the last two dimensions."""
    with name_scope(None, "Trace", [x]) as scope:
        return apply_op("Sum", apply_op("MatrixDiagPart", x), [-1], keep_dims=False, name=scope)


def _rank(tensor: Tensor) -> int:
    if tensor._shape is None:
        raise ValueError(
            f"einsum needs inputs of known rank; {tensor.name} has none. Use set_shape."
        )
    return len(tensor._shape)


def _parse(equation: str, ranks: list[int]) -> tuple[list[Labels], Labels]:
    """Labels of the axes of each input and of the output.

    Axes of an ellipsis are numbered from the right.
    """
    match = re.fullmatch(r"([A-Za-z.,]*)(?:->([A-Za-z.]*))?", equation)
    if match is None:
        raise ValueError(f"Indices have incorrect format: {equation}")
    texts = match.group(1).split(",")
    if len(texts) != len(ranks):
        raise ValueError(
            f"Incorrect number of arguments: {len(texts)} were expected by the equation, "
            f"{len(ranks)} were given"
        )
    terms = [_expanded(text, rank, equation) for text, rank in zip(texts, ranks)]
    dots = [
        x
        for x in max(terms, key=lambda t: sum(isinstance(x, int) for x in t))
        if isinstance(x, int)
    ]
    if match.group(2) is None:
        flat = [x for t in terms for x in t if isinstance(x, str)]
        return terms, dots + sorted(x for x in set(flat) if flat.count(x) == 1)
    output: Labels = []
    for piece in re.findall(r"\.\.\.|.", match.group(2)):
        output += dots if piece == "..." else [piece]
    unknown = [x for x in output if not any(x in t for t in terms)]
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"Output labels must be input labels, each once: {equation}")
    return terms, output


def _expanded(text: str, rank: int, equation: str) -> Labels:
    if "." not in text:
        if len(text) != rank:
            raise ValueError(
                f"Unexpected number of dimensions: '{text}' in {equation} was given {rank}"
            )
        return list(text)
    if text.count("...") != 1 or text.count(".") != 3:
        raise ValueError(f"Indices have incorrect format: {equation}")
    before, after = text.split("...")
    hidden = rank - len(before) - len(after)
    if hidden < 0:
        raise ValueError(
            f"Unexpected number of dimensions: '{text}' in {equation} was given {rank}"
        )
    return [*before, *range(-hidden, 0), *after]


def _check_sizes(equation: str, tensors: list[Tensor], terms: list[Labels]) -> None:
    known: dict[Any, int] = {}
    for tensor, labels in zip(tensors, terms):
        for label, size in zip(labels, tensor._shape or ()):
            if size is None or isinstance(label, int):
                continue
            if known.setdefault(label, size) != size:
                raise ValueError(
                    f"Dimensions must be equal, but are {known[label]} and {size} for "
                    f"label '{label}' of {equation}"
                )


# the op -----------------------------------------------------------------------------------------


def _einsum_kernel(xp: ArrayNamespace, *inputs: Array, equation: str) -> Array:
    dtype = inputs[0].dtype
    if dtype.itemsize == 2:  # half types
        return xp.einsum(equation, *(x.astype(np.float32) for x in inputs)).astype(dtype)
    return xp.einsum(equation, *inputs, optimize=len(inputs) > 1)


def _check_ranks(equation: str, given: list[Shape]) -> None:
    """Of the inputs whose rank is known."""
    texts = equation.partition("->")[0].split(",")
    for i, (text, shape) in enumerate(zip(texts, given)):
        if shape is not None and "." not in text and len(text) != len(shape):
            raise ValueError(
                f"Shape must be rank {len(text)} but is rank {len(shape)}\n\t for {i}th input "
                f"and equation: {equation}"
            )


def _einsum_shape(c: Inference) -> list[Shape]:
    shapes_ = c.shapes()
    if any(s is None for s in shapes_):
        equation = c.attr("equation").replace(" ", "")
        _check_ranks(equation, shapes_)
        if "." in equation:
            return [None]
        texts = equation.partition("->")[0].split(",")
        shapes_ = [(None,) * len(t) if s is None else s for t, s in zip(texts, shapes_)]
    terms, output = _parse(c.attr("equation").replace(" ", ""), [len(s or ()) for s in shapes_])
    sizes: dict[Any, Any] = {}
    for labels, shape in zip(terms, shapes_):
        for label, size in zip(labels, shape or ()):
            known = sizes.setdefault(label, size)
            if isinstance(label, str) and None not in (known, size) and known != size:
                raise ValueError(f"Dimensions must be equal, but are {known} and {size}")
            if known is None or (known == 1 and size != 1):
                sizes[label] = size
    return [tuple(sizes[x] for x in output)]


def _einsum_grad(op: Operation, g: Tensor) -> list[Any]:
    """Each input: the output's gradient contracted with the other inputs."""
    terms, output = _parse(op._attrs["equation"].replace(" ", ""), [_rank(t) for t in op._inputs])
    return [_einsum_grad_of(i, list(op._inputs), terms, output, g) for i in range(len(terms))]


def _einsum_grad_of(
    i: int, inputs: list[Any], terms: list[Labels], output: Labels, g: Tensor
) -> Tensor:
    x, labels = inputs[i], terms[i]
    if len(set(labels)) != len(labels):
        raise NotImplementedError(
            "The gradient of an Einsum op with a repeated label is not implemented."
        )
    conjugate = x._dtype._kind == "c"
    others = [
        (apply_op("Conj", t) if conjugate else t, ls)
        for j, (t, ls) in enumerate(zip(inputs, terms))
        if j != i
    ]
    parts = [_Part(g, output)] + [_Part(t, ls).diagonal() for t, ls in others]
    joined = parts[0]
    for at, part in enumerate(parts[1:], 2):
        joined = _join(joined, part, {*labels, *(a for later in parts[at:] for a in later.labels)})
    reached = [a for a in labels if a in joined.labels]
    out: Any = joined.summed(reached).ordered(reached).tensor
    for at, label in enumerate(labels):  # axes of this input that were summed alone
        if label not in reached:
            out = apply_op("ExpandDims", out, at)
    shape: Any = x._shape
    repeated = [
        at
        for at, a in enumerate(labels)
        if isinstance(a, int) and shape[at] == 1 and out._shape[at] != 1
    ]
    if repeated:
        out = apply_op("Sum", out, repeated, keep_dims=True)
    return (
        out if len(reached) == len(labels) else apply_op("BroadcastTo", out, apply_op("Shape", x))
    )


EINSUM = define(
    "Einsum",
    "inputs: N*T -> output: T; equation: str, N: int, T: type",
    shape=_einsum_shape,
    kernel=_einsum_kernel,
    grad=_einsum_grad,
    view=True,
)


# tensordot --------------------------------------------------------------------------------------


def tensordot(a: Tensor, b: object, axes: object, name: str | None = None) -> Tensor:
    """The sum of products over pairs of axes.

    An int n means the last n of ``a`` with the first n of ``b``.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a = convert.convert(a, name="a")
        b = convert.convert(b, name="b")
        if axes is None:
            raise ValueError("None values not supported: axes is a number or a pair of lists.")
        if isinstance(axes, Tensor) and static_value(axes) is not None:
            axes = static_value(axes)
        if a._shape is None or b._shape is None or isinstance(axes, Tensor):
            return _tensordot_of_any_rank(a, b, axes, scope)
        axes_a, axes_b = _paired_axes(axes, len(a._shape), len(b._shape))
        if None in (shapes.known(a._shape), shapes.known(b._shape)) and any(
            None not in (a._shape[i], b._shape[j]) and a._shape[i] != b._shape[j]
            for i, j in zip(axes_a, axes_b)
        ):
            out = _tensordot_of_any_rank(a, b, axes, scope)  # refused when it runs
            free = [a._shape[i] for i in range(len(a._shape)) if i not in axes_a]
            out.set_shape(free + [b._shape[j] for j in range(len(b._shape)) if j not in axes_b])
            return out
        labels_a: Labels = [("a", i) for i in range(len(a._shape))]
        labels_b: Labels = [("b", i) for i in range(len(b._shape))]
        for i, j in zip(axes_a, axes_b):
            labels_b[j] = labels_a[i]
        output = [x for x in labels_a if x not in labels_b] + [
            x for x in labels_b if x not in labels_a
        ]
        before = ops_counted(a._op.graph)
        joined = _join(_Part(a, labels_a), _Part(b, labels_b), output)
        out = joined.ordered(output).tensor
        unknown = sum(shapes.known(t._shape) is None for t in (a, b))
        count_as(
            a._op.graph, before, 9 + 11 * unknown + (5 if unknown else 2)
        )  # TF reshapes to matrices and back
        return named_result(out, scope)


def _tensordot_of_any_rank(a: Tensor, b: Tensor, axes: object, scope: str) -> Tensor:
    """Which axes are summed is found when it runs: both sides become matrices."""
    before = ops_counted(a._op.graph)
    pair = _axes_when_run(axes, a, b)
    rows, outer_a = _matrix_when_run(a, pair[0], summed_last=True)
    columns, outer_b = _matrix_when_run(b, pair[1], summed_last=False)
    product = apply_op("MatMul", rows, columns)
    out = apply_op("Reshape", product, apply_op("ConcatV2", [outer_a, outer_b], 0), name=scope)
    known = [shapes.known(t._shape) is not None for t in (a, b)]
    ranked = [t._shape is not None for t in (a, b)]
    if isinstance(axes, Tensor):
        ops = 64  # what TF makes for the same call
    elif a._shape is None and isinstance(axes, (int, np.integer)):
        ops = 59
    else:
        ops = 52 - 8 * sum(ranked) - 11 * sum(known)
    count_as(a._op.graph, before, ops)
    return out


def _axes_when_run(axes: object, a: Tensor, b: Tensor) -> tuple[Any, Any]:
    if isinstance(axes, Tensor):
        pair = apply_list(lookup("Unpack"), axes, num=2, axis=0)
        return pair[0], pair[1]
    if isinstance(axes, (int, np.integer)) or (isinstance(axes, np.ndarray) and axes.ndim == 0):
        n = int(axes)
        if n < 0:
            raise ValueError(f"'axes' must be at least 0, got {n}.")
        rank = apply_op("Rank", a)
        return apply_op("Range", apply_op("Sub", rank, n), rank, 1), np.arange(n, dtype=np.int32)
    left, right = _lists_of_axes(axes)
    return np.array(left, np.int32), np.array(right, np.int32)


def _matrix_when_run(x: Tensor, axes: Array | Tensor, summed_last: bool) -> tuple[Any, Any]:
    """``x`` with the summed axes as one, last or first, the others as the other one.

    And the others' sizes.
    """
    rank, dims = apply_op("Rank", x), apply_op("Shape", x)
    axes = convert.convert(axes, int32)
    from_front = apply_op("GreaterEqual", axes, 0)
    axes = apply_op("Select", from_front, axes, apply_op("AddV2", axes, rank))
    free = apply_many(lookup("ListDiff"), apply_op("Range", 0, rank, 1), axes)[0]
    outer, summed = apply_op("GatherV2", dims, free, 0), apply_op("GatherV2", dims, axes, 0)
    sides = [(free, outer), (axes, summed)]
    if not summed_last:
        sides.reverse()
    order = apply_op("ConcatV2", [side[0] for side in sides], 0)
    sizes = apply_op("Pack", [apply_op("Prod", side[1], [0]) for side in sides])
    return apply_op("Reshape", apply_op("Transpose", x, order), sizes), outer


def _paired_axes(axes: object, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    found = np.asarray(axes) if not isinstance(axes, (list, tuple)) else axes
    if isinstance(found, np.ndarray) and found.ndim == 0:
        if found.dtype.kind not in "iu":
            raise TypeError(
                f"Expected int32, got {axes!r} of type '{type(axes).__name__}' instead."
            )
        n = int(found)
        if n < 0:
            raise ValueError(f"'axes' must be at least 0, got {n}.")
        if rank_b < n <= rank_a:
            raise IndexError(f"'axes' of tensordot is {n}, the second tensor's rank is {rank_b}")
        if n > rank_a:
            raise ValueError(
                f"'axes' must not be larger than the number of dimensions of tensor, got {n}."
            )
        return list(range(rank_a - n, rank_a)), list(range(n))
    left, right = _lists_of_axes(found)
    return _own_axes(left, rank_a), _own_axes(right, rank_b)


def _own_axes(axes: list[int], rank: int) -> list[int]:
    """Axes counted from the front."""
    for x in axes:
        if not -rank <= x < rank:
            raise IndexError(
                f"list index out of range: tensordot sums over axis {x} of a tensor of rank {rank}"
            )
    return [x % rank for x in axes]


def _lists_of_axes(found: Any) -> tuple[list[int], list[int]]:
    if len(found) != 2:
        raise ValueError("'axes' must be an integer or have length 2.")
    left, right = (np.atleast_1d(np.asarray(x, np.int64)).tolist() for x in found)
    if len(left) != len(right):
        raise ValueError(
            f"Different number of contraction axes 'a' and 'b', {len(left)} != {len(right)}."
        )
    return left, right
