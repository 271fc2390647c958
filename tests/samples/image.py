"""Samples of the image ops.

Files, resizing, cropping, colours, boxes. The pictures are in tests/golden/images.
"""

import io
import os

import numpy as np

from tests.samples.base import Sample, f32, i32, strings

FOLDER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "images"
)


def picture(name):
    with open(os.path.join(FOLDER, name), "rb") as f:
        return strings(f.read())


def near(most):
    """Pixels that differ by at most so much: another version of the JPEG library decodes."""

    def check(got, want):
        assert got[0].shape == want[0].shape and got[0].dtype == want[0].dtype
        assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= most

    return check


def same_picture(most):
    """Files of the same pixels, decoded by Pillow."""

    def check(got, want):
        from PIL import Image

        files = [np.asarray(x[0], object).item() for x in (got, want)]
        a, b = (np.asarray(Image.open(io.BytesIO(f))).astype(int) for f in files)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= most

    return check


def decode(op, name, check=None, **attrs):
    return Sample(op, dict(contents=picture(name)), attrs, check=check)


def size(*dims):
    return np.array(dims, np.int32)


def u8(*shape):
    return i32(*shape, low=0, high=256).astype(np.uint8)


def resize(op, image, height, width, **kw):
    grad = ["images"] if image.dtype.kind == "f" and op != "ResizeArea" else []
    return Sample(
        op, dict(images=image, size=size(height, width)), kw, grad=grad, const=["size"], single=True
    )


def resized(image, method_flags):
    out = []
    for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"):
        for height, width in ((3, 4), (10, 8)):
            for flags in method_flags:
                out.append(resize(op, image, height, width, **flags))
    return out


KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian"] + [
    "box",
    "triangle",
    "keyscubic",
    "mitchellcubic",
]
FLAGS = [{}, dict(align_corners=True), dict(half_pixel_centers=True)]
IMAGE = f32(2, 5, 6, 3, low=0, high=1)
COLORS = f32(3, 4, 3, low=0.05, high=0.95)
GRAYS = np.tile(f32(2, 4, 1, low=0, high=1), (1, 1, 3))
BLACK = np.zeros((1, 2, 3), np.float32)
# No point of these falls on a pixel: there the slope would have a step.
BOXES = np.array(
    [[0.11, 0.23, 0.81, 0.93], [0.43, 0.57, 0.21, 0.13], [0.07, 0.03, 0.97, 0.83]], np.float32
)
OUTSIDE = np.array([[-0.3, 0.1, 1.2, 0.7], [0.1, 0.2, 0.8, 0.9]], np.float32)
DRAWN = np.array(
    [
        [[0.1, 0.2, 0.8, 0.9], [-0.3, 0.1, 1.2, 0.7], [0.5, 0.5, 0.2, 0.1]],
        [[1.1, 0, 1.4, 1], [0, 0.3, 0.5, 1.3], [0.2, 0.2, 0.2, 0.2]],
    ],
    np.float32,
)
FOUND = f32(12, 4, low=0, high=1)
SCORES = f32(12, low=0, high=1)
OVERLAPS = f32(5, 5, low=0, high=1)
OVERLAPS = np.maximum(OVERLAPS, OVERLAPS.T) * (1 - np.eye(5, dtype=np.float32)) + np.eye(
    5, dtype=np.float32
)


def crops(image, boxes, which, crop, grad=(), **attrs):
    return Sample(
        "CropAndResize",
        dict(image=image, boxes=boxes, box_ind=np.array(which, np.int32), crop_size=size(*crop)),
        attrs,
        grad=grad,
        const=["crop_size"],
        single=True,
    )


def scalar(value):
    return np.float32(value)


def nms(version, extra, **attrs):
    inputs = dict(boxes=FOUND, scores=SCORES, max_output_size=np.int32(6))
    inputs.update((k, scalar(v)) for k, v in extra.items())
    return Sample("NonMaxSuppression" + version, inputs, attrs)


def distorted(op, boxes, extra=None, **attrs):
    inputs = dict(image_size=size(100, 120, 3), bounding_boxes=boxes)
    inputs.update(extra or {})
    return Sample(op, inputs, dict(attrs, seed=4, seed2=9))


OBJECTS = np.array([[[0.1, 0.2, 0.6, 0.9], [0.5, 0.1, 0.9, 0.3]]], np.float32)

