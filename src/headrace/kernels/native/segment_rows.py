"""Softmax, cross entropies, gathers, one-hot rows and segment sums of a segment.

What is a composition of element-wise ops and reductions is written as one; the others are loops
over rows. An index out of bounds ends the segment with a status other than 0.
"""

from __future__ import annotations

from headrace.kernels.native.element_loops import lanes_for
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.segment_code import Ref, SegmentCode

__all__ = [
    "compare",
    "cross_entropy",
    "gather_rows",
    "log_softmax",
    "one_hot",
    "segment_sum",
    "softmax",
]
__all__ += ["sparse_cross_entropy"]

#: Status of a segment that met an index which its kernels refuse.
OUT_OF_BOUNDS = 1
#: Status of a segment that was made for other values of an input.
OTHER_VALUES = 2


def compare(code: SegmentCode, given: Ref, expected: Ref) -> None:
    """End the segment unless an input has the values that it was made for."""

    def write(code: SegmentCode, f: Function) -> None:
        pointers = [code.pointer(f, r) for r in (given, expected)]
        with f.loop(0, given.size) as loop:
            x, y = (f.load(p, given.element, loop.index) for p in pointers)
            other, same = f.fresh_label("other"), f.fresh_label("same")
            f.emit(f"br {f.compare('eq', x, y)!r}, label %{same}, label %{other}")
            f.label(other)
            f.emit(f"ret i64 {OTHER_VALUES}")
            f.label(same)

    code.unit([given, expected], [], write)


def _shifted(code: SegmentCode, x: Ref) -> tuple[Ref, Ref, Ref]:
    """Logits minus the row's maximum, their exponentials, and the logarithm of those' sum."""
    rows, columns = x.size // x.shape[-1], x.shape[-1]
    x = Ref(code.contiguous(x).buffer, (rows, columns), x.offset if x.is_contiguous else 0)
    largest = code.reduce("max", x, rows, columns, 1)._replace(shape=(rows, 1))
    shifted = code.elements("Sub", [x, largest], x.element, (rows, columns))
    powers = code.elements("Exp", [shifted], x.element, (rows, columns))
    total = code.reduce("sum", powers, rows, columns, 1)._replace(shape=(rows, 1))
    return shifted, powers, total


def softmax(code: SegmentCode, x: Ref) -> Ref:
    """Over the last axis."""
    _, powers, total = _shifted(code, x)
    made = code.elements("RealDiv", [powers, total], x.element, powers.shape)
    return made._replace(shape=x.shape)


def log_softmax(code: SegmentCode, x: Ref) -> Ref:
    """Over the last axis."""
    shifted, _, total = _shifted(code, x)
    logs = code.elements("Log", [total], x.element, total.shape)
    made = code.elements("Sub", [shifted, logs], x.element, shifted.shape)
    return made._replace(shape=x.shape)


def cross_entropy(code: SegmentCode, x: Ref, labels: Ref) -> tuple[Ref, Ref]:
    """The losses and their derivative by the logits; both inputs have one shape."""
    rows, columns = x.shape
    shifted, powers, total = _shifted(code, x)
    logs = code.elements("Log", [total], x.element, total.shape)
    parts = code.elements("Sub", [logs, shifted], x.element, x.shape)
    parts = code.elements("Mul", [labels, parts], x.element, x.shape)
    chances = code.elements("RealDiv", [powers, total], x.element, x.shape)
    slope = code.elements("Sub", [chances, labels], x.element, x.shape)
    loss = code.reduce("sum", parts, rows, columns, 1)._replace(shape=(rows,))
    return loss, slope


