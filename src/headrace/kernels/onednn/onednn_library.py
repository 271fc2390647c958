"""The library itself: found beside the Python environment, bound with cffi's backend (no compiler
is needed).

Handles are freed by the garbage collector. Calls release the interpreter lock and use OpenMP's
threads.
"""

from __future__ import annotations

import glob
import math
import os
import sys
import sysconfig
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.env import openmp_settings, settings_while_loading
from headrace.kernels.onednn.openmp_waiting import SPINS, OpenMPWaiting
from headrace.runtime.cpu_features import isa_limit
from headrace.runtime.foreign_functions import Functions, make_ffi
from headrace.runtime.openmp_runtime import set_runtime
from headrace.runtime.thread_pool import chosen_threads

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Api", "Refused", "find_library", "load"]

_HEADER = """
const int* dnnl_version(void);
int dnnl_set_max_cpu_isa(int isa);
int dnnl_get_effective_cpu_isa(void);
int dnnl_engine_create(void** engine, int kind, size_t index);
int dnnl_stream_create(void** stream, void* engine, unsigned flags);
int dnnl_memory_desc_create_with_strides(void** desc, int rank, const int64_t* dims, int type, const
    int64_t* strides);
int dnnl_memory_desc_create_with_tag(void** desc, int rank, const int64_t* dims, int type, int tag);
size_t dnnl_memory_desc_get_size(const void* desc);
int dnnl_memory_desc_equal(const void* a, const void* b);
int dnnl_memory_desc_destroy(void* desc);
int dnnl_lstm_forward_primitive_desc_create(void** desc, void* engine, int kind, int direction,
    const void* src_layer,
    const void* src_iter, const void* src_iter_c, const void* weights_layer, const void*
    weights_iter,
    const void* weights_peephole, const void* weights_projection, const void* bias, const void*
    dst_layer,
    const void* dst_iter, const void* dst_iter_c, unsigned flags, const void* attr);
int dnnl_memory_create(void** memory, const void* desc, void* engine, void* data);
int dnnl_memory_set_data_handle(void* memory, void* data);
int dnnl_memory_destroy(void* memory);
int dnnl_primitive_attr_create(void** attr);
int dnnl_primitive_attr_set_post_ops(void* attr, const void* ops);
int dnnl_primitive_attr_set_scratchpad_mode(void* attr, int mode);
int dnnl_primitive_attr_set_scales_mask(void* attr, int arg, int mask);
int dnnl_primitive_attr_destroy(void* attr);
int dnnl_post_ops_create(void** ops);
int dnnl_post_ops_append_eltwise(void* ops, int kind, float alpha, float beta);
int dnnl_post_ops_append_sum(void* ops, float scale, int32_t zero_point, int type);
int dnnl_post_ops_append_binary(void* ops, int kind, const void* desc);
int dnnl_post_ops_destroy(void* ops);
int dnnl_binary_primitive_desc_create(
    void** desc, void* engine, int kind, const void* src0, const void* src1, const void* dst, const
    void* attr);
int dnnl_eltwise_forward_primitive_desc_create(
    void** desc, void* engine, int prop, int kind, const void* src, const void* dst, float alpha,
    float beta,
    const void* attr);
int dnnl_eltwise_backward_primitive_desc_create(
    void** desc, void* engine, int kind, const void* diff_src, const void* diff_dst, const void*
    data, float alpha,
    float beta, const void* hint, const void* attr);
int dnnl_matmul_primitive_desc_create(
    void** desc, void* engine, const void* src, const void* weights, const void* bias, const void*
    dst,
    const void* attr);
int dnnl_reorder_primitive_desc_create(
    void** desc, const void* src, void* src_engine, const void* dst, void* dst_engine, const void*
    attr);
int dnnl_softmax_forward_primitive_desc_create(
    void** desc, void* engine, int prop, int kind, const void* src, const void* dst, int axis, const
    void* attr);
int dnnl_softmax_backward_primitive_desc_create(
    void** desc, void* engine, int kind, const void* diff_src, const void* diff_dst, const void*
    dst, int axis,
    const void* hint, const void* attr);
int dnnl_layer_normalization_forward_primitive_desc_create(
    void** desc, void* engine, int prop, const void* src, const void* dst, const void* statistics,
    float epsilon,
    unsigned flags, const void* attr);
int dnnl_layer_normalization_backward_primitive_desc_create(
    void** desc, void* engine, int prop, const void* diff_src, const void* diff_dst, const void*
    src,
    const void* statistics, float epsilon, unsigned flags, const void* hint, const void* attr);
int dnnl_batch_normalization_forward_primitive_desc_create(
    void** desc, void* engine, int prop, const void* src, const void* dst, float epsilon, unsigned
    flags,
    const void* attr);
int dnnl_batch_normalization_backward_primitive_desc_create(
    void** desc, void* engine, int prop, const void* diff_src, const void* diff_dst, const void*
    src, float epsilon,
    unsigned flags, const void* hint, const void* attr);
int dnnl_reduction_primitive_desc_create(
    void** desc, void* engine, int kind, const void* src, const void* dst, float p, float epsilon,
    const void* attr);
const void* dnnl_primitive_desc_query_md(const void* desc, int what, int index);
int dnnl_primitive_desc_query(const void* desc, int what, int index, void* result);
int dnnl_convolution_forward_primitive_desc_create(
    void** desc, void* engine, int prop, int kind, const void* src, const void* weights, const void*
    bias,
    const void* dst, const int64_t* strides, const int64_t* dilates, const int64_t* before, const
    int64_t* after,
    const void* attr);
int dnnl_convolution_backward_data_primitive_desc_create(
    void** desc, void* engine, int kind, const void* diff_src, const void* weights, const void*
    diff_dst,
    const int64_t* strides, const int64_t* dilates, const int64_t* before, const int64_t* after,
    const void* hint,
    const void* attr);
int dnnl_convolution_backward_weights_primitive_desc_create(
    void** desc, void* engine, int kind, const void* src, const void* diff_weights, const void*
    diff_bias,
    const void* diff_dst, const int64_t* strides, const int64_t* dilates, const int64_t* before,
    const int64_t* after, const void* hint, const void* attr);
int dnnl_pooling_forward_primitive_desc_create(
    void** desc, void* engine, int prop, int kind, const void* src, const void* dst, const int64_t*
    strides,
    const int64_t* kernel, const int64_t* dilation, const int64_t* before, const int64_t* after,
    const void* attr);
int dnnl_pooling_backward_primitive_desc_create(
    void** desc, void* engine, int kind, const void* diff_src, const void* diff_dst, const int64_t*
    strides,
    const int64_t* kernel, const int64_t* dilation, const int64_t* before, const int64_t* after,
    const void* hint,
    const void* attr);
int dnnl_primitive_desc_destroy(void* desc);
int dnnl_primitive_create(void** primitive, const void* desc);
int dnnl_primitive_execute(const void* primitive, void* stream, int count, const void* args);
int dnnl_primitive_destroy(void* primitive);
int dnnl_sgemm(
    char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha,
    const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
"""

