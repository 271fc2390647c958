"""Which narrow types of weights this CPU computes with: correctly, and faster than with float32.

Without VNNI oneDNN multiplies unsigned by signed bytes and adds two such products in 16 bits,
saturating: the left side is shifted to 0…255, so weights of 8 bits overflow (2 · 255 · 127 >
32,767) and weights of 7 bits do not (2 · 255 · 63 = 32,130). Measured, in microseconds, for 1 x 768
x 3072 in int8 and in float32: AVX-512 with VNNI 57 / 222, AVX-512 (7 bits) 235 / 446, AVX2 (7 bits)
1,750 / 154. So AVX2 without VNNI computes in float32. bfloat16 does not exist in oneDNN for AVX2
alone.
"""

from __future__ import annotations

from headrace.kernels.packed_weights import WeightsForm
from headrace.runtime.cpu_features import AVX2_VNNI, AVX512, AVX512_BF16, AVX512_VNNI, isa_name

__all__ = ["FEW_ROWS", "LEVELS", "MAX_INNER", "choose_way"]

#: Without instructions for bfloat16 only a few rows at a time are faster than in float32: they
#: halve what is read.
FEW_ROWS = 4
#: The largest quantized weight of each integer type.
LEVELS = {"int8": 127, "int7": 63}
#: Terms in a sum from which 32 bits may not hold it (127 · 127 · n < 2**31).
MAX_INNER = (2**31 - 1) // (127 * 127)

_INT_BOUND = (
    "half a step of the inputs (their largest / 127) times the sum of |weights| of the "
    "column, plus half a step of the weights "
    "(the column's largest / {levels}) times the sum of |inputs| of the row, plus a "
    "quarter of both steps a term"
)
_BFLOAT16_BOUND = "1/128 of the sum of |input · weight| (8 significant bits on either side)"
_FLOAT32_BOUND = "float32's rounding"


def choose_way(asked: str, isa: int) -> WeightsForm:
    """How weights of the asked-for type are used with an instruction set (cpu_features.py)."""
    if asked == "int8":
        return _int8(isa)
    if asked == "bfloat16":
        return _bfloat16(isa)
    return WeightsForm(asked, "float32", "float32", "float32 was asked for", _FLOAT32_BOUND)


def _int8(isa: int) -> WeightsForm:
    name = isa_name(isa)
    if isa & AVX512_VNNI == AVX512_VNNI or isa & AVX2_VNNI == AVX2_VNNI:
        bound = _INT_BOUND.format(levels=127)
        why = f"{name} multiplies bytes exactly"
        return WeightsForm("int8", "int8", "int8", why, bound, MAX_INNER)
    if isa & AVX512 == AVX512:
        why = (
            f"{name} without VNNI adds products of bytes in 16 bits, which weights of 8 bits "
            "would overflow"
        )
        bound = _INT_BOUND.format(levels=63)
        return WeightsForm("int8", "int7", "int8 with weights of 7 bits", why, bound, MAX_INNER)
    why = f"{name} without VNNI has no int8 product that is both right and faster than float32"
    return WeightsForm("int8", "float32", "float32", why, _FLOAT32_BOUND)


def _bfloat16(isa: int) -> WeightsForm:
    name = isa_name(isa)
    if isa & AVX512_BF16 == AVX512_BF16:
        return WeightsForm(
            "bfloat16", "bfloat16", "bfloat16", f"{name} multiplies bfloat16", _BFLOAT16_BOUND
        )
    if isa & AVX512 == AVX512:
        why = f"{name} has no instructions for bfloat16; a few rows gain from reading half as much"
        way = f"bfloat16 up to {FEW_ROWS} rows, float32 beyond"
        return WeightsForm("bfloat16", "bfloat16", way, why, _BFLOAT16_BOUND)
    why = f"{name}: oneDNN has no bfloat16 product without AVX-512"
    return WeightsForm("bfloat16", "float32", "float32", why, _FLOAT32_BOUND)
