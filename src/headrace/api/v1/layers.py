"""``tf.layers``."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.layers.base import InputSpec, Layer
from headrace.layers.batch_norm_layer import BatchNormalization, batch_normalization
from headrace.layers.conv import Conv1D, Conv2D, Conv3D, conv1d, conv2d, conv3d
from headrace.layers.conv_separable import (
    SeparableConv1D,
    SeparableConv2D,
    separable_conv1d,
    separable_conv2d,
)
from headrace.layers.conv_transposed import (
    Conv2DTranspose,
    Conv3DTranspose,
    conv2d_transpose,
    conv3d_transpose,
)
from headrace.layers.dense import Dense, dense
from headrace.layers.dropout_layers import Dropout, Flatten, dropout, flatten
from headrace.layers.pooling_layers import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "BatchNormalization", "Conv1D",
    "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "Dropout", "Flatten",
    "InputSpec", "Layer", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "SeparableConv1D",
    "SeparableConv2D", "average_pooling1d", "average_pooling2d", "average_pooling3d",
    "batch_normalization", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "dense", "dropout", "flatten", "max_pooling1d", "max_pooling2d", "max_pooling3d",
    "separable_conv1d", "separable_conv2d",
]  # fmt: skip

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1 import layers_experimental as experimental

    __all__ += ["experimental"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "layers", __name__, modules={"experimental": "headrace.api.v1.layers_experimental"}
    )
