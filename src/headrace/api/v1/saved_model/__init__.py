"""``tf.saved_model``: models with their variables, assets and signatures."""

# fmt: off

import typing as _typing

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

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1.saved_model import builder as builder
    from headrace.api.v1.saved_model import constants as constants
    from headrace.api.v1.saved_model import experimental as experimental
    from headrace.api.v1.saved_model import loader as loader
    from headrace.api.v1.saved_model import main_op as main_op
    from headrace.api.v1.saved_model import signature_constants as signature_constants
    from headrace.api.v1.saved_model import signature_def_utils as signature_def_utils
    from headrace.api.v1.saved_model import tag_constants as tag_constants
    from headrace.api.v1.saved_model import utils as utils
    from headrace.api.v1.saved_model.loader import load as load
    from headrace.api.v1.saved_model.loader import (
        maybe_saved_model_directory as maybe_saved_model_directory,
    )
    from headrace.api.v1.saved_model.main_op import main_op_with_restore as main_op_with_restore
    from headrace.api.v1.saved_model.tag_constants import GPU as GPU
    from headrace.api.v1.saved_model.tag_constants import SERVING as SERVING
    from headrace.api.v1.saved_model.tag_constants import TPU as TPU
    from headrace.api.v1.saved_model.tag_constants import TRAINING as TRAINING
    from headrace.formats.saved_model import ASSETS_DIRECTORY as ASSETS_DIRECTORY
    from headrace.formats.saved_model import ASSETS_KEY as ASSETS_KEY
    from headrace.formats.saved_model import LEGACY_INIT_OP_KEY as LEGACY_INIT_OP_KEY
    from headrace.formats.saved_model import MAIN_OP_KEY as MAIN_OP_KEY
    from headrace.formats.saved_model import SAVED_MODEL_FILENAME_PB as SAVED_MODEL_FILENAME_PB
    from headrace.formats.saved_model import (
        SAVED_MODEL_FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT,
    )
    from headrace.formats.saved_model import (
        SAVED_MODEL_SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION,
    )
    from headrace.formats.saved_model import VARIABLES_DIRECTORY as VARIABLES_DIRECTORY
    from headrace.formats.saved_model import VARIABLES_FILENAME as VARIABLES_FILENAME
    from headrace.formats.saved_model import SavedModelBuilder as Builder
    from headrace.formats.saved_model import contains_saved_model as contains_saved_model
    from headrace.formats.saved_model import simple_save as simple_save
    from headrace.formats.saved_model_load import load_v2 as load_v2
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
    from headrace.formats.signatures import build_signature_def as build_signature_def
    from headrace.formats.signatures import build_tensor_info as build_tensor_info
    from headrace.formats.signatures import (
        classification_signature_def as classification_signature_def,
    )
    from headrace.formats.signatures import (
        get_tensor_from_tensor_info as get_tensor_from_tensor_info,
    )
    from headrace.formats.signatures import is_valid_signature as is_valid_signature
    from headrace.formats.signatures import predict_signature_def as predict_signature_def
    from headrace.formats.signatures import regression_signature_def as regression_signature_def

    __all__ += ["Builder"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("saved_model", __name__, modules=LAZY_MODULES, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
