"""The environment variables that Headrace reads, all of them."""

from __future__ import annotations

import os

__all__ = ["onednn_wanted"]


def onednn_wanted() -> bool:
    """HEADRACE_ONEDNN=0 leaves oneDNN alone even where it is installed."""
    return os.environ.get("HEADRACE_ONEDNN", "1").lower() not in ("0", "no", "off", "false")
