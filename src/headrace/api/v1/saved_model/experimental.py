"""``tf.saved_model.experimental``."""

from headrace.api.missing import module_getattr

__getattr__ = module_getattr(
    "saved_model.experimental", __name__, names={"save": "headrace.formats.saved_model_save:save"}
)