def sparse_cross_entropy(code: SegmentCode, x: Ref, labels: Ref) -> tuple[Ref, Ref]:
    """The same for labels that are numbers of classes."""
    rows, columns = x.shape
    labels = code.contiguous(labels)
    shifted, powers, total = _shifted(code, x)
    logs = code.elements("Log", [total], x.element, total.shape)._replace(shape=(rows,))
    picked = code.scratch(x.element, (rows,))

    def pick(code: SegmentCode, f: Function) -> None:
        source, at, out = (code.pointer(f, r) for r in (shifted, labels, picked))
        with f.loop(0, rows) as row:
            label = _checked(f, f.load(at, labels.element, row.index), columns)
            f.store(f.load(source, x.element, row.index * columns + label), out, row.index)

    code.unit([shifted, labels], [picked], pick)
    loss = code.elements("Sub", [logs, picked], x.element, (rows,))
    slope = code.elements("RealDiv", [powers, total], x.element, x.shape)

    def subtract(code: SegmentCode, f: Function) -> None:
        at, out = code.pointer(f, labels), code.pointer(f, slope)
        with f.loop(0, rows) as row:
            label = f.convert(f.load(at, labels.element, row.index), "i64")
            place = row.index * columns + label
            f.store(f.load(out, x.element, place) - 1.0, out, place)

    code.unit([labels, slope], [slope], subtract)
    return loss, slope


def _checked(f: Function, index: Value, bound: int) -> Value:
    """An index as i64; one that is out of bounds ends the segment."""
    wide = f.convert(index, "i64")
    fits = f.view(wide, "u64") < f.constant("u64", bound)
    bad, good = f.fresh_label("bad"), f.fresh_label("good")
    f.emit(f"br {fits!r}, label %{good}, label %{bad}")
    f.label(bad)
    f.emit(f"ret i64 {OUT_OF_BOUNDS}")
    f.label(good)
    return wide


def gather_rows(code: SegmentCode, table: Ref, indices: Ref, out: Ref) -> None:
    """``out[k] = table[indices[k]]`` over the first axis."""
    table, indices = code.contiguous(table), code.contiguous(indices)
    width = table.size // table.shape[0]
    element = "u8" if table.element == "bool" else table.element
    lanes = lanes_for([element])

    def write(code: SegmentCode, f: Function) -> None:
        source, at, target = (code.pointer(f, r) for r in (table, indices, out))
        with f.loop(0, indices.size) as loop:
            index = f.load(at, indices.element, loop.index)
            start = _checked(f, index, table.shape[0]) * width
            to = loop.index * width

            def step(place: Value, count: int) -> None:
                f.store(f.load(source, element, start + place, count), target, to + place)

            code.spans(f, width, lanes, lanes * 4, step)

    code.unit([table, indices], [out], write)


def one_hot(code: SegmentCode, indices: Ref, on: Ref, off: Ref, out: Ref) -> None:
    """Rows of ``off`` with one ``on``; an index out of bounds has none."""
    indices = code.contiguous(indices)
    depth = out.shape[-1]
    filled = Ref(off.buffer, out.shape, off.offset, (0,) * len(out.shape))
    code.copy(filled, out)

    def write(code: SegmentCode, f: Function) -> None:
        at, target, number = (code.pointer(f, r) for r in (indices, out, on))
        value = f.load(number, on.element)
        with f.loop(0, indices.size) as loop:
            index = f.convert(f.load(at, indices.element, loop.index), "i64")
            inside = f.view(index, "u64") < f.constant("u64", depth)
            with f.when(inside):
                f.store(value, target, loop.index * depth + index)

    code.unit([indices, on, out], [out], write)


def segment_sum(code: SegmentCode, data: Ref, ids: Ref, out: Ref) -> None:
    """``out[ids[k]] += data[k]`` from zeros; negative ids are left out."""
    data, ids = code.contiguous(data), code.contiguous(ids)
    width = data.size // ids.size
    segments = out.size // width
    lanes = lanes_for([data.element])

    def write(code: SegmentCode, f: Function) -> None:
        source, at, target = (code.pointer(f, r) for r in (data, ids, out))
        zero = f.constant(data.element, 0)

        def clear(place: Value, count: int) -> None:
            f.store(f.splat(zero, count), target, place)

        code.spans(f, out.size, lanes, lanes * 4, clear)
        with f.loop(0, ids.size) as loop:
            index = f.convert(f.load(at, ids.element, loop.index), "i64")
            with f.when(index >= 0):
                to = _checked(f, index, segments) * width
                start = loop.index * width
                with f.loop(0, width) as columns:
                    total = f.load(target, data.element, to + columns.index)
                    part = f.load(source, data.element, start + columns.index)
                    f.store(total + part, target, to + columns.index)

    code.unit([data, ids], [out], write)