FLOAT = 3
#: Element-wise and binary operations, and the places of arguments, as oneDNN 3 numbers them.
SQRT, LINEAR, POW = 0x25, 0x26, 0x30
ADD, MUL, SUB = 0x1FFF0, 0x1FFF1, 0x1FFF5
SRC, SRC1, DST, DIFF_SRC, DIFF_DST = 1, 2, 17, 129, 145
RELU, TRAINING = 0x20, 64
POST_OP = 32768
_BUFFERS = {"void*": "char[]", "float*": "float[]"}
WEIGHTS, BIAS, MEAN, VARIANCE, SCALE, SHIFT, WORKSPACE, SCRATCHPAD = 33, 41, 49, 50, 51, 52, 64, 80
DIFF_WEIGHTS, DIFF_BIAS = 161, 169
#: Data types, and what a primitive's description is asked for.
BFLOAT16, INT8 = 2, 5
SRC_DESC, DST_DESC = 129, 133
WEIGHTS_DESC, DIFF_WEIGHTS_DESC, WORKSPACE_DESC, SCRATCHPAD_DESC = 131, 132, 135, 136
INFERENCE, BACKWARD = 96, 128
#: Descriptions of arrays that are kept for the next primitive.
MAX_DESCRIPTIONS = 1024


#: What oneDNN's status numbers say.
_STATUS = {
    1: "out of memory",
    2: "invalid arguments",
    3: "not implemented on this CPU",
    5: "runtime error",
}


