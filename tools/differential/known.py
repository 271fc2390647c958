"""Differences that are meant, or that are no property of TensorFlow's API: they are listed apart
and not counted.

Each rule has the reason that the report prints. docs/meaning.md says the ones that a user may meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.differential.render import decoded, plain_array

#: Functions whose result depends on how numbers are ordered.
_ORDERED = {
    "max",
    "min",
    "argmax",
    "argmin",
    "sort",
    "argsort",
    "top",
    "suppression",
    "relu",
    "relu6",
    "clip",
    "at",
    "hsv",
    "maximum",
    "minimum",
    "quant",
}
#: Functions that sum products, some of them with zeros that stand for padding or for nothing.
_SUMS_OF_PRODUCTS = {
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "resize",
    "solve",
    "inverse",
    "det",
    "expm",
    "fft",
    "fft2d",
    "fft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
    "irfft",
    "ifft",
    "ifft2d",
    "cholesky",
    "svd",
    "lrn",
    "qr",
    "mfcc",
    "ctc",
    "determinant",
    "dct",
    "idct",
    "translate",
}
#: Functions of two or three numbers that have no value where one of them is NaN or infinite.
_SPECIAL = {"betainc", "zeta", "igamma", "igammac", "polygamma", "digamma"}


def known(
    case: dict[str, Any], kind: str, theirs: dict[str, Any], ours: dict[str, Any]
) -> str | None:
    """Why a difference is expected, or None."""
    if case.get("program"):
        return _program(case, kind, theirs, ours)
    if kind == "values":
        return _noise(case, theirs, ours) or _values(case, theirs, ours)
    if kind in ("accepted", "error") and theirs.get("text"):
        return _accident(case, kind, theirs)
    return None


def _program(
    case: dict[str, Any], kind: str, theirs: dict[str, Any], ours: dict[str, Any]
) -> str | None:
    if kind == "values" and case["special"] and _finite_numbers_agree(theirs, ours):
        return "what becomes of an infinity or a NaN in TensorFlow's vector code"
    return _accident(case, kind, theirs) if kind in ("accepted", "error") else None


def _words(case: dict[str, Any]) -> list[str]:
    """The words of the function's name: of ``raw_ops.Conv2DBackpropInput`` conv2d, backprop,
    input.
    """
    name = case["fn"].rpartition(".")[2]
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    text = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", text)
    words = re.sub(r"(\d)_d(?=_|$)", r"\1d", text.lower()).strip("_").split("_")
    return [w[:-2] if re.fullmatch(r"[a-z]+v\d", w) else w for w in words]


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


def _values(case: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    floats = [a for a in _arrays(case) if a.dtype.kind in "fcV" or str(a.dtype) == "bfloat16"]
    words, kwargs = set(_words(case)), case["kwargs"]
    if "random" in words and kwargs.get("seed", {"v": 0}) == {"k": "py", "v": None}:
        return "no seed: TensorFlow draws other numbers each time"
    if theirs.get("xla") and words & {"random", "shuffle"}:
        return (
            f"no CPU kernel for {theirs['xla'][0]}: TensorFlow's XLA device draws its own numbers"
        )
    with np.errstate(all="ignore"):
        if any(not np.isfinite(a).all() for a in floats):
            why = _not_finite(floats, words, theirs, ours)
            if why is not None:
                return why
        if any(_has_denormals(a) for a in floats):
            return "TensorFlow takes denormals for zero"
    if {"fused", "batch", "norm"} <= words and kwargs.get("is_training", {}).get("v") is False:
        return "TensorFlow leaves the other outputs unset"
    if {"euclidean", "norm"} <= words and case.get("grad"):
        return "TensorFlow 1.15 has no gradient of EuclideanNorm"
    if {"euclidean", "norm"} <= words and _equal_but_for_signs(theirs, ours):
        return "TensorFlow takes the norm of a single number for the number"
    if "top" in words:
        return "with sorted=False the order is not defined"
    if {"dynamic", "stitch"} <= words:
        return "TensorFlow leaves rows that no index names unset"
    if words & {"svd", "eig", "qr"} and _equal_but_for_signs(
        {**theirs, "grads": []}, {**ours, "grads": []}
    ):
        return "singular vectors and eigenvectors have no sign"
    if words == {"decode", "padded", "raw"}:
        return "TensorFlow 1.15 places the rows of wider types wrongly"
    if words == {"rsqrt"} and any((a == 0).any() for a in floats):
        return "TensorFlow's vector code gives infinity for -0"
    if {"cross", "entropy"} <= words and case.get("grad") and theirs["values"] == ours["values"]:
        return "TensorFlow's second derivative of cross entropy leaves the labels out"
    if words & {"rfft2d", "rfft3d", "irfft2d", "irfft3d"} and any(a.size == 0 for a in floats):
        return "TensorFlow leaves transforms of nothing unset"
    if "sparse" in words and kwargs.get("adjoint_a", {}).get("v") and floats[0].dtype.kind == "c":
        return "TensorFlow does not conjugate the sparse matrix"
    if "depthwise" in words and max(kwargs.get("dilations", {"v": [1]})["v"]) > 1:
        return "TensorFlow's CPU kernel ignores dilations"
    if {"gather"} <= words and case.get("grad") and kwargs.get("batch_dims", {}).get("v"):
        return "TensorFlow 1.15's gradient of gather with batch_dims takes the wrong rows"
    if words == {"matrix", "inverse"} and case.get("grad") and kwargs.get("adjoint", {}).get("v"):
        return "TensorFlow's gradient of matrix_inverse forgets the adjoint"
    if words == {"expm1"} and floats and floats[0].dtype.kind == "c":
        return "TensorFlow's complex expm1 is wrong where |Im x| > pi"
    return None


def _not_finite(
    floats: list[Any], words: set[str], theirs: dict[str, Any], ours: dict[str, Any]
) -> str | None:
    """Why results of numbers that are not finite differ; numbers that are finite on both sides
    must agree, except where elements change places.
    """
    if any(np.isnan(a).any() for a in floats) and words & _ORDERED:
        return "NaN has no place in an order: TensorFlow's answer depends on its position"
    if not _finite_numbers_agree(theirs, ours):
        return None
    if any(not np.isfinite(a).all() for a in floats if a.dtype.kind == "c"):
        return "products of infinite complex numbers are not defined alike"
    if words & _SUMS_OF_PRODUCTS:
        return "whether padding is multiplied (0 * inf is NaN) or left out"
    if words & _SPECIAL:
        return "special functions of numbers that are not finite"
    if words & {"sqrt", "selu", "elu"}:
        return "TensorFlow's vector code gives NaN for an infinity"
    if theirs.get("xla"):
        return f"no CPU kernel for {theirs['xla'][0]}: what TensorFlow's XLA device makes of it"
    return None


def _pairs(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The arrays of both outcomes, side by side; None where one has none."""
    for part in ("values", "grads"):
        if len(theirs[part]) != len(ours[part]):
            yield None, np.zeros(1)
        for t, o in zip(theirs[part], ours[part]):
            if t is None or o is None or t[:2] != o[:2]:
                yield t, o
            elif t[0] not in ("text", "string", "bool"):
                wide = np.complex128 if t[0].startswith("complex") else np.float64
                yield decoded(t).astype(wide), decoded(o).astype(wide)


