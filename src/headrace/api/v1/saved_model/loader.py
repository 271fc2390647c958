"""``tf.saved_model.loader``."""

from headrace.formats.saved_model import SavedModelLoader, load
from headrace.formats.saved_model import contains_saved_model as maybe_saved_model_directory
from headrace.formats.saved_model import read_saved_model as parse_saved_model

__all__ = ["SavedModelLoader", "load", "maybe_saved_model_directory", "parse_saved_model"]
