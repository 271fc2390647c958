"""The older names of ``tensorflow.python.layers.convolutional``."""

from headrace.layers.conv import Conv1D, Conv2D, Conv3D, conv1d, conv2d, conv3d
from headrace.layers.conv_separable import SeparableConv2D, separable_conv2d
from headrace.layers.conv_transposed import (
    Conv2DTranspose,
    Conv3DTranspose,
    conv2d_transpose,
    conv3d_transpose,
)

__all__ = [
    "Convolution1D",
    "Convolution2D",
    "Convolution2DTranspose",
    "Convolution3D",
    "Convolution3DTranspose",
    "Deconv2D",
    "Deconv3D",
    "Deconvolution2D",
    "Deconvolution3D",
    "SeparableConvolution2D",
    "convolution1d",
    "convolution2d",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "deconv2d",
    "deconv3d",
    "deconvolution2d",
    "deconvolution3d",
    "separable_convolution2d",
]

Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
SeparableConvolution2D = SeparableConv2D
Convolution2DTranspose = Deconvolution2D = Deconv2D = Conv2DTranspose
Convolution3DTranspose = Deconvolution3D = Deconv3D = Conv3DTranspose
convolution1d, convolution2d, convolution3d = conv1d, conv2d, conv3d
separable_convolution2d = separable_conv2d
convolution2d_transpose = deconvolution2d = deconv2d = conv2d_transpose
convolution3d_transpose = deconvolution3d = deconv3d = conv3d_transpose