SAMPLES = (
    [
        decode("DecodeJpeg", "444.jpg", near(1)),
        decode("DecodeJpeg", "444.jpg", near(1), channels=1),
        decode("DecodeJpeg", "420.jpg", near(6)),
        decode("DecodeJpeg", "420.jpg", near(1), fancy_upscaling=False),
        decode("DecodeJpeg", "420.jpg", near(1), dct_method="INTEGER_ACCURATE"),
        decode("DecodeJpeg", "444.jpg", near(1), ratio=2),
        decode("DecodeJpeg", "gray.jpg", near(1), channels=3),
        decode("DecodeJpeg", "rgb.png"),
        decode("DecodePng", "rgb.png"),
        decode("DecodePng", "rgb.png", channels=1),
        decode("DecodePng", "rgb.png", channels=4),
        decode("DecodePng", "rgb.png", dtype="uint16"),
        decode("DecodePng", "rgba.png"),
        decode("DecodePng", "rgba.png", channels=3),
        decode("DecodePng", "gray.png"),
        decode("DecodePng", "gray.png", channels=3),
        decode("DecodePng", "gray_alpha.png"),
        decode("DecodePng", "gray_alpha.png", channels=1),
        decode("DecodePng", "gray_alpha.png", channels=4),
        decode("DecodePng", "gray16.png", dtype="uint16"),
        decode("DecodePng", "gray16.png"),
        decode("DecodePng", "palette.png"),
        decode("DecodePng", "palette.png", channels=1),
        decode("DecodePng", "one.gif"),
        decode("DecodeGif", "one.gif"),
        decode("DecodeGif", "rgb.png"),
        decode("DecodeBmp", "rgb.bmp"),
        decode("DecodeBmp", "rgba.bmp", channels=4),
        decode("DecodeBmp", "gray.bmp"),
        decode("ExtractJpegShape", "420.jpg"),
        decode("ExtractJpegShape", "gray.jpg", output_type="int64"),
        Sample(
            "DecodeAndCropJpeg",
            dict(contents=picture("444.jpg"), crop_window=size(2, 3, 5, 6)),
            check=near(1),
        ),
        Sample("EncodeJpeg", dict(image=u8(8, 9, 3)), check=same_picture(1)),
        Sample(
            "EncodeJpeg",
            dict(image=u8(8, 9, 1)),
            dict(quality=50, format="grayscale"),
            check=same_picture(1),
        ),
        Sample(
            "EncodeJpeg",
            dict(image=u8(8, 9, 3)),
            dict(chroma_downsampling=False, progressive=True),
            check=same_picture(1),
        ),
        Sample(
            "EncodeJpegVariableQuality",
            dict(images=u8(8, 9, 3), quality=np.int32(40)),
            check=same_picture(1),
        ),
        Sample("EncodePng", dict(image=u8(8, 9, 3))),  # byte for byte
        Sample("EncodePng", dict(image=u8(8, 9, 2)), dict(compression=9)),
        Sample("EncodePng", dict(image=u8(8, 9, 1).astype(np.uint16) * 200)),
    ]
    + resized(IMAGE, FLAGS)
    + resized(u8(1, 7, 5, 1), FLAGS[:2])
    + [
        resize("ResizeArea", IMAGE, 3, 4),
        resize("ResizeArea", u8(1, 7, 5, 1), 9, 2, align_corners=True),
        resize("ResizeBilinear", f32(1, 40, 3, 2), 3, 3),
        resize("ResizeBilinear", f32(1, 4, 3, 2), 1, 1, align_corners=True),
        Sample(
            "ResizeBilinearGrad",
            dict(grads=f32(2, 3, 7, 3), original_image=IMAGE),
            grad=["grads"],
            single=True,
        ),
        Sample(
            "ResizeBilinearGrad",
            dict(grads=f32(2, 3, 7, 3), original_image=IMAGE),
            dict(half_pixel_centers=True),
        ),
        Sample(
            "ResizeBicubicGrad",
            dict(grads=f32(2, 3, 7, 3), original_image=IMAGE),
            grad=["grads"],
            single=True,
        ),
        Sample(
            "ResizeBicubicGrad",
            dict(grads=f32(2, 3, 7, 3), original_image=IMAGE),
            dict(align_corners=True),
        ),
        *[
            Sample(
                "ScaleAndTranslate",
                dict(
                    images=IMAGE,
                    size=size(*wanted),
                    scale=np.array(scale, np.float32),
                    translation=np.array(shift, np.float32),
                ),
                dict(kernel_type=kernel, antialias=antialias),
                grad=["images"],
                single=True,
                id="%s-%s-%d" % (kernel, "x".join(map(str, wanted)), antialias),
            )
            for kernel in KERNELS
            for antialias in (False, True)
            for wanted, scale, shift in (
                ((3, 4), (0.6, 0.7), (0, 0)),
                ((8, 9), (1.5, 1.4), (1, -2)),
            )
        ],
        Sample(
            "ScaleAndTranslateGrad",
            dict(
                grads=IMAGE[:, :3],
                original_image=IMAGE,
                scale=np.array([0.6, 1.2], np.float32),
                translation=np.array([0, 0.5], np.float32),
            ),
            dict(kernel_type="lanczos3", antialias=True),
        ),
        Sample(
            "ResizeNearestNeighborGrad",
            dict(grads=f32(2, 8, 3, 3), size=size(5, 6)),
            grad=["grads"],
        ),
        Sample(
            "ResizeNearestNeighborGrad",
            dict(grads=f32(2, 8, 9, 3), size=size(5, 6)),
            dict(align_corners=True),
        ),
        crops(IMAGE, BOXES, [0, 1, 1], (3, 4), grad=["image", "boxes"]),
        crops(IMAGE, BOXES, [0, 1, 1], (1, 1), grad=["image"]),
        crops(IMAGE, OUTSIDE, [1, 0], (7, 2), extrapolation_value=-1.0),
        crops(u8(1, 5, 6, 1), OUTSIDE, [0, 0], (3, 3), method="nearest"),
        Sample(
            "CropAndResizeGradImage",
            dict(
                grads=f32(2, 3, 4, 3),
                boxes=OUTSIDE,
                box_ind=np.array([1, 0], np.int32),
                image_size=size(2, 5, 6, 3),
            ),
            dict(T="float32"),
        ),
        Sample(
            "CropAndResizeGradImage",
            dict(
                grads=f32(2, 3, 4, 3),
                boxes=OUTSIDE,
                box_ind=np.array([1, 0], np.int32),
                image_size=size(2, 5, 6, 3),
            ),
            dict(T="float32", method="nearest"),
        ),
        Sample(
            "CropAndResizeGradBoxes",
            dict(
                grads=f32(2, 3, 4, 3),
                image=IMAGE,
                boxes=OUTSIDE,
                box_ind=np.array([1, 0], np.int32),
            ),
            tol=1e-5,
            why="sums of many float32 products, in another order",
        ),
        Sample("RGBToHSV", dict(images=COLORS), grad=["images"]),
        Sample("RGBToHSV", dict(images=np.concatenate([GRAYS, BLACK.repeat(2, 1)]))),
        Sample("HSVToRGB", dict(images=COLORS)),
        Sample("AdjustHue", dict(images=COLORS, delta=scalar(0.3))),
        Sample(
            "AdjustHue",
            dict(images=np.concatenate([GRAYS, BLACK.repeat(2, 1)]), delta=scalar(-0.7)),
        ),
        Sample("AdjustSaturation", dict(images=COLORS, scale=scalar(0.4))),
        Sample("AdjustSaturation", dict(images=COLORS, scale=scalar(3.0))),
        Sample(
            "AdjustContrastv2",
            dict(images=IMAGE, contrast_factor=scalar(1.7)),
            grad=["images", "contrast_factor"],
            single=True,
        ),
        Sample(
            "AdjustContrastv2", dict(images=COLORS.astype(np.float16), contrast_factor=scalar(0.5))
        ),
        nms("", {}, iou_threshold=0.3),
        nms("V2", dict(iou_threshold=0.3)),
        nms("V3", dict(iou_threshold=0.2, score_threshold=0.3)),
        nms("V4", dict(iou_threshold=0.2, score_threshold=0.3), pad_to_max_output_size=True),
        nms("V4", dict(iou_threshold=0.2, score_threshold=0.3)),
        nms("V5", dict(iou_threshold=0.2, score_threshold=0.3, soft_nms_sigma=0.0)),
        nms(
            "V5",
            dict(iou_threshold=0.4, score_threshold=0.1, soft_nms_sigma=0.5),
            pad_to_max_output_size=True,
        ),
        Sample(
            "NonMaxSuppressionWithOverlaps",
            dict(
                overlaps=OVERLAPS,
                scores=SCORES[:5],
                max_output_size=np.int32(5),
                overlap_threshold=scalar(0.5),
                score_threshold=scalar(0.0),
            ),
        ),
        Sample("DrawBoundingBoxes", dict(images=np.zeros((2, 6, 8, 3), np.float32), boxes=DRAWN)),
        Sample("DrawBoundingBoxes", dict(images=np.zeros((2, 6, 8, 1), np.float32), boxes=DRAWN)),
        Sample(
            "DrawBoundingBoxesV2",
            dict(images=np.zeros((2, 6, 8, 3), np.float32), boxes=DRAWN, colors=f32(2, 3)),
        ),
        distorted("SampleDistortedBoundingBox", OBJECTS, min_object_covered=0.5),
        distorted(
            "SampleDistortedBoundingBox",
            OBJECTS[:, :0],
            use_image_if_no_bounding_boxes=True,
            area_range=[0.2, 0.6],
            aspect_ratio_range=[0.5, 2.0],
        ),
        distorted("SampleDistortedBoundingBoxV2", OBJECTS, dict(min_object_covered=scalar(0.9))),
        Sample(
            "ExtractGlimpse",
            dict(input=f32(2, 9, 8, 2), size=size(3, 4), offsets=f32(2, 2, low=-0.2, high=0.2)),
            const=["size"],
        ),
    ]
)
