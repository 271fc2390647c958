"""TF 2's ``tf.saved_model``."""

from headrace.api.missing import late, module_getattr

LAZY_NAMES = late(
    {
        "headrace.formats.saved_model": (
            "ASSETS_DIRECTORY ASSETS_KEY SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT "
            "SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME contains_saved_model"
        ),
        "headrace.formats.saved_model_load": "load=load_v2",
        "headrace.formats.saved_model_save": "save",
        "headrace.formats.signatures": (
            "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES "
            "DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS "
            "REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS"
        ),
    }
)

__all__ = [*LAZY_NAMES]

__getattr__ = module_getattr("saved_model", __name__, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
