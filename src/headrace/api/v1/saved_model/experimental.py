"""``tf.saved_model.experimental``."""

from headrace.api.missing import module_getattr

__getattr__ = module_getattr("saved_model.experimental", __name__)