class Refused(RuntimeError):
    """oneDNN does not do what it was asked for: callers compute with NumPy."""

    def __init__(self, status: int, what: str) -> None:
        self.status = status
        meaning = _STATUS.get(status, "unknown")
        super().__init__(f"oneDNN refused {what} (status {status}: {meaning})")


class Api:
    """oneDNN's C functions with checks and ownership."""

    def __init__(self, ffi: Any, library: Any, openmp: Any) -> None:
        self.ffi = ffi
        self.c = library
        self.openmp = openmp
        self.tensors: dict[tuple[Any, ...], Any] = {}
        major, minor, patch = (library.dnnl_version()[n] for n in range(3))
        self.version = f"{major}.{minor}.{patch}"
        if major != 3:
            raise ImportError(f"oneDNN {self.version} is installed; Headrace needs version 3")
        limit = isa_limit()
        if limit is not None:
            library.dnnl_set_max_cpu_isa(limit)
        self.isa = int(library.dnnl_get_effective_cpu_isa())
        self.engine = self.make("dnnl_engine_create", None, 1, 0)
        self.stream = self.make("dnnl_stream_create", None, self.engine, 1)

    def set_threads(self, n: int) -> None:
        if self.openmp is not None:
            self.openmp.omp_set_num_threads(n)

    def check(self, status: int, what: str = "a call") -> None:
        if status != 0:
            raise Refused(status, what)

    def make(self, function: str, destroy: str | None, *args: Any) -> Any:
        """Call a ``…_create`` function; the object is destroyed when it is no longer referenced."""
        slot = self.ffi.new("void**")
        self.check(getattr(self.c, function)(slot, *args), function)
        return slot[0] if destroy is None else self.ffi.gc(slot[0], getattr(self.c, destroy))

    def pointer(self, array: Array, kind: str = "void*") -> Any:
        """Where an array's first element lies."""
        if array.flags.c_contiguous and array.dtype.char in "fbBi":  # five times as fast
            return self.ffi.from_buffer(_BUFFERS[kind], array)
        return self.ffi.cast(kind, array.__array_interface__["data"][0])

    def vector(self, n: int) -> Any:
        """The description of n floats."""
        return self.tensor((n,))

    def tensor(
        self, dims: Sequence[int], strides: Sequence[int] | None = None, kind: int = FLOAT
    ) -> Any:
        """The description of an array.

        Strides count elements and are those of C order if left out. Descriptions never change:
        layers of equal sizes share theirs.
        """
        key = (tuple(dims), None if strides is None else tuple(strides), kind)
        found = self.tensors.get(key)
        if found is None:
            if len(self.tensors) >= MAX_DESCRIPTIONS:
                self.tensors.clear()  # (users of one keep a reference)
            found = self.tensors[key] = self._tensor(*key)
        return found

    def _tensor(self, dims: tuple[int, ...], strides: tuple[int, ...] | None, kind: int) -> Any:
        if strides is None:
            strides = tuple([math.prod(dims[i + 1 :]) for i in range(len(dims))])
        new = self.ffi.new
        return self.make(
            "dnnl_memory_desc_create_with_strides",
            "dnnl_memory_desc_destroy",
            len(dims),
            new("int64_t[12]", list(dims)),
            kind,
            new("int64_t[12]", list(strides)),
        )

    def free_tensor(self, dims: Sequence[int], kind: int = FLOAT) -> Any:
        """The description of an array whose layout the primitive chooses."""
        return self.make(
            "dnnl_memory_desc_create_with_tag",
            "dnnl_memory_desc_destroy",
            len(dims),
            self.ffi.new("int64_t[12]", list(dims)),
            kind,
            1,
        )

    def attributes(
        self, after: Sequence[tuple[Any, ...]] = (), scales: Sequence[tuple[int, int]] = ()
    ) -> Any:
        """Scratch memory is the caller's.

        ``after`` as for ``binary``; ``scales`` are (argument, mask).
        """
        attr = self.make("dnnl_primitive_attr_create", "dnnl_primitive_attr_destroy")
        self.check(self.c.dnnl_primitive_attr_set_scratchpad_mode(attr, 1))
        if after:
            self.check(self.c.dnnl_primitive_attr_set_post_ops(attr, self._post_ops(after)))
        for argument, mask in scales:
            self.check(self.c.dnnl_primitive_attr_set_scales_mask(attr, argument, mask))
        return attr

    def description(self, what: str, *args: Any) -> Any:
        """``dnnl_<what>_primitive_desc_create`` on the engine."""
        return self.make(
            f"dnnl_{what}_primitive_desc_create", "dnnl_primitive_desc_destroy", self.engine, *args
        )

    def query(self, description: object, what: int) -> Any:
        """A memory description that a primitive's description holds (and owns).

        NULL if there is none.
        """
        return self.c.dnnl_primitive_desc_query_md(description, what, 0)

    def memory(self, desc: object) -> Any:
        return self.make(
            "dnnl_memory_create", "dnnl_memory_destroy", desc, self.engine, self.ffi.NULL
        )

    def binary(
        self, kind: int, src0: object, src1: object, dst: object, after: list[tuple[Any, ...]]
    ) -> Any:
        """A binary primitive with operations after it.

        ("eltwise", kind, a, b), ("sum", scale), ("binary", kind, desc).
        """
        ops = self._post_ops(after)
        attr = self.make("dnnl_primitive_attr_create", "dnnl_primitive_attr_destroy")
        self.check(self.c.dnnl_primitive_attr_set_post_ops(attr, ops))
        desc = self.make(
            "dnnl_binary_primitive_desc_create",
            "dnnl_primitive_desc_destroy",
            self.engine,
            kind,
            src0,
            src1,
            dst,
            attr,
        )
        return self.make("dnnl_primitive_create", "dnnl_primitive_destroy", desc)

    def _post_ops(self, after: Sequence[tuple[Any, ...]]) -> Any:
        ops = self.make("dnnl_post_ops_create", "dnnl_post_ops_destroy")
        for what, *args in after:
            if what == "eltwise":
                self.check(self.c.dnnl_post_ops_append_eltwise(ops, *args))
            elif what == "sum":
                self.check(self.c.dnnl_post_ops_append_sum(ops, args[0], 0, 0))
            else:
                self.check(self.c.dnnl_post_ops_append_binary(ops, *args))
        return ops

    def arguments(self, *pairs: tuple[int, Any]) -> Any:
        """An array of dnnl_exec_arg_t: an int, padded to 8 bytes, and a pointer."""
        address = self.ffi.cast
        return self.ffi.new(
            "int64_t[][2]", [[place, int(address("intptr_t", m))] for place, m in pairs]
        )

    def execute(self, primitive: object, args: Any) -> None:
        self.check(self.c.dnnl_primitive_execute(primitive, self.stream, len(args), args))


def load() -> Api:
    """Find and open the library; ImportError says what is missing."""
    ffi = make_ffi()
    path = find_library()
    try:
        with settings_while_loading(**openmp_settings(chosen_threads().count, SPINS)):
            library = Functions(ffi, path, _HEADER)
    except OSError as error:
        raise ImportError(
            f"oneDNN cannot be loaded ({error}); it needs the system's libgomp"
        ) from None
    openmp = _openmp()
    threads = chosen_threads().count
    if openmp is not None and threads > 1:
        set_runtime(openmp)
        OpenMPWaiting(openmp, threads).watch()
    return Api(ffi, library, openmp)


def find_library() -> str:
    """Where the library lies; ImportError if it is not installed."""
    folders = [os.path.join(sys.prefix, "lib"), sysconfig.get_config_var("LIBDIR") or "", *sys.path]
    for folder in folders:
        for pattern in ("libdnnl.so.3", "libdnnl.so", os.path.join("..", "..", "libdnnl.so.3")):
            found = glob.glob(os.path.join(folder, pattern))
            if found:
                return found[0]
    raise ImportError("oneDNN is not installed: pip install headrace")


def _openmp() -> Any:
    import ctypes

    try:
        return ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None
