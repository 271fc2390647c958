"""A product with packed weights as a convolution: the rows are the pixels of one image, and its
windows are one pixel.

oneDNN 3.2 has no matmul primitive of its own for float32 on AVX2. ``matmul`` calls the gemm there,
which packs the weights again in every call and takes further passes for bias and activation; the
convolution keeps packed weights and does everything in one pass. ``product_choices.py`` says for
which shapes it wins.

    >>> description = describe(api, (64, 784), 512, weights, bias=True, after=[])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.kernels.onednn.memory_formats import channels_last, implementation
from headrace.kernels.onednn.onednn_library import INFERENCE, Api

__all__ = ["as_image", "describe", "filter_dims", "is_fast", "plain_filter"]

_DIRECT = 1
_WINDOW = ([1, 1], [0, 0], [0, 0], [0, 0])  # strides, dilations, padding before and after


def as_image(api: Api, shape: Sequence[int]) -> Any:
    """The description of a contiguous matrix whose rows are pixels."""
    return api.tensor(*channels_last((1, 1, *shape)))


def filter_dims(k: int, n: int) -> tuple[int, int, int, int]:
    """Of the weights, in oneDNN's order."""
    return n, k, 1, 1


def plain_filter(api: Api, k: int, n: int) -> Any:
    """The description of a contiguous k by n matrix as a filter."""
    return api.tensor(filter_dims(k, n), (1, n, 1, 1))


def describe(
    api: Api, left: Sequence[int], n: int, weights: object, bias: bool, after: Sequence[Any]
) -> Any:
    """The primitive's description.

    ``after`` as in ``Api.attributes``, with the shape of a matrix for an array.
    """
    steps = [(*s[:2], as_image(api, s[2])) if s[0] == "binary" else s for s in after]
    windows = [api.ffi.new("int64_t[12]", row) for row in _WINDOW]
    return api.description(
        "convolution_forward",
        INFERENCE,
        _DIRECT,
        as_image(api, left),
        weights,
        api.tensor((n,)) if bias else api.ffi.NULL,
        as_image(api, (left[0], n)),
        *windows,
        api.attributes(steps),
    )


def is_fast(api: Api, description: object) -> bool:
    """Whether oneDNN chose the code that the choice was measured with."""
    return implementation(api, description).startswith("brgconv")
