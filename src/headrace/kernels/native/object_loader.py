"""Machine code of a compiled kernel into memory, without LLVM.

A kernel from the disk cache is an object file (ELF) of one function or a few with their constants:
what refers to a constant is a 64-bit address that has to be written into the code, and nothing else
has to be linked. Done here, a process whose kernels are all in the cache needs no compiler: 56 MB
of memory, and its loading. An object of another kind raises ``CannotLoad``; LLVM links it then.

    code = LoadedObject(machine_code)
    code.get_function_address("group")
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["CannotLoad", "LoadedObject"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_ALLOCATED = 2
#: The only relocation that is known: the address of a symbol and a number, 64 bits.
_R_X86_64_64 = 1
_MAX_ALIGNMENT = 4096
_MAX_SIZE = 1 << 26


class CannotLoad(Exception):
    """The object is of another kind than those that are loaded here; says why."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class LoadedObject:
    """Executable memory with an object's code, freed with this object."""

    __slots__ = ("_base", "_memory", "_symbols")

    def __init__(self, data: bytes) -> None:
        if sys.platform != "linux":
            raise CannotLoad("object files are loaded on Linux only")
        try:
            sections = _sections(data)
            places, size = _placed(sections)
            self._memory = mmap.mmap(-1, size)
            self._base = _address(self._memory)
            for n, at in places.items():
                section = sections[n]
                if section.type == _PROGBITS:
                    self._memory[at : at + section.size] = _part(data, section)
            symbols = _symbols(data, sections, places)
            self._relocate(data, sections, places, symbols)
        except (struct.error, IndexError, OverflowError, ValueError, OSError) as error:
            raise CannotLoad(f"not a whole object: {error}") from None
        self._symbols = {name: at for name, at in symbols if at is not None and name}
        _make_executable(self._base, size)

    def get_function_address(self, name: str) -> int:
        """Where a function begins; 0 if there is none of that name."""
        at = self._symbols.get(name)
        return 0 if at is None else self._base + at

    def _relocate(
        self,
        data: bytes,
        sections: list[_Section],
        places: dict[int, int],
        symbols: list[tuple[str, int | None]],
    ) -> None:
        """Write addresses into the code."""
        for section in sections:
            if section.type != _RELA or section.info not in places:
                continue
            start, room = places[section.info], sections[section.info].size
            for where, info, addend in _RELOCATION.iter_unpack(_part(data, section)):
                if info & 0xFFFFFFFF != _R_X86_64_64:
                    raise CannotLoad(f"a relocation of type {info & 0xFFFFFFFF}")
                name, at = symbols[info >> 32]
                if at is None:
                    raise CannotLoad(f"{name} is not in the object")
                if where + 8 > room:
                    raise CannotLoad("a relocation outside of its section")
                value = (self._base + at + addend) & 0xFFFFFFFFFFFFFFFF
                struct.pack_into("<Q", self._memory, start + where, value)


def _sections(data: bytes) -> list[_Section]:
    header = _HEADER.unpack_from(data)
    if header[0][:7] != _MAGIC or header[1] != _RELOCATABLE or header[2] != _X86_64:
        raise CannotLoad("not a relocatable object for x86-64")
    offset, count = header[6], header[12]
    found = [_Section(*_SECTION.unpack_from(data, offset + 64 * n)) for n in range(count)]
    if not found:
        raise CannotLoad("it has no sections")
    return found


def _part(data: bytes, section: _Section) -> bytes:
    end = section.offset + section.size
    if end > len(data):
        raise CannotLoad("a section ends behind the object")
    return data[section.offset : end]


def _placed(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where each section that is loaded begins, and the size of all of them."""
    places: dict[int, int] = {}
    size = 0
    for n, section in enumerate(sections):
        if section.flags & _ALLOCATED and section.size:
            alignment = max(1, section.alignment)
            if section.type not in (_PROGBITS, _NOBITS) or alignment > _MAX_ALIGNMENT:
                raise CannotLoad(f"a section of type {section.type:#x}")
            size += -size % alignment
            places[n] = size
            size += section.size
    if not 0 < size <= _MAX_SIZE:
        raise CannotLoad(f"{size} bytes to load")
    return places, size


def _symbols(
    data: bytes, sections: list[_Section], places: dict[int, int]
) -> list[tuple[str, int | None]]:
    """Names and places in memory, in the object's order; None for what is elsewhere."""
    table = next((s for s in sections if s.type == _SYMTAB), None)
    if table is None:
        raise CannotLoad("it has no symbols")
    names = _part(data, sections[table.link])
    found: list[tuple[str, int | None]] = []
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(_part(data, table)):
        end = names.find(b"\0", name)
        text = names[name : max(name, end)].decode("utf-8", "replace")
        place = places.get(section)
        inside = place is not None and value <= sections[section].size
        found.append((text, place + value if place is not None and inside else None))
    return found


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


@functools.cache
def _mprotect() -> Callable[..., Any]:
    function: Callable[..., Any] = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]  # type: ignore[attr-defined]
    return function


def _make_executable(base: int, size: int) -> None:
    """Code may be read and run from here on, not written."""
    if _mprotect()(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise CannotLoad(f"the system does not let code run (error {ctypes.get_errno()})")
