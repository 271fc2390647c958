"""``tf.saved_model.signature_def_utils``."""

from headrace.formats.signatures import (
    build_signature_def,
    classification_signature_def,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
)

__all__ = [
    "build_signature_def", "classification_signature_def", "is_valid_signature",
    "predict_signature_def", "regression_signature_def",
]  # fmt: skip
