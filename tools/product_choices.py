"""Which of oneDNN's ways to a matrix product is faster on this CPU, for the shapes that sgemm.py
and product_primitives.py choose by.

    python -m tools.product_choices
    python -m tests.instruction_sets avx2 tools.product_choices

One line a shape: how many times as fast the other way is as ``dnnl_sgemm`` (all threads, the best
of many, taking turns). The rules in kernels/onednn/product_choices.py follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.kernels import accel
from headrace.kernels.onednn import sgemm
from tools.conv_layouts import fastest

#: Few rows times a large transposed matrix; a transposed left side; a product with a bias.
SWAPPED = [(16, 1024, 3136), (64, 1024, 3136), (96, 1024, 3136), (64, 2048, 2048), (32, 4096, 1024)]
TRANSPOSED = [
    (1024, 256, 256),
    (4096, 1024, 256),
    (4096, 256, 1024),
    (2048, 1024, 1024),
    (1024, 512, 128),
]
BIASED = [
    (64, 784, 512),
    (128, 784, 512),
    (128, 512, 512),
    (512, 512, 512),
    (1024, 256, 1024),
    (128, 256, 10),
]


def array(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def show(
    what: str, shape: tuple[int, int, int], plain: Callable[[], Any], other: Callable[[], Any]
) -> None:
    a, b = fastest([(plain, []), (other, [])], 0.6)
    print(
        f"{what:10} {' x '.join(map(str, shape)):18} sgemm {a * 1e3:7.3f} ms, other "
        f"{b * 1e3:7.3f} ms ({a / b:.2f}x)",
        flush=True,
    )


def main() -> None:
    found: Any = accel.library()
    assert found is not None, accel.status()
    print(found.name)
    api, layouts = found.api, found._layouts
    products = found.fixed.products
    products.choices = products.choices._replace(bias_rows=0, bias_elements=1 << 40)  # always
    biased = products.matmul_bias
    for m, k, n in SWAPPED:
        a, b = array(m, k), array(n, k).T
        show(
            "swapped",
            (m, k, n),
            lambda a=a, b=b: sgemm.matmul(api, a, b, None),
            lambda a=a, b=b: layouts.contiguous(sgemm.matmul(api, b.T, a.T, None).T),
        )
    for m, k, n in TRANSPOSED:
        a, b = array(k, m).T, array(k, n)
        show(
            "transposed",
            (m, k, n),
            lambda a=a, b=b: sgemm.matmul(api, a, b, None),
            lambda a=a, b=b: found.batch_matmul(a, b),
        )
    for m, k, n in BIASED:
        a, b, bias = array(m, k), array(k, n), array(n)

        def filled(a: Any = a, b: Any = b, bias: Any = bias) -> Any:
            out = np.empty((a.shape[0], b.shape[1]), np.float32)
            out[...] = bias
            return sgemm.matmul(api, a, b, out, accumulate=True)

        show("biased", (m, k, n), filled, lambda a=a, b=b, c=bias: biased(a, b, c))


if __name__ == "__main__":
    main()
