"""Kernels compiled with LLVM (``llvmlite``) for the CPU that the process runs on.

The parts, from the bottom up:

- ``llvm_library``: is LLVM there, and why not; IR text to machine code, with the disk cache.
- ``object_cache``: machine code in files.
- ``ir_builder``: IR written through typed values with Python's operators.
- ``vector_math``: exp, log, tanh, … of vectors.
- ``element_loops``: a kernel from a function of one element.
- ``kernel``: a compiled kernel called with arrays, over the process's threads.

Everything works without: ``available()`` is None then, ``status()`` says why, and callers compute
with NumPy. Nothing here is imported before a step has proved hot.

A kernel of your own:

    from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
    from headrace.kernels.native.kernel import Kernel
    from headrace.kernels.native.llvm_library import available

    if available() is not None:
        source = element_loop("f", [Access("f32"), Access("f32", "scalar")], [Access("f32")],
                              lambda f, v: [v[0] * v[1] + 1.0])
        kernel = Kernel(source, "f")          # compiled once a machine, then from the cache
        kernel.run([x, factor, out], [], x.size, GRAIN)

Rules: no two roundings become one unless ``fma`` is written; NaN, infinities and signed zeros as in
NumPy; an item's bits depend neither on its neighbours nor on the number of threads.
"""

from __future__ import annotations
