"""What this CPU can do, and what the kernel library may use of it.

``cpu()`` reads the flags that the system reports. ``isa_limit()`` is the most that oneDNN is
allowed to use: what the user says (ONEDNN_MAX_CPU_ISA), and nothing that the machine announces and
cannot do. ``isa_name`` names oneDNN's answer.

Virtual machines announce instructions whose description they hide: a guest that shows ``amx_tile``
but ends its CPUID table before leaf 0x1D makes oneDNN configure no tiles, and the first tile
instruction ends the process. ``Cpu.amx`` is False there.

    >>> cpu().amx
    False
    >>> isa_name(0x67)
    'AVX-512 with VNNI'
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass

from headrace.env import onednn_isa_setting

__all__ = [
    "AVX2",
    "AVX2_VNNI",
    "AVX512",
    "AVX512_BF16",
    "AVX512_FP16",
    "AVX512_VNNI",
    "ISA_NAMES",
    "Cpu",
    "cpu",
    "cpu_class",
    "isa_limit",
    "isa_name",
    "parse_cpuinfo",
    "setting_bits",
]

#: Instruction sets as oneDNN numbers them; each has the bits of those that it includes.
SSE41, AVX, AVX2, AVX2_VNNI, AVX2_VNNI_2 = 0x1, 0x3, 0x7, 0xF, 0x1F
AVX512, AVX512_VNNI, AVX512_BF16, AVX512_FP16 = 0x27, 0x67, 0xE7, 0x1EF
AMX, AMX_FP16 = 0xFEF, 0x1FEF

ISA_NAMES = {
    SSE41: "SSE4.1",
    AVX: "AVX",
    AVX2: "AVX2",
    AVX2_VNNI: "AVX2 with VNNI",
    AVX2_VNNI_2: "AVX2 with VNNI 2",
    AVX512: "AVX-512",
    AVX512_VNNI: "AVX-512 with VNNI",
    AVX512_BF16: "AVX-512 with VNNI and BF16",
    AVX512_FP16: "AVX-512 with VNNI, BF16 and FP16",
    AMX: "AVX-512 with AMX",
    AMX_FP16: "AVX-512 with AMX and AMX-FP16",
}
#: What may be written into ONEDNN_MAX_CPU_ISA.
_SETTINGS = {
    "SSE41": SSE41,
    "AVX": AVX,
    "AVX2": AVX2,
    "AVX2_VNNI": AVX2_VNNI,
    "AVX2_VNNI_2": AVX2_VNNI_2,
    "AVX512_CORE": AVX512,
    "AVX512_CORE_VNNI": AVX512_VNNI,
    "AVX512_CORE_BF16": AVX512_BF16,
    "AVX512_CORE_FP16": AVX512_FP16,
    "AVX512_CORE_AMX": AMX,
    "AVX512_CORE_AMX_FP16": AMX_FP16,
}
#: The CPUID leaf that describes AMX's tiles.
_TILE_LEAF = 0x1D


@dataclass(frozen=True)
class Cpu:
    """A CPU as the system describes it.

    ``flags`` have Linux's names; they are empty where the system does not say.
    """

    model: str
    flags: frozenset[str]
    max_leaf: int  # the highest CPUID leaf, -1 if unknown
    vendor: str = ""

    @property
    def amx(self) -> bool:
        """Whether AMX can be used: announced, and its tiles described."""
        return "amx_tile" in self.flags and self.max_leaf >= _TILE_LEAF

    @property
    def hidden(self) -> str:
        """What is announced but cannot be used, and why; empty if there is nothing."""
        if "amx_tile" in self.flags and not self.amx:
            return (
                f"AMX is announced, but CPUID ends at leaf {self.max_leaf:#x}, before the "
                "description of its tiles"
            )
        return ""


def parse_cpuinfo(text: str) -> Cpu:
    """The first processor of a ``/proc/cpuinfo``."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    leaf = fields.get("cpuid level", "")
    flags = fields.get("flags", "") or fields.get("Features", "")  # the second is ARM's
    return Cpu(
        fields.get("model name", "unknown"),
        frozenset(flags.split()),
        int(leaf) if leaf.isdigit() else -1,
        fields.get("vendor_id", ""),
    )


@functools.cache
def cpu() -> Cpu:
    """The CPU that this process runs on."""
    if sys.platform.startswith("linux"):
        try:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
                return parse_cpuinfo(file.read())
        except OSError:
            pass
    import platform

    return Cpu(platform.processor() or platform.machine() or "unknown", frozenset(), -1)


def isa_limit(found: Cpu | None = None, setting: str | None = None) -> int | None:
    """The limit that oneDNN has to be told.

    None if it finds the right one itself (the user's setting included).
    """
    found = cpu() if found is None else found
    wanted = _SETTINGS.get((onednn_isa_setting() if setting is None else setting).upper(), AMX_FP16)
    if wanted & AMX == AMX and found.hidden:
        return AVX512_FP16
    return None


def setting_bits(setting: str) -> int | None:
    """The instruction set that a value of ONEDNN_MAX_CPU_ISA names; None if it names none."""
    return _SETTINGS.get(setting.upper())


def isa_name(bits: int) -> str:
    """An instruction set in words."""
    return ISA_NAMES.get(bits, f"instruction set {bits:#x}")


def cpu_class(bits: int) -> str:
    """The class that tables of thresholds are made for: "avx512", "avx512 AMD" (whose caches and
    units are others than Intel's), or "avx2" (everything else).
    """
    if bits & AVX512 != AVX512:
        return "avx2"
    return "avx512 AMD" if cpu().vendor == "AuthenticAMD" else "avx512"
