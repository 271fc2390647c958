"""Which of oneDNN's ways to a matrix product is faster on this CPU, for the shapes that sgemm.py
and product_primitives.py choose by.

    python -m tools.product_choices
    python -m tests.instruction_sets avx2 tools.product_choices

One line a shape: how many times as fast the other way is as ``dnnl_sgemm`` (all threads, the best
of many, taking turns); products with packed weights as a convolution and by matmul; activations in
the product's own pass and by compiled code behind it. The rules in
kernels/onednn/product_choices.py follow.
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
#: Packed weights, and rows of activations behind 512 columns.
PACKED = [
    (1, 784, 512),
    (1, 512, 4096),
    (8, 512, 512),
    (64, 784, 512),
    (64, 256, 10000),
    (512, 512, 512),
    (1280, 200, 800),
    (8192, 256, 768),
]
ROWS = [4, 16, 64, 256]


def array(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def show(
    what: str,
    shape: tuple[int, int, int],
    plain: Callable[[], Any],
    other: Callable[[], Any],
    first: str = "sgemm",
) -> None:
    a, b = fastest([(plain, []), (other, [])], 0.6)
    print(
        f"{what:10} {' x '.join(map(str, shape)):18} {first} {a * 1e3:7.3f} ms, other "
        f"{b * 1e3:7.3f} ms ({a / b:.2f}x)",
        flush=True,
    )


def show_packed(products: Any) -> None:
    """Packed weights: by matmul, and (other) as a convolution."""
    usual = products.choices
    ways = (
        usual._replace(pixel_rows=0, row_elements=0),
        usual._replace(pixel_rows=1 << 30, row_elements=1 << 40, wide=1 << 40),
    )
    for m, k, n in PACKED:
        a, w, bias, out = array(m, k), array(k, n), array(n), np.empty((m, n), np.float32)
        calls = []
        for products.choices in ways:
            packed = products.pack(w, m)
            calls.append(lambda p=packed, a=a, b=bias, o=out: products.product(a, p, b, None, o))
        show("packed", (m, k, n), *calls, first="matmul")
    products.choices = usual


def show_activations(products: Any) -> None:
    """Activations within a product, and (other) by compiled code behind it."""
    try:
        from headrace.kernels.native.activation_loops import apply
    except RuntimeError as error:
        print(f"no compiler: {error}")
        return
    k = n = 512
    w, bias = array(k, n), array(n)
    for name in ("gelu", "tanh", "sigmoid"):
        for m in ROWS:
            a, out = array(m, k), np.empty((m, n), np.float32)
            packed = products.pack(w, m)

            def behind(a: Any = a, p: Any = packed, out: Any = out, name: str = name) -> None:
                products.product(a, p, bias, None, out)
                apply(out, name)

            show(
                name,
                (m, k, n),
                lambda a=a, p=packed, out=out, name=name: products.product(a, p, bias, name, out),
                behind,
                first="inside",
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
    show_packed(products)
    show_activations(products)


if __name__ == "__main__":
    main()
