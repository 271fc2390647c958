"""What differs between two outcomes of a case: TensorFlow's and ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.differential.known import known
from tools.differential.render import decoded

#: Kinds of difference, in the order of the report.
KINDS = {
    "accepted": "accepted here, refused by TensorFlow",
    "refused": "refused here, accepted by TensorFlow",
    "values": "other values",
    "error": "another error class",
    "static": "another static shape or dtype",
    "crash": "crash or hang here",
    "known": "differences that are meant, and TensorFlow's accidents (not counted)",
    "missing": "names that Headrace does not have yet (not counted as compared)",
}

#: Relative and absolute tolerance by dtype.
TOLERANCES = {
    "float16": (1e-2, 2e-3),
    "bfloat16": (4e-2, 1e-2),
    "float32": (2e-4, 2e-5),
    "float64": (1e-7, 1e-9),
    "complex64": (2e-4, 2e-5),
    "complex128": (1e-7, 1e-9),
}

Outcome = dict[str, Any]


def difference(case: dict[str, Any], theirs: Outcome, ours: Outcome) -> tuple[str, str] | None:
    """(kind, what) or None where the outcomes agree. Cases that kill TensorFlow are not
    compared.
    """
    found = _difference(case, theirs, ours)
    if found is None:
        return None
    why = known(case, found[0], theirs, ours)
    return found if why is None else ("known", f"{found[0]}: {why}: {found[1]}")


def _difference(case: dict[str, Any], theirs: Outcome, ours: Outcome) -> tuple[str, str] | None:
    if theirs["stage"] in ("crash", "hang"):
        return None
    if ours["stage"] in ("crash", "hang"):
        return "crash", ours["error"]
    if theirs["stage"] != "ok" and ours["stage"] != "ok":
        if "Headrace does not have it yet" in ours["text"]:
            return "missing", ours["text"]
        return _errors(theirs, ours)
    if theirs["stage"] != "ok":
        return "accepted", f"TensorFlow ({theirs['stage']}): {theirs['error']}: {theirs['text']}"
    if ours["stage"] != "ok":
        if "Headrace does not have it yet" in ours["text"]:
            return "missing", ours["text"]
        return "refused", f"({ours['stage']}): {ours['error']}: {ours['text']}"
    if len(theirs["static"]) != len(ours["static"]) or not all(
        _at_least_as_known(t, o) for t, o in zip(theirs["static"], ours["static"])
    ):
        return "static", f"{ours['static']}, TensorFlow: {theirs['static']}"
    for part in ("values", "grads"):
        wrong = _values(case, theirs[part], ours[part])
        if wrong is not None:
            return "values", f"{part}: {wrong}"
    return None


def _at_least_as_known(theirs: list[Any], ours: list[Any]) -> bool:
    """The same dtype, and a shape that says all that TensorFlow's says.

    Knowing more is no difference.
    """
    if theirs[0] != ours[0]:
        return False
    if theirs[1] is None:
        return True
    if ours[1] is None or len(ours[1]) != len(theirs[1]):
        return False
    return all(t is None or t == o for t, o in zip(theirs[1], ours[1]))


def _errors(theirs: Outcome, ours: Outcome) -> tuple[str, str] | None:
    if theirs["error"] == ours["error"]:
        return None
    return (
        "error",
        f"({ours['stage']}) {ours['error']}: {ours['text']}\n"
        f"    TensorFlow ({theirs['stage']}) {theirs['error']}: {theirs['text']}",
    )


def _values(case: dict[str, Any], theirs: list[Any], ours: list[Any]) -> str | None:
    if len(theirs) != len(ours):
        return f"{len(ours)} results, TensorFlow: {len(theirs)}"
    for i, (t, o) in enumerate(zip(theirs, ours)):
        if (t is None) != (o is None):
            return f"{i}: {o and decoded(o)!r}, TensorFlow: {t and decoded(t)!r}"
        if t is None:
            continue
        if t[:2] != o[:2]:
            return f"{i}: {o[:2]}, TensorFlow: {t[:2]}"
        if case["compare"] and not same(
            decoded(t), decoded(o), case.get("loose", 1), case["fn"].startswith("image.")
        ):
            return f"{i}: {_shown(o)}, TensorFlow: {_shown(t)}"
    return None


def same(theirs: Any, ours: Any, loose: float = 1, single: bool = False) -> bool:
    """Equal up to the tolerance of the dtype (``single``.

    Of float32, where that is what TensorFlow computes in); NaN equals NaN, denormals equal zero.
    """
    if isinstance(theirs, str) or theirs.dtype.kind in "Obiu":
        return bool(np.all(theirs == ours))
    name = "float32" if single and theirs.dtype == np.float64 else str(theirs.dtype)
    rtol, atol = TOLERANCES[name]
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        t, o = theirs.astype(wide), ours.astype(wide)
        size = np.abs(t[np.isfinite(t)])
        scale = min(float(size.max()), 1e3) if size.size else 1.0
        close = np.isclose(o, t, rtol * loose, atol * loose * max(scale, 1.0), equal_nan=True)
        if wide is np.complex128:
            close |= np.isnan(t) & np.isnan(o)
    return bool(np.all(close))


def _shown(value: list[Any]) -> str:
    array = decoded(value)
    text = repr(array.tolist() if hasattr(array, "tolist") else array)
    return f"{value[0]} {text if len(text) < 300 else text[:300] + '…'}"
