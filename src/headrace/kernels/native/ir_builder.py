"""LLVM IR as text, written through typed values.

A :class:`Function` collects instructions. A :class:`Value` is the name of a result with its type:
an element type (``"f32"``, ``"i64"``, ``"u32"``, ``"bool"``, ``"ptr"``) and a number of lanes (0: a
scalar, else a vector). Values have Python's operators, numbers beside them become constants of
their type, and a scalar beside a vector is repeated. Nothing is reordered or contracted: each
operation rounds once, as NumPy's does, so only ``fma`` is a fused product.

    f = Function("axpy", [("x", "ptr"), ("y", "ptr"), ("a", "f32"), ("n", "i64")])
    x, y, a, n = f.arguments
    with f.loop(0, n, 16) as loop:
        v = f.load(x, "f32", loop.index, lanes=16)
        w = f.load(y, "f32", loop.index, lanes=16)
        f.store(f.fma(a, v, w), y, loop.index)
    source = module(f)

Bits do not depend on the number of lanes: all operations are lane by lane, but for ``reduce``,
whose order is fixed (halves).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from headrace.kernels.native.ir_values import (
    BITS,
    LLVM_NAMES,
    Number,
    Operand,
    Type,
    Value,
    literal,
)

__all__ = ["Function", "Loop"]
__all__ += ["module"]


#: Instructions by operation: of floats, signed and unsigned integers.
_BINARY = {
    "add": ("fadd", "add", "add"),
    "sub": ("fsub", "sub", "sub"),
    "mul": ("fmul", "mul", "mul"),
    "div": ("fdiv", "sdiv", "udiv"),
    "rem": ("frem", "srem", "urem"),
    "and": (None, "and", "and"),
    "or": (None, "or", "or"),
    "xor": (None, "xor", "xor"),
    "shl": (None, "shl", "shl"),
    "shr": (None, "ashr", "lshr"),
}
#: Comparisons: false where one side is NaN, but for "ne".
_COMPARE = {
    "lt": ("fcmp olt", "icmp slt", "icmp ult"),
    "le": ("fcmp ole", "icmp sle", "icmp ule"),
    "gt": ("fcmp ogt", "icmp sgt", "icmp ugt"),
    "ge": ("fcmp oge", "icmp sge", "icmp uge"),
    "eq": ("fcmp oeq", "icmp eq", "icmp eq"),
    "ne": ("fcmp une", "icmp ne", "icmp ne"),
}


class Loop:
    """A loop under way: its index, and the values that go from one iteration to the next."""

    def __init__(self, index: Value, carried: Sequence[Value]) -> None:
        self.index = index
        self.carried = tuple(carried)
        self.following: tuple[Value, ...] = tuple(carried)
        self.results: tuple[Value, ...] = ()

    def carry(self, *values: Value) -> None:
        """What the next iteration finds in ``carried``, and who comes after the loop in
        ``results``.
        """
        assert [v.type for v in values] == [v.type for v in self.carried]
        self.following = values


class _Open:
    """Where a loop that is being written begins: the line that enters it, and its phis."""

    __slots__ = ("phis", "start")

    def __init__(self, start: int, phis: int) -> None:
        self.start, self.phis = start, phis


class Function:
    """A function ``void name(arguments)`` (or of another result) that is being written."""

    def __init__(
        self, name: str, arguments: Sequence[tuple[str, str]], result: str = "void"
    ) -> None:
        self.name = name
        self.result = result
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.n_values = 0
        self.n_blocks = 0
        self.block = "entry"
        self.open: list[_Open] = []  # the loops around what is being written
        self.parameters = [(f"%{n}", Type(t)) for n, t in arguments]
        self.arguments = tuple(Value(self, n, t) for n, t in self.parameters)

    # instructions -------------------------------------------------------------------------------
    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def new(self, text: str, type: Type) -> Value:
        """An instruction with a result."""
        name = f"%t{self.n_values}"
        self.n_values += 1
        self.emit(f"{name} = {text}")
        return Value(self, name, type)

    def once(self, text: str, type: Type, *operands: Value) -> Value:
        """A function of floats, computed before all loops in which its operands do not change (LLVM
        does so with cheap instructions alone, and a root or a quotient takes as long as ten).
        """
        depth = max([o.depth for o in operands], default=0)
        if depth >= len(self.open):
            return self.new(text, type)
        name = f"%t{self.n_values}"
        self.n_values += 1
        self.lines.insert(self.open[depth].start, f"  {name} = {text}")
        for loop in self.open[depth:]:
            loop.start += 1
            loop.phis += 1
        return Value(self, name, type, depth)

    def constant(self, element: str, number: Number, lanes: int = 0) -> Value:
        text = literal(element, number)
        name = f"splat ({LLVM_NAMES[element]} {text})" if lanes else text
        return Value(self, name, Type(element, lanes), 0)

    def like(self, number: Operand, other: Value) -> Value:
        """A number, or a scalar of the same element type, as a value of another's type."""
        if not isinstance(number, Value):
            return self.constant(other.type.element, number, other.type.lanes)
        assert number.type.element == other.type.element, (number, other)
        if number.type.lanes == other.type.lanes:
            return number
        assert not number.type.lanes, (number, other)
        return self.splat(number, other.type.lanes)

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A scalar in all lanes of a vector."""
        if not lanes or scalar.type.lanes == lanes:
            return scalar
        kind = Type(scalar.type.element, lanes)
        one = self.once(f"insertelement {kind.text} poison, {scalar!r}, i64 0", kind, scalar)
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.once(f"shufflevector {one!r}, {kind.text} poison, {zeros}", kind, one)

    def part(self, x: Value, first: int, lanes: int) -> Value:
        """Some lanes of a vector."""
        kind, at = Type(x.type.element, lanes), ", ".join(f"i32 {first + k}" for k in range(lanes))
        return self.new(f"shufflevector {x!r}, {x.type.text} poison, <{lanes} x i32> <{at}>", kind)

    def joined(self, parts: Sequence[Value]) -> Value:
        """Vectors of equal lanes, a power of two of them, end to end."""
        while len(parts) > 1:
            lanes = 2 * parts[0].type.lanes
            kind, at = parts[0].type, ", ".join(f"i32 {k}" for k in range(lanes))
            wide = Type(kind.element, lanes)
            parts = [
                self.new(f"shufflevector {a!r}, {b!r}, <{lanes} x i32> <{at}>", wide)
                for a, b in zip(parts[::2], parts[1::2])
            ]
        return parts[0]

    def pair(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        """Two operands of one type."""
        if isinstance(x, Value) and (not isinstance(y, Value) or x.type.lanes >= y.type.lanes):
            return x, self.like(y, x)
        assert isinstance(y, Value)
        return self.like(x, y), y

    def binary(self, operation: str, x: Operand, y: Operand) -> Value:
        x, y = self.pair(x, y)
        name = _BINARY[operation][self._column(x.type)]
        assert name is not None, f"{operation} of floats"
        text = f"{name} {x!r}, {y.name}"
        return self.once(text, x.type, x, y) if x.type.is_float else self.new(text, x.type)

    def compare(self, relation: str, x: Operand, y: Operand) -> Value:
        x, y = self.pair(x, y)
        name = _COMPARE[relation][self._column(x.type)]
        return self.new(f"{name} {x!r}, {y.name}", x.type.with_element("bool"))

    @staticmethod
    def _column(kind: Type) -> int:
        return 0 if kind.is_float else 1 if kind.is_signed else 2

    def negate(self, x: Value) -> Value:
        if x.type.is_float:
            return self.new(f"fneg {x!r}", x.type)
        return self.binary("sub", 0, x)

    def select(self, condition: Value, x: Operand, y: Operand) -> Value:
        """``x`` where the condition is true, else ``y``."""
        if not isinstance(x, Value) and not isinstance(y, Value):
            raise TypeError("select needs one value to know the type")
        x, y = self.pair(x, y)
        if condition.type.lanes < x.type.lanes:
            condition = self.splat(condition, x.type.lanes)
        elif x.type.lanes < condition.type.lanes:
            x, y = (self.splat(v, condition.type.lanes) for v in (x, y))
        return self.new(f"select {condition!r}, {x!r}, {y!r}", x.type)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """LLVM's function ``llvm.name.<type>`` of operands of one type, which it returns."""
        kind = operands[0].type
        full = f"@llvm.{name}.{kind.suffix}"
        types = ", ".join(o.type.text for o in operands)
        self.declarations.add(f"declare {kind.text} {full}({types})")
        text = f"call {kind.text} {full}({', '.join(map(repr, operands))})"
        return self.once(text, kind, *operands) if kind.is_float else self.new(text, kind)

    def call(self, name: str, result: Type | None, *operands: Value) -> Value | None:
        """A C function, found in the process by its name."""
        returned = "void" if result is None else result.text
        types = ", ".join(o.type.text for o in operands)
        self.declarations.add(f"declare {returned} @{name}({types})")
        text = f"call {returned} @{name}({', '.join(map(repr, operands))})"
        if result is None:
            self.emit(text)
            return None
        return self.new(text, result)

    def each_lane(self, x: Value, function: Callable[[Value], Value]) -> Value:
        """A function of scalars on all lanes, one after the other."""
        if not x.type.lanes:
            return function(x)
        found: Value | None = None
        for lane in range(x.type.lanes):
            part = self.new(f"extractelement {x!r}, i64 {lane}", Type(x.type.element))
            made = function(part)
            kind = Type(made.type.element, x.type.lanes)
            before = "poison" if found is None else found.name
            found = self.new(f"insertelement {kind.text} {before}, {made!r}, i64 {lane}", kind)
        assert found is not None
        return found

    # arithmetic with names ----------------------------------------------------------------------
    def fma(self, x: Operand, y: Operand, z: Operand) -> Value:
        """``x * y + z``, rounded once."""
        first = next(v for v in _by_lanes(x, y, z) if isinstance(v, Value))
        return self.intrinsic("fma", *(self.like(v, first) for v in (x, y, z)))

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Horner's scheme, the highest power's coefficient first."""
        found = self.like(coefficients[0], x)
        for c in coefficients[1:]:
            found = self.fma(found, x, c)
        return found

    def abs(self, x: Value) -> Value:
        if x.type.is_float:
            return self.intrinsic("fabs", x)
        return self.select(x < 0, -x, x) if x.type.is_signed else x

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def floor(self, x: Value) -> Value:
        return self.intrinsic("floor", x)

    def ceil(self, x: Value) -> Value:
        return self.intrinsic("ceil", x)

    def truncate(self, x: Value) -> Value:
        return self.intrinsic("trunc", x)

    def round(self, x: Value) -> Value:
        """To the nearest integer, halves to the even one."""
        return self.intrinsic("roundeven", x)

    def copysign(self, x: Operand, sign: Value) -> Value:
        return self.intrinsic("copysign", self.like(x, sign), sign)

    def maximum(self, x: Operand, y: Operand) -> Value:
        """The larger one; NaN if one is NaN (NumPy's ``maximum``)."""
        x, y = self.pair(x, y)
        larger = self.select(x > y, x, y)
        return self.select(self.is_nan(x), x, larger) if x.type.is_float else larger

    def minimum(self, x: Operand, y: Operand) -> Value:
        """The smaller one; NaN if one is NaN (NumPy's ``minimum``)."""
        x, y = self.pair(x, y)
        smaller = self.select(x < y, x, y)
        return self.select(self.is_nan(x), x, smaller) if x.type.is_float else smaller

    def clamp(self, x: Value, low: Number, high: Number) -> Value:
        """Between two numbers; NaN stays NaN."""
        x = self.select(x < low, low, x)
        return self.select(x > high, high, x)

    def is_nan(self, x: Value) -> Value:
        return self.new(f"fcmp uno {x!r}, {x.name}", x.type.with_element("bool"))

    # types --------------------------------------------------------------------------------------
    def bits(self, x: Value) -> Value:
        """The bits of floats, as signed integers."""
        kind = x.type.with_element(f"i{x.type.bits}")
        return self.new(f"bitcast {x!r} to {kind.text}", kind)

    def from_bits(self, x: Value) -> Value:
        """Floats of the bits of integers."""
        kind = x.type.with_element(f"f{x.type.bits}")
        return self.new(f"bitcast {x!r} to {kind.text}", kind)

    def view(self, x: Value, element: str) -> Value:
        """The same bits as another integer type of the same size."""
        assert BITS[element] == x.type.bits
        return Value(self, x.name, x.type.with_element(element), x.depth)

    def reinterpret(self, x: Value, element: str) -> Value:
        """The same bits as lanes of another size, in the order that they have in memory."""
        size = BITS[element]
        assert x.type.bits * x.type.lanes % size == 0, (x, element)
        kind = Type(element, x.type.bits * x.type.lanes // size)
        return self.new(f"bitcast {x!r} to {kind.text}", kind)

    def convert(self, x: Value, element: str) -> Value:
        """To another element type as C does; a truth value is 0 or 1, and every number but 0 is
        true. Floats outside of an integer type's range give its lowest number or 0, as on x86.
        """
        source, kind = x.type, x.type.with_element(element)
        if source.element == element:
            return x
        if element == "bool":
            half = source.element in ("f16", "bf16")
            return self.compare("ne", self.convert(x, "f32") if half else x, 0)
        if "bf16" in (source.element, element) or "f16" in (source.element, element):
            return self._convert_half(x, kind)
        if source.is_float and kind.is_float:
            name = "fpext" if kind.bits > source.bits else "fptrunc"
        elif source.is_float:
            return self._convert_to_integer(x, kind)
        elif kind.is_float:
            name = "sitofp" if source.is_signed else "uitofp"
        elif kind.bits == source.bits:
            return self.view(x, element)
        elif kind.bits < source.bits:
            name = "trunc"
        else:
            name = "sext" if source.is_signed else "zext"
        return self.new(f"{name} {x!r} to {kind.text}", kind)

    def _convert_half(self, x: Value, kind: Type) -> Value:
        """Types of 16 bits go through float32."""
        if x.type.element == "f16":
            x = self.new(
                f"fpext {x!r} to {kind.with_element('f32').text}", x.type.with_element("f32")
            )
        elif x.type.element == "bf16":
            raw = x.type.with_element("u16")
            wide = self.convert(self.new(f"bitcast {x!r} to {raw.text}", raw), "u32")
            x = self.from_bits(wide << 16)
        if kind.element == "f16":
            x = self.convert(x, "f32")
            return self.new(f"fptrunc {x!r} to {kind.text}", kind)
        if kind.element == "bf16":
            return self._to_bfloat16(self.convert(x, "f32"), kind)
        return self.convert(x, kind.element)

    def _to_bfloat16(self, x: Value, kind: Type) -> Value:
        """Rounded to the nearest, halves to even; NaN keeps its sign."""
        raw = self.view(self.bits(x), "u32")
        rounded = (raw + ((raw >> 16) & 1) + 0x7FFF) >> 16
        nan = ((raw >> 16) & 0x8000) | 0x7FC0
        found = self.convert(self.select(self.is_nan(x), nan, rounded), "u16")
        return self.new(f"bitcast {found!r} to {kind.text}", kind)

    def _convert_to_integer(self, x: Value, kind: Type) -> Value:
        name = "fptosi" if kind.is_signed else "fptoui"
        full = f"@llvm.{name}.sat.{kind.suffix}.{x.type.suffix}"
        self.declarations.add(f"declare {kind.text} {full}({x.type.text})")
        return self.new(f"call {kind.text} {full}({x!r})", kind)

    def to_integer(self, x: Value, element: str) -> Value:
        """Floats that are certainly in the range of a signed integer type: one instruction, where
        ``convert`` takes many.
        """
        kind = x.type.with_element(element)
        return self.new(f"fptosi {x!r} to {kind.text}", kind)

    # reductions of a vector's lanes -------------------------------------------------------------
    def reduce(self, x: Value, join: Callable[[Value, Value], Value]) -> Value:
        """All lanes joined to a scalar: the upper half with the lower half, until one is left."""
        lanes = x.type.lanes
        while lanes > 1:
            lanes //= 2
            kind = Type(x.type.element, lanes)
            parts = [
                self.new(
                    f"shufflevector {x!r}, {x.type.text} poison, <{lanes} x i32> "
                    f"<{', '.join(f'i32 {i}' for i in range(start, start + lanes))}>",
                    kind,
                )
                for start in (0, lanes)
            ]
            x = join(parts[0], parts[1])
        return self.new(f"extractelement {x!r}, i64 0", Type(x.type.element))

    # memory -------------------------------------------------------------------------------------
    def at(self, pointer: Value, element: str, index: Operand) -> Value:
        """The address of an element."""
        index = index if isinstance(index, Value) else self.constant("i64", index)
        stored = "i8" if element == "bool" else LLVM_NAMES[element]
        return self.new(f"getelementptr {stored}, {pointer!r}, {index!r}", Type("ptr"))

    def load(
        self,
        pointer: Value,
        element: str,
        index: Operand = 0,
        lanes: int = 0,
        mask: Value | None = None,
    ) -> Value:
        """Elements from an index on; with a mask, the lanes that are false are 0 and are not read.

        Truth values lie in bytes.
        """
        address = self.at(pointer, element, index)
        kind = Type("u8" if element == "bool" else element, lanes)
        align = max(1, kind.bits // 8)
        if mask is None:
            found = self.new(f"load {kind.text}, {address!r}, align {align}", kind)
        else:
            full = f"@llvm.masked.load.{kind.suffix}.p0"
            types = f"ptr, i32, {mask.type.text}, {kind.text}"  # LLVM 22 reads this older form too
            self.declarations.add(f"declare {kind.text} {full}({types})")
            found = self.new(
                f"call {kind.text} {full}({address!r}, i32 {align}, {mask!r}, "
                f"{kind.text} zeroinitializer)",
                kind,
            )
        return self.compare("ne", found, 0) if element == "bool" else found

    def store(
        self, value: Value, pointer: Value, index: Operand = 0, mask: Value | None = None
    ) -> None:
        """Likewise to memory; lanes whose mask is false are left alone."""
        address = self.at(pointer, value.type.element, index)
        if value.type.element == "bool":
            kind = value.type.with_element("u8")
            value = self.new(f"zext {value!r} to {kind.text}", kind)
        align = max(1, value.type.bits // 8)
        if mask is None:
            self.emit(f"store {value!r}, {address!r}, align {align}")
            return
        full = f"@llvm.masked.store.{value.type.suffix}.p0"
        self.declarations.add(f"declare void {full}({value.type.text}, ptr, i32, {mask.type.text})")
        self.emit(f"call void {full}({value!r}, {address!r}, i32 {align}, {mask!r})")

    def lanes_below(self, count: Value, lanes: int) -> Value:
        """A mask of the first ``count`` (i64) lanes."""
        numbers = ", ".join(f"i32 {i}" for i in range(lanes))
        kind = Type("i32", lanes)
        ramp = Value(self, f"<{numbers}>", kind, 0)
        return ramp < self.splat(self.convert(count, "i32"), lanes)

    def ramp(self, element: str, lanes: int) -> Value:
        """0, 1, 2, … in the lanes of a vector of integers."""
        name = LLVM_NAMES[element]
        numbers = ", ".join(f"{name} {i}" for i in range(lanes))
        return Value(self, f"<{numbers}>", Type(element, lanes), 0)

    def local(self, element: str, count: int) -> Value:
        """Memory of the function's own; ask for it before the first loop."""
        stored = "i8" if element == "bool" else LLVM_NAMES[element]
        return self.new(f"alloca [{count} x {stored}], align 64", Type("ptr"))

    # control ------------------------------------------------------------------------------------
    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def fresh_label(self, name: str) -> str:
        self.n_blocks += 1
        return f"{name}{self.n_blocks}"

    @contextmanager
    def loop(
        self, start: Operand, end: Operand, step: Operand = 1, carried: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """``for index in range(start, end, step)``, of i64.

        ``carried`` are values that iterations hand on: ``loop.carried`` inside, ``loop.carry(…)``
        at an iteration's end, ``loop.results`` after the loop.
        """
        start, end, step = (
            v if isinstance(v, Value) else self.constant("i64", v) for v in (start, end, step)
        )
        head, body, after = (self.fresh_label(n) for n in ("head", "body", "after"))
        before = self.block
        entered = _Open(len(self.lines), len(self.lines) + 2)
        self.emit(f"br label %{head}")
        self.label(head)
        self.open.append(entered)
        index = Value(self, f"%i{self.n_blocks}", Type("i64"))
        values = [Value(self, f"%c{self.n_blocks}.{k}", v.type) for k, v in enumerate(carried)]
        more = self.compare("lt", index, end)
        self.emit(f"br {more!r}, label %{body}, label %{after}")
        self.label(body)
        loop = Loop(index, values)
        yield loop
        following = index + step
        last = self.block
        self.emit(f"br label %{head}")
        phis = [
            f"  {new.name} = phi {new.type.text} [{old.name}, %{before}], [{nxt.name}, %{last}]"
            for new, old, nxt in zip(
                [index, *values], [start, *carried], [following, *loop.following]
            )
        ]
        self.lines[entered.phis : entered.phis] = phis
        self.open.pop()
        self.label(after)
        loop.results = tuple(values)
        for value in values:
            value.depth = len(self.open)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Instructions that run only if a scalar condition holds."""
        inside, after = self.fresh_label("then"), self.fresh_label("after")
        self.emit(f"br {condition!r}, label %{inside}, label %{after}")
        self.label(inside)
        yield
        self.emit(f"br label %{after}")
        self.label(after)

    def any(self, mask: Value) -> Value:
        """Whether a lane of a mask is true."""
        if not mask.type.lanes:
            return mask
        full = f"@llvm.vector.reduce.or.{mask.type.suffix}"
        self.declarations.add(f"declare i1 {full}({mask.type.text})")
        return self.new(f"call i1 {full}({mask!r})", Type("bool"))

    def choose(self, condition: Value, rare: Callable[[], Value], usual: Value) -> Value:
        """What ``rare`` computes if a scalar condition holds, else a value that is there."""
        before = self.block
        with self.when(condition):
            other = rare()
            inside = self.block
        arms = f"[{usual.name}, %{before}], [{other.name}, %{inside}]"
        return self.new(f"phi {usual.type.text} {arms}", usual.type)

    def text(self, internal: bool = False) -> str:
        """The function as IR."""
        arguments = ", ".join(
            f"{t.text} {'noundef ' if t.element == 'ptr' else ''}{n}" for n, t in self.parameters
        )
        linkage = "internal " if internal else ""
        end = [] if self.result != "void" else ["  ret void"]
        body = "\n".join(["entry:", *self.lines, *end])
        return f"define {linkage}{self.result} @{self.name}({arguments}) #0 {{\n{body}\n}}\n"


def _by_lanes(*operands: Operand) -> list[Operand]:
    return sorted(operands, key=lambda v: -v.type.lanes if isinstance(v, Value) else 1)


def module(*functions: Function, internal: int = 0) -> str:
    """Functions as the text of a module; the first ``internal`` of them are seen there only."""
    declared = sorted(set().union(*(f.declarations for f in functions)))
    attributes = (
        'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'
    )
    texts = [f.text(k < internal) for k, f in enumerate(functions)]
    return "\n".join([*declared, *texts, attributes, ""])
