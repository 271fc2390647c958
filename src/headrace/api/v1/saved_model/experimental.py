"""``tf.saved_model.experimental``."""

import typing as _typing

from headrace.api.missing import module_getattr

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.formats.saved_model_save import save as save
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "saved_model.experimental",
        __name__,
        names={"save": "headrace.formats.saved_model_save:save"},
    )
