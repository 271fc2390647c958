"""Types, values and constants of LLVM IR, as :mod:`ir_builder` writes it.

``x * y + 1`` of values writes instructions into their function and gives the result's value.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple, Union

if TYPE_CHECKING:
    from headrace.kernels.native.ir_builder import Function

__all__ = [
    "BITS",
    "ELEMENT_OF_DTYPE",
    "FLOATS",
    "LLVM_NAMES",
    "Number",
    "Operand",
    "Type",
    "Value",
    "literal",
]


LLVM_NAMES = {
    "f16": "half",
    # (LLVM's own type, where a CPU has no instructions for it, calls functions that are not there)
    "bf16": "i16",
    "f32": "float",
    "f64": "double",
    "bool": "i1",
    "ptr": "ptr",
    **{f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}
FLOATS = ("f32", "f64", "f16", "bf16")
BITS = {"bool": 1, "ptr": 64, "bf16": 16} | {
    n: int(n[1:]) for n in LLVM_NAMES if n[0] in "fiu" and n[1:].isdigit()
}
#: NumPy's (and ml_dtypes') names of dtypes, as element types.
ELEMENT_OF_DTYPE = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "bool": "bool",
    **{f"int{b}": f"i{b}" for b in (8, 16, 32, 64)},
    **{f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)},
}
Number = Union[int, float, bool]


class Type(NamedTuple):
    """An element type and a number of lanes (0: a scalar)."""

    element: str
    lanes: int = 0

    @property
    def text(self) -> str:
        name = LLVM_NAMES[self.element]
        return f"<{self.lanes} x {name}>" if self.lanes else name

    @property
    def suffix(self) -> str:
        """As it stands in the name of an intrinsic function."""
        name = {"half": "f16", "float": "f32", "double": "f64"}
        inner = name.get(LLVM_NAMES[self.element], LLVM_NAMES[self.element])
        return f"v{self.lanes}{inner}" if self.lanes else inner

    @property
    def bits(self) -> int:
        return BITS[self.element]

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def is_signed(self) -> bool:
        return self.element[0] == "i"

    def with_element(self, element: str) -> Type:
        return Type(element, self.lanes)


class Value:
    """A result in a function. Operators make further instructions."""

    __slots__ = ("depth", "function", "name", "type")

    def __init__(self, function: Function, name: str, type: Type, depth: int | None = None) -> None:
        """``depth``: the number of loops around it, by default those that are being written."""
        self.function, self.name, self.type = function, name, type
        self.depth = len(function.open) if depth is None else depth

    def __repr__(self) -> str:
        return f"{self.type.text} {self.name}"

    def __add__(self, other: Operand) -> Value:
        return self.function.binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.function.binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.function.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.function.binary("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.function.binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.function.binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.function.binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.function.binary("div", other, self)

    def __and__(self, other: Operand) -> Value:
        return self.function.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.function.binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.function.binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self.function.binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic for signed types, logical for unsigned ones."""
        return self.function.binary("shr", self, other)

    def __neg__(self) -> Value:
        return self.function.negate(self)

    def __invert__(self) -> Value:
        """All bits, or a truth value, turned over."""
        return self.function.binary("xor", self, True if self.type.element == "bool" else -1)

    def __lt__(self, other: Operand) -> Value:
        return self.function.compare("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.function.compare("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.function.compare("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.function.compare("ge", self, other)


Operand = Union[Value, Number]


def literal(element: str, number: Number) -> str:
    """A constant of an element type."""
    if element == "bool":
        return "true" if number else "false"
    if element == "f64":
        return f"0x{struct.unpack('>Q', struct.pack('>d', float(number)))[0]:016X}"
    if element == "f32":
        return f"0x{struct.unpack('>Q', struct.pack('>d', _to_float32(number)))[0]:016X}"
    if element in ("f16", "bf16"):
        raise TypeError("numbers of 16 bits are computed with as float32")
    return str(int(number))


def _to_float32(number: Number) -> float:
    number = float(number)
    if not math.isfinite(number):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
