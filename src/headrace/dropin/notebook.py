"""``%load_ext headrace``: in a notebook, `tensorflow` means Headrace from that cell on.

    %load_ext headrace          # TensorFlow 1.15's API
    import tensorflow as tf

    %headrace v2                # TensorFlow 2's instead; before anything is computed
    %unload_ext headrace        # `import tensorflow` finds TensorFlow itself again

A notebook's later cells are not known when the extension is loaded, so its API is TensorFlow 1's
unless ``%headrace v2`` follows.
"""

from __future__ import annotations

from typing import Any

from headrace import dropin

__all__ = ["load", "unload"]


def load(shell: Any) -> None:
    """Install the drop-in and the line magic ``%headrace``; ``shell`` is IPython's."""
    dropin.install("v1")
    shell.register_magic_function(_choose, magic_kind="line", magic_name="headrace")


def unload(shell: Any) -> None:
    """Undo :func:`load`."""
    dropin.uninstall()
    shell.magics_manager.magics["line"].pop("headrace", None)


def _choose(line: str) -> None:
    """``%headrace v1`` or ``%headrace v2``: which API the next ``import tensorflow`` gives."""
    api = line.strip() or "v1"
    if api not in ("v1", "v2"):
        raise ValueError(f"%headrace takes v1 or v2, not {api!r}")
    dropin.uninstall()
    dropin.install(api)
