"""The library itself: found beside the Python environment, bound with cffi in ABI mode (no compiler is needed).

Handles are freed by the garbage collector. Calls release the interpreter lock and use OpenMP's threads.
"""

from __future__ import annotations

import glob
import os
import sys
import sysconfig
from typing import Any

__all__ = ["Api", "load"]

_HEADER = """
typedef struct { int arg; void* memory; } dnnl_exec_arg_t;
typedef struct { int major; int minor; int patch; const char* hash; unsigned cpu_runtime; unsigned gpu_runtime; }
    dnnl_version_t;
const dnnl_version_t* dnnl_version(void);
int dnnl_engine_create(void** engine, int kind, size_t index);
int dnnl_stream_create(void** stream, void* engine, unsigned flags);
int dnnl_memory_desc_create_with_strides(void** desc, int rank, const int64_t* dims, int type, const int64_t* strides);
int dnnl_memory_desc_destroy(void* desc);
int dnnl_memory_create(void** memory, const void* desc, void* engine, void* data);
int dnnl_memory_set_data_handle(void* memory, void* data);
int dnnl_memory_destroy(void* memory);
int dnnl_primitive_attr_create(void** attr);
int dnnl_primitive_attr_set_post_ops(void* attr, const void* ops);
int dnnl_primitive_attr_destroy(void* attr);
int dnnl_post_ops_create(void** ops);
int dnnl_post_ops_append_eltwise(void* ops, int kind, float alpha, float beta);
int dnnl_post_ops_append_sum(void* ops, float scale, int32_t zero_point, int type);
int dnnl_post_ops_append_binary(void* ops, int kind, const void* desc);
int dnnl_post_ops_destroy(void* ops);
int dnnl_binary_primitive_desc_create(
    void** desc, void* engine, int kind, const void* src0, const void* src1, const void* dst, const void* attr);
int dnnl_eltwise_forward_primitive_desc_create(
    void** desc, void* engine, int prop, int kind, const void* src, const void* dst, float alpha, float beta,
    const void* attr);
int dnnl_eltwise_backward_primitive_desc_create(
    void** desc, void* engine, int kind, const void* diff_src, const void* diff_dst, const void* data, float alpha,
    float beta, const void* hint, const void* attr);
int dnnl_primitive_desc_destroy(void* desc);
int dnnl_primitive_create(void** primitive, const void* desc);
int dnnl_primitive_execute(const void* primitive, void* stream, int count, const dnnl_exec_arg_t* args);
int dnnl_primitive_destroy(void* primitive);
int dnnl_sgemm(
    char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
    const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
"""

FLOAT = 3
#: Element-wise and binary operations, and the places of arguments, as oneDNN 3 numbers them.
SQRT, LINEAR, POW = 0x25, 0x26, 0x30
MUL = 0x1FFF1
SRC, SRC1, DST, DIFF_SRC, DIFF_DST = 1, 2, 17, 129, 145
RELU, TRAINING = 0x20, 64
POST_OP = 32768


