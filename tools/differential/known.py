"""Differences that are meant, or that are no property of TensorFlow's API: they are listed apart
and not counted.

Each rule has the reason that the report prints. docs/meaning.md says the ones that a user may meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.differential.render import decoded, plain_array

#: Functions whose result depends on how numbers are ordered.
_ORDERED = (
    "max",
    "min",
    "argmax",
    "argmin",
    "sort",
    "argsort",
    "top_k",
    "non_max_suppression",
    "relu",
    "leaky_relu",
    "clip",
    "_at_k",
)


def known(
    case: dict[str, Any], kind: str, theirs: dict[str, Any], ours: dict[str, Any]
) -> str | None:
    """Why a difference is expected, or None."""
    if kind == "values":
        return _noise(case, theirs, ours) or _values(case)
    if kind in ("accepted", "error") and theirs.get("text"):
        return _accident(theirs)
    return None


def _noise(case: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """What a glimpse shows outside of its picture; what it shows of the picture is the same."""
    if case["fn"] != "image.extract_glimpse":
        return None
    picture = max(_arrays(case), key=lambda a: a.size)
    t, o = decoded(theirs["values"][0]), decoded(ours["values"][0])
    noisy = ~np.isin(t, picture) & ~np.isnan(t)
    if t.shape != o.shape or not noisy.any() or not np.array_equal(t[~noisy], o[~noisy], True):
        return None
    return "TensorFlow does not seed the noise around a picture"


def _values(case: dict[str, Any]) -> str | None:
    floats = [a for a in _arrays(case) if a.dtype.kind in "fcV" or str(a.dtype) == "bfloat16"]
    name = case["fn"].rpartition(".")[2]
    if "random" in name and case["kwargs"].get("seed", {"v": 0}) == {"k": "py", "v": None}:
        return "no seed: TensorFlow draws other numbers each time"
    with np.errstate(all="ignore"):
        if any(np.isnan(a).any() for a in floats) and any(o in name for o in _ORDERED):
            return "NaN has no place in an order: TensorFlow's answer depends on its position"
        if any(_has_denormals(a) for a in floats):
            return "TensorFlow takes denormals for zero"
        if any(not np.isfinite(a).all() for a in floats if a.dtype.kind == "c"):
            return "products of infinite complex numbers are not defined alike"
        if any(not np.isfinite(a).all() for a in floats) and _multiplies_by_zero(name):
            return "whether padding is multiplied (0 * inf is NaN) or left out"
    if name == "fused_batch_norm" and case["kwargs"].get("is_training", {}).get("v") is False:
        return "TensorFlow leaves the other outputs unset"
    if name == "reduce_euclidean_norm" and case["grad"]:
        return "TensorFlow 1.15 has no gradient of EuclideanNorm"
    if name == "top_k":
        return "with sorted=False the order is not defined"
    if name == "dynamic_stitch":
        return "TensorFlow leaves rows that no index names unset"
    if name == "expm1" and floats and floats[0].dtype.kind == "c":
        return "TensorFlow's complex expm1 is wrong where |Im x| > pi"
    return None


def _multiplies_by_zero(name: str) -> bool:
    return any(
        w in name
        for w in (
            "conv",
            "resize",
            "solve",
            "inverse",
            "det",
            "expm",
            "fft",
            "cholesky",
            "svd",
            "lrn",
        )
    )


def _has_denormals(a: Any) -> bool:
    small = np.abs(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64))
    limit = 6e-5 if a.dtype == np.float16 else 1.2e-38
    return bool(((small > 0) & (small < limit)).any())


#: Texts of errors that come from the way TensorFlow is written, not from what it means to refuse.
_ACCIDENTS = {
    "'NoneType'": "TensorFlow computes with an unknown rank",
    "data type not understood": "TensorFlow compares an array's dtype with its own",
    "has no attribute": "TensorFlow reads an attribute that arrays do not have",
    "No registered '": "a rewrite of TensorFlow's made an op that has no kernel",
    "Seen floating point types of different precisions": "XLA refuses its own program",
    "in op convolution": "XLA refuses its own program",
    "Cannot colocate nodes": "a type without a CPU kernel, half of it placed on XLA_CPU",
    "node ConstantFolding/": "a rewrite of TensorFlow's made an op that has no such type",
    "/ArithmeticOptimizer/": "a rewrite of TensorFlow's made an op that has no such type",
    "No cast function available.": "NumPy cannot cast to TensorFlow's bfloat16",
    "list index out of range": "TensorFlow indexes its own list beyond its end",
    "Unsupported tensor type: 22": "TensorFlow cannot read back its own uint32 constants",
    "Unsupported tensor type: 23": "TensorFlow cannot read back its own uint64 constants",
    "Incompatible shapes between op input and calculated input gradient": (
        "TensorFlow's gradient forgets the broadcast"
    ),
    "No gradient defined for operation 'SegmentProd'": "TensorFlow has no such gradient",
}


def _accident(theirs: dict[str, Any]) -> str | None:
    return next((why for text, why in _ACCIDENTS.items() if text in theirs["text"]), None)


def _arrays(case: dict[str, Any]) -> Iterator[Any]:
    waiting: list[Any] = [*case["args"], *case["kwargs"].values()]
    while waiting:
        v = waiting.pop()
        if not isinstance(v, dict):
            continue
        if "data" in v and v["dtype"] != "string":
            yield plain_array(v)
        waiting += [x for x in v.values() if isinstance(x, dict)]
        for part in ("v", "args"):
            if isinstance(v.get(part), list):
                waiting += v[part]
