"""Kernel libraries under the NumPy executor. oneDNN is what TensorFlow itself computes with."""

from __future__ import annotations

from typing import Any

from headrace.env import onednn_wanted
from headrace.kernels import accel

__all__ = ["install"]


def _load() -> Any:
    if not onednn_wanted():
        raise ImportError("switched off by HEADRACE_ONEDNN")
    from headrace.kernels.onednn import OneDnn

    return OneDnn()


def install() -> None:
    """Make oneDNN available to the array functions; it is loaded when the first large case
    comes.
    """
    accel.register(_load)
