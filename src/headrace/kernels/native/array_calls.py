"""Calls of native kernels with arrays as arguments, at the cost of a call of a C function.

A kernel wants addresses. To take them from arrays with cffi costs a quarter of a microsecond for
each one; a small kernel computes for less. Here the arrays go to a compiled function of Python's C
interface (METH_FASTCALL), which looks into the array objects itself: it compares type, dtype, shape
and flags with what the kernel was made for, collects the addresses, and calls the kernel.

    >>> call = ArrayCall(address, [Argument((3, 4), np.dtype("float32")), …], fixed=[constants])
    >>> call.function(x, y, out)
    0

The answer is the kernel's status (0: done), or ``MISFIT`` (-1) if an argument is another kind of
array than it should be; then nothing was computed. The interpreter lock is held throughout: this is
for kernels of microseconds.

The layout of array objects is part of NumPy's binary interface. ``refusal`` looks at a few objects
before the first call; where they look otherwise there are no such calls.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Type, Value
from headrace.kernels.native.llvm_library import Code, load

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["MAX_ARGUMENTS", "MISFIT", "Argument", "ArrayCall", "refusal"]

MISFIT = -1
#: Arguments and fixed arrays of a call together.
MAX_ARGUMENTS = 256

#: Where an array object has its parts, and a NumPy scalar its number.
_DATA, _NDIM, _DIMS, _DESCR, _FLAGS = 16, 24, 32, 56, 64
#: C-contiguous and aligned.
_WANTED_FLAGS = 0x101
_METH_FASTCALL = 0x80


class Argument(NamedTuple):
    """What an argument has to be: an array (or, of rank 0, a NumPy scalar)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def refusal() -> str:
    """Why arrays cannot be looked into; empty if they can."""
    if sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return "it takes a 64-bit CPython"
    for array in (np.arange(6.0).reshape(2, 3), np.zeros((), np.int32), np.arange(9)[1:7:2]):
        at, read = id(array), ctypes.c_int64.from_address
        shape = read(at + _DIMS).value
        found = (
            read(at + _DATA).value,
            ctypes.c_int32.from_address(at + _NDIM).value,
            tuple(read(shape + 8 * k).value for k in range(array.ndim)),
            read(at + _DESCR).value,
            bool(ctypes.c_int32.from_address(at + _FLAGS).value & 1),
        )
        interface = array.__array_interface__["data"][0]
        wanted = interface, array.ndim, array.shape, id(array.dtype), array.flags.c_contiguous
        if found != wanted:
            return "array objects have another layout"
    number = np.float32(1.5)
    if ctypes.c_float.from_address(id(number) + _DATA).value != 1.5:
        return "NumPy scalars have another layout"
    return ""


def _entry() -> str:
    """``call(specification, arguments, count)``: see ``ArrayCall`` for what is in the former."""
    f = Function("call", [("self", "ptr"), ("args", "ptr"), ("n", "i64")], "ptr")
    self_, args, count = f.arguments
    found = f.local("ptr", MAX_ARGUMENTS)
    spec = _field(f, self_, "ptr", _DATA)
    kernel, wanted, answer = (f.load(spec, t, k) for k, t in enumerate(("ptr", "i64", "ptr")))
    array_type, fixed = f.load(spec, "i64", 3), f.load(spec, "i64", 4)
    _refuse_unless(f, f.compare("eq", count, wanted), answer)
    with f.loop(0, count, 1, [f.constant("i64", 5)]) as loop:
        at = loop.carried[0]
        given = f.load(args, "ptr", loop.index)
        kind = _field(f, given, "i64", 8)
        descr, scalar = f.load(spec, "i64", at), f.load(spec, "i64", at + 1)
        rank = f.load(spec, "i64", at + 2)
        is_array = f.compare("eq", kind, array_type)
        _refuse_unless(f, is_array | f.compare("eq", kind, scalar), answer)
        inside = f.at(given, "i8", _DATA)
        f.store(inside, found, loop.index)
        with f.when(is_array):
            flags = f.convert(_field(f, given, "i32", _FLAGS), "i64")
            ndim = f.convert(_field(f, given, "i32", _NDIM), "i64")
            fits = f.compare("eq", _field(f, given, "i64", _DESCR), descr)
            fits = fits & f.compare("eq", ndim, rank)
            fits = fits & f.compare("eq", flags & _WANTED_FLAGS, _WANTED_FLAGS)
            _refuse_unless(f, fits, answer)
            dims = _field(f, given, "ptr", _DIMS)
            with f.loop(0, rank) as axes:
                size, known = (
                    f.load(dims, "i64", axes.index),
                    f.load(spec, "i64", at + 3 + axes.index),
                )
                _refuse_unless(f, f.compare("eq", size, known), answer)
            f.store(_field(f, given, "ptr", _DATA), found, loop.index)
        loop.carry(at + 3 + rank)
    with f.loop(0, fixed) as others:
        address = f.load(spec, "ptr", loop.results[0] + others.index)
        f.store(address, found, count + others.index)
    status = f.new(f"call i64 {kernel.name}({found!r})", Type("i64"))
    _answer(f, status, answer)
    return module(f)


def _field(f: Function, pointer: Value, element: str, offset: int) -> Value:
    return f.load(f.at(pointer, "i8", offset), element)


def _answer(f: Function, status: Value, answer: Value) -> None:
    made = f.new(f"call ptr {answer.name}({status!r})", Type("ptr"))
    f.emit(f"ret {made!r}")


def _refuse_unless(f: Function, condition: Value, answer: Value) -> None:
    misfit, further = f.fresh_label("misfit"), f.fresh_label("further")
    f.emit(f"br {condition!r}, label %{further}, label %{misfit}")
    f.label(misfit)
    _answer(f, f.constant("i64", MISFIT), answer)
    f.label(further)


@functools.cache
def _compiled_entry() -> tuple[Code, int]:
    code = load().compile(_entry())
    return code, code.address("call")


class ArrayCall:
    """``function(*arrays)``: a kernel ``int64_t kernel(void** operands)`` for arrays of one kind.

    ``operands`` are the arrays' addresses, then those of ``fixed``, which are the same in each
    call. ``code`` and ``fixed`` are kept alive as long as this object is: keep it with the
    function.
    """

    __slots__ = ("_definition", "code", "fixed", "function", "specification")

    def __init__(
        self, code: Code, name: str, arguments: Sequence[Argument], fixed: Sequence[Array] = ()
    ) -> None:
        why = refusal()
        if why or len(arguments) + len(fixed) > MAX_ARGUMENTS:
            raise RuntimeError(why or f"more than {MAX_ARGUMENTS} arrays")
        self.code, self.fixed = code, tuple(fixed)
        answer = ctypes.cast(ctypes.pythonapi.PyLong_FromLong, ctypes.c_void_p).value
        spec = [code.address(name), len(arguments), answer, id(np.ndarray), len(fixed)]
        for shape, dtype in arguments:
            spec += [id(dtype), 0 if shape else id(dtype.type), len(shape), *shape]
        spec += [a.__array_interface__["data"][0] for a in fixed]
        self.specification = np.array(spec, np.int64)
        self._definition = _MethodDef(b"native", _compiled_entry()[1], _METH_FASTCALL, None)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        made = make(ctypes.addressof(self._definition), self.specification, None)
        self.function = _keeping(made, self)


def _keeping(function: object, owner: ArrayCall) -> Any:
    return function
