"""``import tensorflow`` gives Headrace, in this process, from :func:`install` to :func:`uninstall`.

A finder at the head of ``sys.meta_path`` answers for ``tensorflow`` and everything below it,
whether or not TensorFlow is installed. Modules that Headrace does not have are a
ModuleNotFoundError that says what they are and what is near.

    import headrace.dropin
    headrace.dropin.install(api="v1")
    import tensorflow.compat.v1 as tf
"""

from __future__ import annotations

import sys
from types import ModuleType

from headrace.api import facades
from headrace.api.v1 import context
from headrace.dropin import removed_names
from headrace.dropin.finder import CORE, ROOT, Finder

__all__ = ["install", "is_installed", "uninstall"]

_APIS = ("v1", "v2")
#: tensorboard takes this module's presence as "do without TensorFlow"; it must not take us for it.
_TENSORBOARD_SWITCH = "tensorboard.compat.notf"

_finder: Finder | None = None


def is_installed() -> bool:
    return _finder is not None


def install(api: str = "v1") -> None:
    """Make ``tensorflow`` mean Headrace. RuntimeError if TensorFlow itself has been imported
    already.

    With ``api="v2"`` the names are TF 2's, and eager execution is turned on. Names that NumPy and
    Python's library have lost since TensorFlow 1 are given back to the program
    (:mod:`headrace.dropin.removed_names`).
    """
    global _finder
    if api not in _APIS:
        raise ValueError(f"api must be one of {', '.join(map(repr, _APIS))}, not {api!r}")
    if _finder is not None:
        return
    if ROOT in sys.modules:
        raise RuntimeError(
            "TensorFlow itself has been imported in this process already: call "
            "headrace.dropin.install() before "
            "anything imports tensorflow, or run the program with `headrace run`"
        )
    facades.use_api(api)
    if api == "v2":
        context.enable_v2_behavior()
    removed_names.install()
    _finder = Finder()
    sys.meta_path.insert(0, _finder)
    if _TENSORBOARD_SWITCH not in sys.modules:
        sys.modules[_TENSORBOARD_SWITCH] = _finder.switch = ModuleType(_TENSORBOARD_SWITCH)


def uninstall() -> None:
    """Undo :func:`install`.

    Forget the modules it made, so that the next import finds TensorFlow itself (or nothing).
    """
    global _finder
    if _finder is None:
        return
    removed_names.uninstall()
    sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n.partition(".")[0] in (CORE, ROOT)]:
        del sys.modules[name]
    if _finder.switch is not None and sys.modules.get(_TENSORBOARD_SWITCH) is _finder.switch:
        del sys.modules[_TENSORBOARD_SWITCH]
    if facades.uses_api("v2"):
        facades.use_api("v1")
        context.disable_v2_behavior()
    _finder = None
