"""TF 2's ``tf.saved_model``."""

import typing as _typing

from headrace.api.missing import late, module_getattr

LAZY_NAMES = late(
    {
        "headrace.formats.saved_model": (
            "ASSETS_DIRECTORY ASSETS_KEY SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT "
            "SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME contains_saved_model"
        ),
        "headrace.formats.saved_assets": "Asset=SavedAsset",
        "headrace.formats.saved_model_load": "load=load_v2",
        "headrace.formats.saved_model_options": "LoadOptions SaveOptions",
        "headrace.formats.saved_model_save": "save",
        "headrace.formats.signatures": (
            "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES "
            "DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS "
            "REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS"
        ),
    }
)

__all__ = [*LAZY_NAMES]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.formats.saved_assets import SavedAsset as Asset
    from headrace.formats.saved_model import ASSETS_DIRECTORY as ASSETS_DIRECTORY
    from headrace.formats.saved_model import ASSETS_KEY as ASSETS_KEY
    from headrace.formats.saved_model import SAVED_MODEL_FILENAME_PB as SAVED_MODEL_FILENAME_PB
    from headrace.formats.saved_model import (
        SAVED_MODEL_FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT,
    )
    from headrace.formats.saved_model import (
        SAVED_MODEL_SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION,
    )
    from headrace.formats.saved_model import VARIABLES_DIRECTORY as VARIABLES_DIRECTORY
    from headrace.formats.saved_model import VARIABLES_FILENAME as VARIABLES_FILENAME
    from headrace.formats.saved_model import contains_saved_model as contains_saved_model
    from headrace.formats.saved_model_load import load_v2 as load
    from headrace.formats.saved_model_options import LoadOptions as LoadOptions
    from headrace.formats.saved_model_options import SaveOptions as SaveOptions
    from headrace.formats.saved_model_save import save as save
    from headrace.formats.signatures import CLASSIFY_INPUTS as CLASSIFY_INPUTS
    from headrace.formats.signatures import CLASSIFY_METHOD_NAME as CLASSIFY_METHOD_NAME
    from headrace.formats.signatures import CLASSIFY_OUTPUT_CLASSES as CLASSIFY_OUTPUT_CLASSES
    from headrace.formats.signatures import CLASSIFY_OUTPUT_SCORES as CLASSIFY_OUTPUT_SCORES
    from headrace.formats.signatures import (
        DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    )
    from headrace.formats.signatures import PREDICT_INPUTS as PREDICT_INPUTS
    from headrace.formats.signatures import PREDICT_METHOD_NAME as PREDICT_METHOD_NAME
    from headrace.formats.signatures import PREDICT_OUTPUTS as PREDICT_OUTPUTS
    from headrace.formats.signatures import REGRESS_INPUTS as REGRESS_INPUTS
    from headrace.formats.signatures import REGRESS_METHOD_NAME as REGRESS_METHOD_NAME
    from headrace.formats.signatures import REGRESS_OUTPUTS as REGRESS_OUTPUTS

    __all__ += ["Asset", "load"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("saved_model", __name__, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