class Api:
    """oneDNN's C functions with checks and ownership."""

    def __init__(self, ffi: Any, library: Any, openmp: Any) -> None:
        self.ffi = ffi
        self.c = library
        self.openmp = openmp
        v = library.dnnl_version()
        self.version = f"{v.major}.{v.minor}.{v.patch}"
        if v.major != 3:
            raise ImportError(f"oneDNN {self.version} is installed; Headrace needs version 3")
        self.engine = self.make("dnnl_engine_create", None, 1, 0)
        self.stream = self.make("dnnl_stream_create", None, self.engine, 1)

    def set_threads(self, n: int) -> None:
        if self.openmp is not None:
            self.openmp.omp_set_num_threads(n)

    def check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"oneDNN refused a call (status {status})")

    def make(self, function: str, destroy: str | None, *args: Any) -> Any:
        """Call a ``…_create`` function; the object is destroyed when it is no longer referenced."""
        slot = self.ffi.new("void**")
        self.check(getattr(self.c, function)(slot, *args))
        return slot[0] if destroy is None else self.ffi.gc(slot[0], getattr(self.c, destroy))

    def pointer(self, array: Any, kind: str = "void*") -> Any:
        return self.ffi.cast(kind, array.__array_interface__["data"][0])

    def vector(self, n: int) -> Any:
        """The description of n floats."""
        dims, strides = self.ffi.new("int64_t[12]", [n]), self.ffi.new("int64_t[12]", [1])
        return self.make(
            "dnnl_memory_desc_create_with_strides",
            "dnnl_memory_desc_destroy",
            1,
            dims,
            FLOAT,
            strides,
        )

    def memory(self, desc: Any) -> Any:
        return self.make(
            "dnnl_memory_create", "dnnl_memory_destroy", desc, self.engine, self.ffi.NULL
        )

    def binary(
        self, kind: int, src0: Any, src1: Any, dst: Any, after: list[tuple[Any, ...]]
    ) -> Any:
        """A binary primitive with operations after it: ("eltwise", kind, a, b), ("sum", scale), ("binary", kind, desc)."""
        ops = self.make("dnnl_post_ops_create", "dnnl_post_ops_destroy")
        for what, *args in after:
            if what == "eltwise":
                self.check(self.c.dnnl_post_ops_append_eltwise(ops, *args))
            elif what == "sum":
                self.check(self.c.dnnl_post_ops_append_sum(ops, args[0], 0, 0))
            else:
                self.check(self.c.dnnl_post_ops_append_binary(ops, *args))
        attr = self.make("dnnl_primitive_attr_create", "dnnl_primitive_attr_destroy")
        self.check(self.c.dnnl_primitive_attr_set_post_ops(attr, ops))
        desc = self.make(
            "dnnl_binary_primitive_desc_create", "dnnl_primitive_desc_destroy",
            self.engine, kind, src0, src1, dst, attr,
        )  # fmt: skip
        return self.make("dnnl_primitive_create", "dnnl_primitive_destroy", desc)

    def eltwise_gradient(self, kind: int, size: int) -> tuple[Any, tuple[Any, ...]]:
        """The backward primitive of an element-wise function, and what must live as long as it."""
        desc, null = self.vector(size), self.ffi.NULL
        forward = self.make(
            "dnnl_eltwise_forward_primitive_desc_create", "dnnl_primitive_desc_destroy",
            self.engine, TRAINING, kind, desc, desc, 0.0, 0.0, null,
        )  # fmt: skip
        backward = self.make(
            "dnnl_eltwise_backward_primitive_desc_create", "dnnl_primitive_desc_destroy",
            self.engine, kind, desc, desc, desc, 0.0, 0.0, forward, null,
        )  # fmt: skip
        primitive = self.make("dnnl_primitive_create", "dnnl_primitive_destroy", backward)
        return primitive, (desc, forward, backward)

    def arguments(self, *pairs: tuple[int, Any]) -> Any:
        return self.ffi.new("dnnl_exec_arg_t[]", list(pairs))

    def execute(self, primitive: Any, args: Any) -> None:
        self.check(self.c.dnnl_primitive_execute(primitive, self.stream, len(args), args))


def load() -> Api:
    """Find and open the library; ImportError says what is missing."""
    try:
        from cffi import FFI
    except ImportError:
        raise ImportError("oneDNN needs the package cffi: pip install 'headrace[onednn]'") from None
    path = _find()
    ffi = FFI()
    ffi.cdef(_HEADER)
    try:
        library = ffi.dlopen(path)
    except OSError as error:
        raise ImportError(
            f"oneDNN cannot be loaded ({error}); it needs the system's libgomp"
        ) from None
    return Api(ffi, library, _openmp())


def _find() -> str:
    folders = [os.path.join(sys.prefix, "lib"), sysconfig.get_config_var("LIBDIR") or "", *sys.path]
    for folder in folders:
        for pattern in ("libdnnl.so.3", "libdnnl.so", os.path.join("..", "..", "libdnnl.so.3")):
            found = glob.glob(os.path.join(folder, pattern))
            if found:
                return found[0]
    raise ImportError("oneDNN is not installed: pip install 'headrace[onednn]'")


def _openmp() -> Any:
    import ctypes

    try:
        return ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None
