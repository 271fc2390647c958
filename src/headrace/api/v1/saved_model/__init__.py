"""``tf.saved_model``: models with their variables, assets and signatures."""

# fmt: off

from headrace.api.missing import late, module_getattr

LAZY_MODULES = {
    name: f"headrace.api.v1.saved_model.{name}"
    for name in (
        "builder", "constants", "experimental", "loader", "main_op", "signature_constants",
        "signature_def_utils",
        "tag_constants", "utils",
    )
}
LAZY_NAMES = late({
    "headrace.api.v1.saved_model.loader": "load maybe_saved_model_directory",
    "headrace.api.v1.saved_model.main_op": "main_op_with_restore",
    "headrace.api.v1.saved_model.tag_constants": "GPU SERVING TPU TRAINING",
    "headrace.formats.saved_model": (
        "ASSETS_DIRECTORY ASSETS_KEY Builder=SavedModelBuilder LEGACY_INIT_OP_KEY MAIN_OP_KEY "
        "SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION "
        "VARIABLES_DIRECTORY VARIABLES_FILENAME contains_saved_model simple_save"
    ),
    "headrace.formats.saved_model_load": "load_v2",
    "headrace.formats.saved_model_save": "save",
    "headrace.formats.signatures": (
        "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES "
        "DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS "
        "REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS build_signature_def build_tensor_info "
        "classification_signature_def get_tensor_from_tensor_info is_valid_signature "
        "predict_signature_def regression_signature_def"
    ),
})

__all__ = [*LAZY_MODULES, *LAZY_NAMES]

__getattr__ = module_getattr("saved_model", __name__, modules=LAZY_MODULES, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
