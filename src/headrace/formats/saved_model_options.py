"""``tf.saved_model.SaveOptions`` and ``LoadOptions``: what of them there is on one machine.

    save(module, folder, options=SaveOptions(function_aliases={"main": module.f}))

An option that would change what is written and is not done here is refused when it is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["LoadOptions", "SaveOptions"]

_HERE = (None, "/job:localhost", "/job:localhost/replica:0/task:0")


def _check_io_device(device: str | None) -> None:
    if device not in _HERE and not str(device).upper().endswith("CPU:0"):
        raise ValueError(
            f"experimental_io_device={device!r}: files are read and written by this process; leave "
            "the option out, or use '/job:localhost'"
        )


class SaveOptions:
    """Options of ``tf.saved_model.save``.

    ``function_aliases``: names by which tools find a ``tf.function`` in the saved model.
    """

    def __init__(
        self,
        namespace_whitelist: Sequence[str] | None = None,
        save_debug_info: bool = False,
        function_aliases: Mapping[str, object] | None = None,
        experimental_io_device: str | None = None,
    ) -> None:
        _check_io_device(experimental_io_device)
        if save_debug_info:
            raise ValueError("save_debug_info=True: Headrace does not write debug information")
        #: Namespaces of custom ops that may be saved; there are no custom ops here to refuse.
        self.namespace_whitelist = list(namespace_whitelist or ())
        self.save_debug_info = save_debug_info
        self.function_aliases = dict(function_aliases or {})
        self.experimental_io_device = experimental_io_device


class LoadOptions:
    """Options of ``tf.saved_model.load``.

    ``allow_partial_checkpoint``: variables that the checkpoint lacks are zeros instead of an error;
    ``experimental_skip_checkpoint``: all are, and tables that change are empty.
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
    ) -> None:
        _check_io_device(experimental_io_device)
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
