"""``tf.saved_model.builder``."""

from headrace.formats.saved_model import SavedModelBuilder

__all__ = ["SavedModelBuilder"]
