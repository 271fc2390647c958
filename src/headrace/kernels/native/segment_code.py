"""A sequence of operations on arrays of known shapes as one native function.

A :class:`SegmentCode` collects instructions on buffers: element-wise members, reductions, copies,
products and the like. ``source()`` joins neighbouring element-wise members of one size in a loop,
drops what nothing reads, lays the rest into one scratch memory, and gives the text of

    int64_t segment(void** operands)

whose operands are the addresses of inputs, outputs, constants and the scratch memory, in this
order. The answer is 0, or another number if a value was found that only the ops' own kernels can
deal with (an index out of bounds): the outputs are of no use then.

    >>> code = SegmentCode()
    >>> x = code.operand("input", "f32", (100, 10))
    >>> squares = code.elements("Square", [x], "f32", (100, 10))
    >>> code.give(code.reduce("sum", squares, 100, 10, 1))
    >>> text, scratch_bytes = code.source()

Shapes are part of the code, so loops have no masks: a rest is done by a vector that overlaps the
one before it. Sums are made in an order that depends on shapes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.kernels.native.element_loops import lanes_for
from headrace.kernels.native.element_rules import RULES
from headrace.kernels.native.group_kernels import Member, write_members
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Type, Value

__all__ = ["Buffer", "Ref", "SegmentCode", "Unit", "contiguous_strides", "largest_power"]

#: Members and inputs of one loop: more do not fit registers.
MAX_LOOP_MEMBERS, MAX_LOOP_INPUTS = 40, 24
#: Elementary operations from which a loop has two vectors under way, not four.
_LONG_BODY = 60
_ALIGN = 64
_BYTES = {"bool": 1, "bf16": 2}


class Buffer:
    """Memory of a segment: an operand's, or part of the scratch memory."""

    __slots__ = ("element", "number", "role", "size")

    def __init__(self, number: int, element: str, size: int, role: str) -> None:
        self.number, self.element, self.size = number, element, size
        self.role = role  # "input", "output", "constant" or "scratch"

    @property
    def nbytes(self) -> int:
        return self.size * (_BYTES.get(self.element) or Type(self.element).bits // 8)


class Ref(NamedTuple):
    """An array: where it lies in a buffer. Offset and strides count elements."""

    buffer: Buffer
    shape: tuple[int, ...]
    offset: int = 0
    strides: tuple[int, ...] | None = None  # None: contiguous

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def element(self) -> str:
        return self.buffer.element

    @property
    def is_contiguous(self) -> bool:
        return self.strides is None or self.size <= 1 or _is_contiguous(self.shape, self.strides)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous array, in elements."""
    found, step = [], 1
    for d in reversed(shape):
        found.append(step)
        step *= d
    return tuple(reversed(found))


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    wanted = contiguous_strides(shape)
    return all(d == 1 or s == w for d, s, w in zip(shape, strides, wanted))


def largest_power(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)


class Unit:
    """Instructions that stand together. ``write(code, f)`` gives their text."""

    def __init__(
        self,
        reads: Sequence[Ref],
        writes: Sequence[Ref],
        write: Callable[[SegmentCode, Function], None] | None = None,
    ) -> None:
        self.reads, self.writes = list(reads), list(writes)
        self._write = write

    def write(self, code: SegmentCode, f: Function) -> None:
        assert self._write is not None
        self._write(code, f)


class _Operand(NamedTuple):
    """An input of a loop: ``extent`` as in element_loops.py."""

    ref: Ref
    extent: str


class Loop(Unit):
    """Element-wise members over arrays of ``size`` elements, in rows of ``columns`` (0: flat)."""

    def __init__(self, size: int, columns: int) -> None:
        super().__init__((), ())
        self.size, self.columns = size, columns
        self.operands: list[_Operand] = []
        #: Inputs of a member are ("in", operand) or ("made", member).
        self.members: list[tuple[str, tuple[tuple[str, int], ...], str, Any, Ref]] = []
        self.made: dict[tuple[int, int], int] = {}

    def accepts_member(self, size: int, columns: int, inputs: Sequence[_Operand]) -> bool:
        """Whether a member may come into this loop."""
        if size != self.size or (columns and self.columns and columns != self.columns):
            return False
        if len(self.members) >= MAX_LOOP_MEMBERS or len(self.operands) >= MAX_LOOP_INPUTS:
            return False
        for ref, extent in inputs:
            place = ref.buffer.number, ref.offset
            inside = any(place[0] == b for b, _ in self.made)
            if inside and (extent != "full" or place not in self.made):
                return False
        return True

    def add(
        self, op: str, inputs: Sequence[_Operand], columns: int, out: Ref, attrs: object
    ) -> None:
        self.columns = self.columns or columns
        places = []
        for operand in inputs:
            made = self.made.get((operand.ref.buffer.number, operand.ref.offset))
            if made is not None and operand.extent == "full":
                places.append(("made", made))
                continue
            key = (operand.ref.buffer.number, operand.ref.offset, operand.extent)
            have = [(o.ref.buffer.number, o.ref.offset, o.extent) for o in self.operands]
            if key not in have:
                have.append(key)
                self.operands.append(operand)
                self.reads.append(operand.ref)
            places.append(("in", have.index(key)))
        self.made[out.buffer.number, out.offset] = len(self.members)
        self.members.append((op, tuple(places), out.element, attrs, out))
        self.writes.append(out)

    def write(self, code: SegmentCode, f: Function) -> None:
        needed = [m for m, member in enumerate(self.members) if code.is_read(member[4], self)]
        n = len(self.operands)
        at = lambda place: place[1] if place[0] == "in" else n + place[1]
        members = [
            Member(op, tuple(map(at, places)), element, attrs)
            for op, places, element, attrs, _ in self.members
        ]
        elements = [o.ref.element for o in self.operands] + [m.element for m in members]
        cost = sum(RULES[m.op].cost for m in members)
        lanes = lanes_for(elements)
        wide = lanes * (2 if cost >= _LONG_BODY else 4)
        count = self.columns or self.size
        pointers = [code.pointer(f, o.ref) for o in self.operands]
        targets = [code.pointer(f, self.members[m][4]) for m in needed]

        def span(row: Value | None, fixed: list[Value | None]) -> None:
            start = None if row is None else row * count

            def step(index: Value, width: int) -> None:
                values = []
                for (ref, extent), pointer, known in zip(self.operands, pointers, fixed):
                    if known is not None:
                        values.append(f.splat(known, width))
                        continue
                    place = index if extent == "row" or start is None else start + index
                    values.append(f.load(pointer, ref.element, place, width))
                made = write_members(f, values, members)[n:]
                for m, target in zip(needed, targets):
                    out = self.members[m][4]
                    place = index if start is None else start + index
                    value = f.convert(made[m], out.element)
                    f.store(f.splat(value, width), target, place)

            code.spans(f, count, lanes, wide, step)

        known = [_once(f, o, p, None) for o, p in zip(self.operands, pointers)]
        if not self.columns:
            span(None, known)
            return
        with f.loop(0, self.size // self.columns) as rows:
            each = [
                _once(f, o, p, rows.index) if k is None else k
                for o, p, k in zip(self.operands, pointers, known)
            ]
            span(rows.index, each)


def _once(f: Function, operand: _Operand, pointer: Value, row: Value | None) -> Value | None:
    """A number, or a column's element of a row."""
    ref, extent = operand
    if extent == "scalar" and row is None:
        return f.load(pointer, ref.element)
    if extent == "column" and row is not None:
        return f.load(pointer, ref.element, row)
    return None


class SegmentCode:
    """Instructions of a segment under construction."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.buffers: list[Buffer] = []
        self.roles: dict[str, list[Buffer]] = {"input": [], "output": [], "constant": []}
        self._parameters: dict[tuple[int, int], tuple[Ref, Value]] = {}
        self._loop: Loop | None = None
        self._readers: dict[int, list[tuple[int, Unit]]] = {}

    # buffers ------------------------------------------------------------------------------------
    def operand(self, role: str, element: str, shape: tuple[int, ...]) -> Ref:
        """The next input, output or constant of the function."""
        made = self.scratch(element, shape)
        made.buffer.role = role
        self.roles[role].append(made.buffer)
        return made

    def scratch(self, element: str, shape: tuple[int, ...]) -> Ref:
        """Memory of the segment's own."""
        made = Buffer(len(self.buffers), element, math.prod(shape), "scratch")
        self.buffers.append(made)
        return Ref(made, shape)

    def give(self, ref: Ref) -> None:
        """Make an array the next output."""
        buffer = ref.buffer
        if buffer.role == "scratch" and ref.is_contiguous and ref.size == buffer.size:
            buffer.role = "output"
            self.roles["output"].append(buffer)
        else:
            self.copy(ref, self.operand("output", ref.element, ref.shape))

    def contiguous(self, ref: Ref) -> Ref:
        """The array itself, or a copy that has no gaps."""
        if ref.is_contiguous:
            return ref._replace(strides=None)
        made = self.scratch(ref.element, ref.shape)
        self.copy(ref, made)
        return made

    # instructions -------------------------------------------------------------------------------
    def unit(
        self,
        reads: Sequence[Ref],
        writes: Sequence[Ref],
        write: Callable[[SegmentCode, Function], None],
    ) -> None:
        """Instructions of any kind."""
        self._loop = None
        self.units.append(Unit(reads, writes, write))

    def elements(
        self,
        op: str,
        inputs: Sequence[Ref],
        element: str,
        shape: tuple[int, ...],
        attrs: object = (),
        into: Ref | None = None,
    ) -> Ref:
        """An element-wise op of inputs that broadcast to ``shape``."""
        out = self.scratch(element, shape) if into is None else into
        try:
            columns, extents = _extents([i.shape for i in inputs], shape)
        except ValueError:  # not as numbers, rows and columns of one size
            inputs = [_repeated(i, shape) for i in inputs]
            columns, extents = _extents([i.shape for i in inputs], shape)
        operands = [_Operand(self.contiguous(i), x) for i, x in zip(inputs, extents)]
        loop = self._loop
        if loop is None or not loop.accepts_member(out.size, columns, operands):
            loop = self._loop = Loop(out.size, columns)
            self.units.append(loop)
        loop.add(op, operands, columns, out, attrs)
        return out

    def copy(self, source: Ref, target: Ref) -> None:
        """Element by element, both of one shape, wherever they lie."""
        dims, strides = _joined_axes(source, target)

        def write(code: SegmentCode, f: Function) -> None:
            pointers = [code.pointer(f, r) for r in (source, target)]
            starts = [f.constant("i64", 0)] * 2
            _copy_axes(code, f, source.element, pointers, starts, dims, strides)

        self.unit([source], [target], write)

    def reduce(
        self, kind: str, source: Ref, outer: int, count: int, inner: int, into: Ref | None = None
    ) -> Ref:
        """The sum, max, min or prod over the middle axis of (outer, count, inner)."""
        source = self.contiguous(source)
        out = self.scratch(source.element, (outer, inner)) if into is None else into

        def write(code: SegmentCode, f: Function) -> None:
            from headrace.kernels.native.segment_reductions import write_reduction

            write_reduction(code, f, kind, source, out, (outer, count, inner))

        self.unit([source], [out], write)
        return out

    # text ---------------------------------------------------------------------------------------
    def is_read(self, ref: Ref, by_others_than: Unit) -> bool:
        """Whether the memory is an output, or another unit reads it."""
        if ref.buffer.role == "output":
            return True
        return any(unit is not by_others_than for _, unit in self._readers[ref.buffer.number])

    def pointer(self, f: Function, ref: Ref) -> Value:
        """The address of an array's first element: a parameter of the unit's function."""
        key = ref.buffer.number, ref.offset
        found = self._parameters.get(key)
        if found is None:
            name = f"%p{len(self._parameters)}"
            f.parameters.append((name, Type("ptr")))
            found = self._parameters[key] = ref, Value(f, name, Type("ptr"))
        return found[1]

    def spans(
        self,
        f: Function,
        count: int,
        lanes: int,
        wide: int,
        step: Callable[[Value, int], None],
    ) -> None:
        """``step(index, width)`` over ``count`` elements; vectors may overlap."""
        done = 0
        if count >= wide:
            done = count - count % wide
            if done == wide:
                step(f.constant("i64", 0), wide)
            else:
                with f.loop(0, done, wide) as main:
                    step(main.index, wide)
        rest = count - done
        if not rest:
            return
        width = min(lanes, largest_power(count))
        if rest <= width:
            step(f.constant("i64", count - width), width)
            return
        with f.loop(done, count, width) as others:
            step(f.minimum(others.index, f.constant("i64", count - width)), width)

    def source(self) -> tuple[str, int]:
        """The module's text, and how many bytes of scratch memory it wants."""
        self._drop_unread()
        self._readers = {b.number: [] for b in self.buffers}
        for n, unit in enumerate(self.units):
            for ref in unit.reads:
                self._readers[ref.buffer.number].append((n, unit))
        offsets, total = self._lay()
        main = Function("segment", [("operands", "ptr")], "i64")
        functions: dict[str, Function] = {}
        for unit in self.units:
            self._call(main, unit, functions, offsets)
        main.emit("ret i64 0")
        return module(*functions.values(), main, internal=len(functions)), total

    def _call(
        self, main: Function, unit: Unit, functions: dict[str, Function], offsets: dict[int, int]
    ) -> None:
        """A call of a unit's function; units with the same text share one."""
        self._parameters = {}
        f = Function("", [], "i64")
        unit.write(self, f)
        f.emit("ret i64 0")
        text = "\n".join([str(len(f.parameters)), *f.lines])
        known = functions.setdefault(text, f)
        known.name = known.name or f"u{len(functions)}"
        given = [self._address(main, ref, offsets) for ref, _ in self._parameters.values()]
        made = main.new(f"call i64 @{known.name}({', '.join(map(repr, given))})", Type("i64"))
        if any("ret i64" in line for line in f.lines[:-1]):
            stop, further = main.fresh_label("stop"), main.fresh_label("further")
            fine = main.compare("eq", made, 0)
            main.emit(f"br {fine!r}, label %{further}, label %{stop}")
            main.label(stop)
            main.emit(f"ret {made!r}")
            main.label(further)

    def _address(self, main: Function, ref: Ref, offsets: dict[int, int]) -> Value:
        """Where an array begins."""
        (operands,) = main.arguments
        listed = [b for role in ("input", "output", "constant") for b in self.roles[role]]
        if ref.buffer.role == "scratch":
            scratch = main.load(operands, "ptr", len(listed))
            start = main.at(scratch, "u8", offsets[ref.buffer.number])
        else:
            start = main.load(operands, "ptr", listed.index(ref.buffer))
        return main.at(start, ref.element, ref.offset) if ref.offset else start

    def _drop_unread(self) -> None:
        wanted = {b.number for b in self.roles["output"]}
        kept = []
        for unit in reversed(self.units):
            if not unit.writes or any(ref.buffer.number in wanted for ref in unit.writes):
                kept.append(unit)
                wanted.update(ref.buffer.number for ref in unit.reads)
        self.units = kept[::-1]

    def _lay(self) -> tuple[dict[int, int], int]:
        """Where each scratch buffer lies; memory is used again once nothing reads it."""
        last = {b: max((n for n, _ in users), default=-1) for b, users in self._readers.items()}
        offsets: dict[int, int] = {}
        alive: list[tuple[int, int, int]] = []  # start, end, last reader
        total = 0
        for n, unit in enumerate(self.units):
            for ref in unit.writes:
                b = ref.buffer
                if b.role != "scratch" or b.number in offsets:
                    continue
                size = -(-max(b.nbytes, 1) // _ALIGN) * _ALIGN
                start = 0
                for low, high, _ in sorted(alive):
                    if start + size <= low:
                        break
                    start = max(start, high)
                offsets[b.number] = start
                alive.append((start, start + size, max(last[b.number], n)))
                total = max(total, start + size)
            alive = [a for a in alive if a[2] > n]
        return offsets, total


def _extents(given: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> tuple[int, list[str]]:
    """Columns (0: flat) and how each input lies in the result."""
    size = math.prod(shape)
    names = ["full" if math.prod(s) == size else "scalar" for s in given]
    if all(math.prod(s) in (1, size) for s in given):
        return 0, names
    full = [(1,) * (len(shape) - len(s)) + tuple(s) for s in given]
    for cut in range(1, len(shape)):
        names = [_extent(s, shape, cut, size) for s in full]
        if "" not in names:
            return math.prod(shape[cut:]), names
    raise ValueError(f"inputs of shapes {', '.join(map(str, given))}")


def _extent(given: tuple[int, ...], shape: tuple[int, ...], cut: int, size: int) -> str:
    if math.prod(given) in (1, size):
        return "full" if math.prod(given) == size else "scalar"
    above, below = given[:cut], given[cut:]
    if max(above) == 1 and below == shape[cut:]:
        return "row"
    if max(below) == 1 and above == shape[:cut]:
        return "column"
    return ""


def _repeated(ref: Ref, shape: tuple[int, ...]) -> Ref:
    """An array as one of all elements: repeated axes have a stride of 0."""
    if ref.size == 1:
        return ref
    missing = len(shape) - len(ref.shape)
    own = ref.strides or contiguous_strides(ref.shape)
    strides = [0 if d != full else s for d, full, s in zip(ref.shape, shape[missing:], own)]
    return ref._replace(shape=shape, strides=(0,) * missing + tuple(strides))


# copies -------------------------------------------------------------------------------------------


def _joined_axes(source: Ref, target: Ref) -> tuple[list[int], list[tuple[int, int]]]:
    """Axes of a copy, neighbours joined where both sides lie without gaps."""
    both = [r.strides or contiguous_strides(r.shape) for r in (source, target)]
    dims: list[int] = []
    strides: list[tuple[int, int]] = []
    for d, s, t in zip(source.shape, *both):
        if d == 1:
            continue
        if dims and strides[-1] == (s * d, t * d):
            dims[-1] *= d
            strides[-1] = s, t
        else:
            dims.append(d)
            strides.append((s, t))
    return dims, strides


def _copy_axes(
    code: SegmentCode,
    f: Function,
    element: str,
    pointers: Sequence[Value],
    starts: Sequence[Value],
    dims: Sequence[int],
    strides: Sequence[tuple[int, int]],
) -> None:
    raw = "u8" if element == "bool" else "u16" if element == "bf16" else element
    if not dims:
        f.store(f.load(pointers[0], raw, starts[0]), pointers[1], starts[1])
        return
    if len(dims) == 1 and strides[0] in ((0, 1), (1, 1)):
        lanes = lanes_for([raw])
        one = f.load(pointers[0], raw, starts[0]) if strides[0][0] == 0 else None

        def step(index: Value, width: int) -> None:
            value = (
                f.splat(one, width)
                if one is not None
                else f.load(pointers[0], raw, starts[0] + index, width)
            )
            f.store(value, pointers[1], starts[1] + index)

        code.spans(f, dims[0], lanes, lanes * 4, step)
        return
    with f.loop(0, dims[0]) as loop:
        inner = [start + (loop.index * stride) for start, stride in zip(starts, strides[0])]
        _copy_axes(code, f, element, pointers, inner, dims[1:], strides[1:])