def _finite_numbers_agree(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    for t, o in _pairs(theirs, ours):
        if not isinstance(t, np.ndarray) or not isinstance(o, np.ndarray):
            if t is not o:
                return False
            continue
        both = np.isfinite(t) & np.isfinite(o)
        if not np.allclose(o[both], t[both], 2e-2, 1e-2):
            return False
    return True


def _equal_but_for_signs(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """The same absolute values."""
    for t, o in _pairs(theirs, ours):
        if not isinstance(t, np.ndarray) or not isinstance(o, np.ndarray):
            if t is not o:
                return False
        elif not np.allclose(np.abs(o), np.abs(t), 1e-3, 1e-4):
            return False
    return True


def _has_denormals(a: Any) -> bool:
    small = np.abs(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64))
    limit = 6e-5 if a.dtype == np.float16 else 1.2e-38
    return bool(((small > 0) & (small < limit)).any())


#: Texts of errors that come from the way TensorFlow is written, not from what it means to refuse.
_ACCIDENTS = {
    "'NoneType'": "TensorFlow computes with an unknown rank",
    "(type NoneType)": "TensorFlow computes with an unknown rank",
    "data type not understood": "TensorFlow compares an array's dtype with its own",
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
    "incompatible with expected": "TensorFlow's graph has an edge of two types",
    "does not have value": "a rewrite of TensorFlow's fetches what a dead branch did not compute",
    "Cannot update edge, incompatible shapes": "TensorFlow forbids what its gradient does",
    "does not have output": "a rewrite of TensorFlow's drops outputs that are used",
}


#: What Headrace computes and TensorFlow's CPU kernels refuse.
_WIDER = {
    r"No gradient defined for operation": "TensorFlow 1.15 has no such gradient",
    r"no way to take the second derivative": "TensorFlow 1.15 has no such gradient",
    r"only support(s|ed)( for)?( the)? N(D?)HWC|Only NHWC data_format": (
        "TensorFlow's CPU kernels take the channels last"
    ),
    r"No OpKernel was registered to support Op 'MaxPoolGradGradWithArgmax'": (
        "TensorFlow has no CPU kernel for this operation"
    ),
    r"only supports dilated rates of 1|do not yet support dilation rates": (
        "TensorFlow's CPU kernel has no dilation"
    ),
}


def _accident(case: dict[str, Any], kind: str, theirs: dict[str, Any]) -> str | None:
    text = theirs["text"]
    for part, why in _ACCIDENTS.items():
        if part in text:
            return why
    if re.match(r"'(list|tuple|numpy\.\w+|int|float|str|bool)' object has no attribute", text):
        return "TensorFlow reads an attribute that arrays do not have"
    if kind == "accepted":
        for pattern, why in _WIDER.items():
            if re.search(pattern, text):
                return why
    if kind == "error" and "No gradient defined for operation" in text:
        return "TensorFlow 1.15 has no such gradient"
    mixed = r"type (int|float)(32|64) that does not match type (int|float)(32|64)"
    if theirs["stage"] == "gradient" and re.search(mixed, text):
        return "TensorFlow's gradient mixes types"
    if case.get("grad") and "Indices and updates specified for empty output shape" in text:
        return "TensorFlow's gradient of gather_nd takes no empty indices"
    fed = any(v.get("k") in ("ph", "made") for v in [*case["args"], *case["kwargs"].values()])
    if text.startswith("can't split axis of size") and fed:
        return "TensorFlow takes a fed axis for the last one"
    if theirs.get("xla") and theirs["stage"] == "run":
        return f"no CPU kernel for {theirs['xla'][0]}: TensorFlow's XLA device refuses it"
    return None


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
