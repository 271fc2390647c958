"""LLVM through ``llvmlite``: from IR text to an address that can be called.

``load()`` gives the :class:`Llvm` of this process, or raises ImportError with the reason why there
is none: switched off (HEADRACE_NATIVE=0), not installed, a CPU without AVX2, FMA and F16C.
``available()`` answers the same without raising.

Code is made for the CPU that the process runs on, limited as oneDNN is (ONEDNN_MAX_CPU_ISA): with
``AVX2``, LLVM may use no AVX-512. Machine code comes from the disk cache where it has been compiled
before (object_cache.py), and is then loaded without LLVM (object_loader.py).

    >>> llvm = load()
    >>> code = llvm.compile("define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }")
    >>> twice = llvm.function(code, "twice", "int64_t(*)(int64_t)")
    >>> twice(21)
    42
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any, NamedTuple

from headrace.env import cache_folder, cache_limit, native_setting, onednn_isa_setting
from headrace.kernels.native.object_cache import ObjectCache
from headrace.kernels.native.object_loader import CannotLoad, LoadedObject
from headrace.runtime.code_pages import release_code_when_idle
from headrace.runtime.cpu_features import AVX2, AVX512, cpu, setting_bits
from headrace.runtime.foreign_functions import make_ffi

__all__ = ["Code", "Llvm", "available", "load", "status", "why_not"]

#: Part of every key on disk: raise it when the way from IR to code changes.
FORMAT = 2
#: Modules whose code is kept in memory beyond their users.
MAX_MODULES = 256
_AVX512_FAMILIES = ("avx512", "avx10", "amx", "evex512")
_ABOVE_AVX2 = ("avxvnni", "avxifma", "avxneconvert")


class Code:
    """A module's machine code. It stays loaded as long as somebody holds this object."""

    __slots__ = ("_engine", "from_cache", "key", "size")

    def __init__(self, engine: Any, key: str, size: int, from_cache: bool) -> None:
        self._engine, self.key, self.size, self.from_cache = engine, key, size, from_cache

    def address(self, name: str) -> int:
        """Where a function of the module begins."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise LookupError(f"the module has no function {name}")
        return found


class _Host(NamedTuple):
    """LLVM's version, and what it says of the machine."""

    llvm_version: str
    triple: str
    cpu: str
    features: dict[str, bool]


