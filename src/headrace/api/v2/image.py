"""``tf.image``: decoding, resizing and changing images, with TF 2's signatures and sampling."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.array.image_patches import extract_image_patches_v2 as extract_patches
from headrace.ops.image.boxes import (
    draw_bounding_boxes_v2 as draw_bounding_boxes, non_max_suppression,
    non_max_suppression_overlaps, non_max_suppression_padded_v2 as non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from headrace.ops.image.color_adjust import (
    adjust_brightness, adjust_contrast, adjust_gamma, adjust_hue,
    adjust_jpeg_quality_v2 as adjust_jpeg_quality, adjust_saturation, per_image_standardization,
    random_brightness, random_contrast, random_hue, random_jpeg_quality, random_saturation,
)
from headrace.ops.image.color_convert import (
    convert_image_dtype, grayscale_to_rgb, rgb_to_grayscale, rgb_to_yiq, rgb_to_yuv, yiq_to_rgb,
    yuv_to_rgb,
)
from headrace.ops.image.color_ops import hsv_to_rgb, rgb_to_hsv
from headrace.ops.image.combined_suppression import combined_non_max_suppression
from headrace.ops.image.crop_and_resize import crop_and_resize
from headrace.ops.image.distorted_box import (
    sample_distorted_bounding_box_v2 as sample_distorted_bounding_box,
)
from headrace.ops.image.encode import (
    decode_and_crop_jpeg, decode_bmp, decode_gif, decode_image, decode_jpeg, decode_png,
    encode_jpeg, encode_png, extract_jpeg_shape, is_jpeg,
)
from headrace.ops.image.geometry import (
    central_crop, crop_to_bounding_box, flip_left_right, flip_up_down, pad_to_bounding_box,
    random_flip_left_right, random_flip_up_down,
    resize_image_with_crop_or_pad as resize_with_crop_or_pad, rot90, transpose_image as transpose,
)
from headrace.ops.image.glimpses import extract_glimpse_v2 as extract_glimpse
from headrace.ops.image.image_metrics import (
    image_gradients, psnr, sobel_edges, ssim_multiscale, ssim_v2 as ssim, total_variation,
)
from headrace.ops.image.resize_images import (
    resize_image_with_pad_v2 as resize_with_pad, resize_images_v2 as resize,
    ResizeMethodV2 as ResizeMethod,
)
from headrace.ops.random.random_ops import random_crop

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_jpeg_quality",
    "adjust_saturation", "central_crop", "combined_non_max_suppression", "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image",
    "decode_jpeg", "decode_png", "draw_bounding_boxes", "encode_jpeg", "encode_png",
    "extract_glimpse", "extract_jpeg_shape", "extract_patches", "flip_left_right", "flip_up_down",
    "grayscale_to_rgb", "hsv_to_rgb", "image_gradients", "is_jpeg", "non_max_suppression",
    "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "pad_to_bounding_box", "per_image_standardization", "psnr",
    "random_brightness", "random_contrast", "random_crop", "random_flip_left_right",
    "random_flip_up_down", "random_hue", "random_jpeg_quality", "random_saturation", "resize",
    "resize_with_crop_or_pad", "resize_with_pad", "ResizeMethod", "rgb_to_grayscale",
    "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90", "sample_distorted_bounding_box",
    "sobel_edges", "ssim", "ssim_multiscale", "total_variation", "transpose", "yiq_to_rgb",
    "yuv_to_rgb",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("image", __name__)