class Llvm:
    """The compiler, for one CPU.

    LLVM is loaded when there is something to compile: code from the cache does without.

    ``vector_bits`` is the width of its registers: 512, 256 or 128. ``features`` is LLVM's list of
    what the CPU has, after the limit.
    """

    def __init__(self) -> None:
        import llvmlite

        self.version = str(llvmlite.__version__)
        self.cache = ObjectCache(_native_folder(), cache_limit())
        host = self._host()
        self.llvm_version, self.triple, self.cpu = host.llvm_version, host.triple, host.cpu
        features = _limited(host.features, onednn_isa_setting())
        self.vector_bits = _vector_bits(features)
        self.features = ",".join(("+" if on else "-") + n for n, on in sorted(features.items()))
        self.ffi = make_ffi()
        self.compiled = 0
        self._lock = threading.RLock()
        self._modules: OrderedDict[str, Code] = OrderedDict()
        about = (FORMAT, self.version, self.llvm_version, self.triple, self.cpu, self.features)
        self._about = hashlib.sha256(repr(about).encode())

    @functools.cached_property
    def binding(self) -> Any:
        """LLVM itself, which is loaded when there is something to compile."""
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        return binding

    @functools.cached_property
    def _machine(self) -> Any:
        return self._new_machine()

    def _host(self) -> _Host:
        """What LLVM says of this machine, from the cache if it has been asked before."""
        machine = cpu()
        known = machine.model, machine.vendor, sorted(machine.flags), machine.max_leaf
        about = FORMAT, self.version, platform.machine(), sys.platform, known
        key = hashlib.sha256(f"host {about!r}".encode()).hexdigest()
        found = self.cache.get(key) if machine.flags else None
        if found is not None:
            return _Host(*json.loads(found))
        binding = self.binding
        host = _Host(
            ".".join(map(str, binding.llvm_version_info)),
            str(binding.get_process_triple()),
            str(binding.get_host_cpu_name()),
            dict(binding.get_host_cpu_features()),
        )
        if machine.flags:
            self.cache.put(key, json.dumps(host).encode())
        return host

    @property
    def name(self) -> str:
        return f"LLVM {self.llvm_version} (llvmlite {self.version}, {self.vector_bits}-bit vectors)"

    def key(self, source: str, vectorize: bool = False) -> str:
        """The name of a module's code: depends on versions, CPU and source alone."""
        made = self._about.copy()
        made.update(f"{int(vectorize)}".encode())
        made.update(source.encode())
        return made.hexdigest()

    def compile(self, source: str, vectorize: bool = False) -> Code:
        """The code of a module of IR text; the same object for the same text.

        ``vectorize``: run LLVM's loop and SLP vectorisers. Loops over explicit vectors
        (ir_builder.py) do not need them and compile faster without.
        """
        key = self.key(source, vectorize)
        with self._lock:
            found = self._modules.get(key)
            if found is not None:
                self._modules.move_to_end(key)
                return found
            machine_code, from_cache = self.cache.get(key), True
            if machine_code is None:
                machine_code, from_cache = self._emit(source, vectorize), False
                self.cache.put(key, machine_code)
            found = self._modules[key] = self._link(key, machine_code, from_cache)
            while len(self._modules) > MAX_MODULES:
                self._modules.popitem(last=False)
        return found

    def function(self, code: Code, name: str, signature: str) -> Any:
        """A function of a module as a cffi function pointer: calls release the interpreter's lock.

        ``signature`` is C's: ``"void(*)(float*, int64_t)"``. The caller holds ``code``.
        """
        return self.ffi.cast(signature, code.address(name))

    def assembly(self, source: str, vectorize: bool = False) -> str:
        """The assembly text, to look at."""
        with self._lock:
            return str(self._machine.emit_assembly(self._optimised(source, vectorize)))

    def _optimised(self, source: str, vectorize: bool) -> Any:
        """The module after LLVM's passes.

        Loops over explicit vectors have little to be improved: two passes do what all of those of
        its first level do, in a sixth of the time.
        """
        binding = self.binding
        module = binding.parse_assembly(source)
        module.triple = self.triple
        options = binding.create_pipeline_tuning_options(speed_level=2 if vectorize else 1)
        builder = binding.create_pass_builder(self._machine, options)
        if vectorize:
            builder.getModulePassManager().run(module, builder)
            return module
        passes = binding.create_new_function_pass_manager()
        passes.add_loop_rotate_pass()
        passes.add_instruction_combine_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        return module

    def _emit(self, source: str, vectorize: bool) -> bytes:
        self.compiled += 1
        made = bytes(self._machine.emit_object(self._optimised(source, vectorize)))
        release_code_when_idle("libllvmlite")
        return made

    def _link(self, key: str, machine_code: bytes, from_cache: bool) -> Code:
        with suppress(CannotLoad):
            return Code(LoadedObject(machine_code), key, len(machine_code), from_cache)
        engine = self.binding.create_mcjit_compiler(
            self.binding.parse_assembly(f'target triple = "{self.triple}"'), self._new_machine()
        )
        engine.add_object_file(self.binding.ObjectFileRef.from_data(machine_code))
        engine.finalize_object()
        return Code(engine, key, len(machine_code), from_cache)

    def _new_machine(self) -> Any:
        """An engine takes its machine over, so each needs its own."""
        target = self.binding.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="default", jit=True
        )


def _native_folder() -> str:
    folder = cache_folder()
    return f"{folder}/native" if folder else ""


def _limited(features: dict[str, bool], setting: str) -> dict[str, bool]:
    """The CPU's features without those that a limit (ONEDNN_MAX_CPU_ISA) excludes."""
    bits = setting_bits(setting)
    excluded: tuple[str, ...] = ("amx",)
    if bits is not None and bits & AVX512 != AVX512:
        excluded = _AVX512_FAMILIES + _ABOVE_AVX2
    if bits is not None and bits & AVX2 != AVX2:
        excluded += ("avx2", "fma")
    return {n: on and not n.startswith(excluded) for n, on in features.items()}


def _vector_bits(features: dict[str, bool]) -> int:
    """The width of vectors; ImportError where LLVM would call functions that are not there."""
    if platform.machine() in ("x86_64", "AMD64"):
        if not all(features.get(f) for f in ("avx2", "fma", "f16c")):
            raise ImportError("native kernels need AVX2, FMA and F16C (or are limited to less)")
        wide = all(features.get(f) for f in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
        return 512 if wide else 256
    if platform.machine() in ("aarch64", "arm64"):
        return 128
    raise ImportError(f"no native kernels for {platform.machine()}")


@functools.cache
def _loaded() -> tuple[Llvm | None, str]:
    if native_setting() == "off":
        return None, "switched off by HEADRACE_NATIVE"
    try:
        made = Llvm()
    except ImportError as error:
        return None, str(error)
    except (OSError, RuntimeError, AttributeError) as error:
        return None, f"llvmlite cannot be used: {error}"
    return made, made.name


def _after_fork() -> None:
    """The thread that held the lock is not there in a forked process."""
    if _loaded.cache_info().currsize and _loaded()[0] is not None:
        load()._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def load() -> Llvm:
    """The compiler of this process, loaded at the first call (about 30 ms)."""
    found, reason = _loaded()
    if found is None:
        raise ImportError(reason)
    return found


def available() -> Llvm | None:
    """The compiler, or None."""
    return _loaded()[0]


def status() -> str:
    """Its name, or why there is none."""
    return _loaded()[1]


def why_not() -> str:
    """Why there is no compiler; empty if there is one."""
    found, reason = _loaded()
    return "" if found is not None else reason
