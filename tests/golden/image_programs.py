"""Small programs of ``tf.image``: run by ``make_image_programs.py`` in TensorFlow 1.15 and by
``test_image.py`` in Headrace.

A program is a function of (tf, x), x a placeholder that is fed one of the images below. Those in
``RANDOM`` are run three times under a graph-level seed. Runs under Python 3.7 and NumPy 1.18 too.
"""

import numpy as np

_RNG = np.random.RandomState(7)
ONE = _RNG.rand(7, 9, 3).astype(np.float32)
BATCH = _RNG.rand(3, 5, 6, 3).astype(np.float32)
BYTES = (ONE * 255).astype(np.uint8)
GRAY = ONE[:, :, :1]
LARGE = _RNG.rand(2, 16, 18, 1).astype(np.float32)
INPUTS = {"one": ONE, "batch": BATCH, "bytes": BYTES, "gray": GRAY, "large": LARGE}

#: Programs for every kind of image.
COMMON = {
    "flip_left_right": lambda tf, x: tf.image.flip_left_right(x),
    "flip_up_down": lambda tf, x: tf.image.flip_up_down(x),
    "transpose": lambda tf, x: tf.image.transpose_image(x),
    "rot90": lambda tf, x: tf.image.rot90(x),
    "rot180": lambda tf, x: tf.image.rot90(x, 2),
    "rot270": lambda tf, x: tf.image.rot90(x, tf.argmax([0, 0, 0, 1], output_type=tf.int32)),
    "central_crop": lambda tf, x: tf.image.central_crop(x, 0.6),
    "crop": lambda tf, x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 4),
    "pad": lambda tf, x: tf.image.pad_to_bounding_box(x, 1, 2, 10, 12),
    "crop_or_pad": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, 4, 12),
    "pad_or_crop": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, 10, 3),
    "resize": lambda tf, x: tf.image.resize_images(x, [4, 6]),
    "resize_nearest": lambda tf, x: tf.image.resize_images(x, [4, 11], method=1),
    "resize_bicubic": lambda tf, x: tf.image.resize_images(
        x, [4, 6], tf.image.ResizeMethod.BICUBIC, True
    ),
    "resize_area": lambda tf, x: tf.image.resize_images(x, [4, 6], tf.image.ResizeMethod.AREA),
    "resize_keeping_aspect": lambda tf, x: tf.image.resize_images(
        x, [20, 8], preserve_aspect_ratio=True
    ),
    "standardized": lambda tf, x: tf.image.per_image_standardization(x),
    "brightness": lambda tf, x: tf.image.adjust_brightness(x, 0.3),
    "contrast": lambda tf, x: tf.image.adjust_contrast(x, 1.7),
    "hue": lambda tf, x: tf.image.adjust_hue(x, 0.2),
    "saturation": lambda tf, x: tf.image.adjust_saturation(x, 2.0),
    "gamma": lambda tf, x: tf.image.adjust_gamma(x, 0.7, 1.2),
    "to_gray": lambda tf, x: tf.image.rgb_to_grayscale(x),
    "to_uint8": lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True),
    "to_float": lambda tf, x: tf.image.convert_image_dtype(x, tf.float32),
    "to_int16": lambda tf, x: tf.image.convert_image_dtype(x, tf.int16),
}

#: (input, name) -> program.
SPECIAL = {
    ("one", "resize_same"): lambda tf, x: tf.image.resize_images(x, [7, 9]),
    ("bytes", "resize_same"): lambda tf, x: tf.image.resize_images(x, [7, 9]),
    ("one", "resize_with_pad"): lambda tf, x: tf.image.resize_image_with_pad(x, 10, 20),
    ("one", "variation"): lambda tf, x: tf.image.total_variation(x),
    ("batch", "variation"): lambda tf, x: tf.image.total_variation(x),
    ("batch", "rows"): lambda tf, x: tf.image.image_gradients(x)[0],
    ("batch", "columns"): lambda tf, x: tf.image.image_gradients(x)[1],
    ("batch", "sobel"): lambda tf, x: tf.image.sobel_edges(x),
    ("batch", "psnr"): lambda tf, x: tf.image.psnr(x, x * 0.9, 1.0),
    ("one", "to_yiq"): lambda tf, x: tf.image.rgb_to_yiq(x),
    ("one", "from_yiq"): lambda tf, x: tf.image.yiq_to_rgb(x),
    ("one", "to_yuv"): lambda tf, x: tf.image.rgb_to_yuv(x),
    ("one", "from_yuv"): lambda tf, x: tf.image.yuv_to_rgb(x),
    ("one", "hsv"): lambda tf, x: tf.image.rgb_to_hsv(x),
    ("gray", "to_rgb"): lambda tf, x: tf.image.grayscale_to_rgb(x),
    ("large", "ssim"): lambda tf, x: tf.image.ssim(x, x * 0.9 + 0.02, 1.0),
    ("large", "ssim_multiscale"): lambda tf, x: tf.image.ssim_multiscale(
        x, x * 0.9 + 0.02, 1.0, power_factors=(0.2, 0.3, 0.5), filter_size=3
    ),
    ("batch", "crop_and_resize"): lambda tf, x: tf.image.crop_and_resize(
        x, [[0.1, 0.2, 0.8, 0.9]], box_ind=[1], crop_size=[2, 3]
    ),
    ("large", "boxes"): lambda tf, x: tf.image.draw_bounding_boxes(
        x, tf.ones([2, 1, 4]) * [0.1, 0.2, 0.8, 0.9]
    ),
}

#: Programs with random numbers. TensorFlow's checks of unknown shapes are operations too, which a
#: graph-level seed counts.
RANDOM = {
    ("one", "random_flip"): lambda tf, x: tf.image.random_flip_left_right(x, seed=3),
    ("one", "random_flip_unseeded"): lambda tf, x: tf.image.random_flip_left_right(x),
    ("batch", "random_flips"): lambda tf, x: tf.image.random_flip_up_down(x, seed=3),
    ("one", "random_brightness"): lambda tf, x: tf.image.random_brightness(x, 0.3),
    ("bytes", "random_brightness"): lambda tf, x: tf.image.random_brightness(x, 0.3),
    ("one", "random_contrast"): lambda tf, x: tf.image.random_contrast(x, 0.3, 0.9),
    ("one", "random_hue"): lambda tf, x: tf.image.random_hue(x, 0.3, seed=2),
    ("one", "random_saturation"): lambda tf, x: tf.image.random_saturation(x, 0.3, 0.9),
    ("one", "random_crop"): lambda tf, x: tf.random_crop(x, [3, 4, 3], seed=2),
    ("one", "augmented"): lambda tf, x: tf.image.random_brightness(
        tf.image.random_flip_left_right(tf.image.resize_image_with_crop_or_pad(x, 10, 10)), 0.4
    ),
    ("one", "distorted"): lambda tf, x: tf.image.resize_images(
        tf.slice(
            x,
            *tf.image.sample_distorted_bounding_box(
                [7, 9, 3], tf.constant([[[0.1, 0.1, 0.9, 0.9]]]), seed=5
            )[:2],
        ),
        [4, 4],
    ),
}


def programs():
    """key -> (program, image, whether the shape is known, whether it is random)."""
    out = {}
    for name, program in COMMON.items():
        for image in ("one", "batch", "bytes"):
            out[image + ":" + name] = (program, INPUTS[image], True, False)
        out["unknown:" + name] = (program, ONE, False, False)
    for (image, name), program in SPECIAL.items():
        out[image + ":" + name] = (program, INPUTS[image], True, False)
    for (image, name), program in RANDOM.items():
        out[image + ":" + name] = (program, INPUTS[image], True, True)
    return out


def run(tf, key):
    """(values of each run, the static shape as text)."""
    program, image, known, random = programs()[key]
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        if random:
            v1.set_random_seed(5)
        x = v1.placeholder(image.dtype, image.shape if known else [None] * image.ndim)
        y = program(tf, x)
        with v1.Session() as session:
            values = [np.asarray(session.run(y, {x: image})) for _ in range(3 if random else 1)]
        return values, str(y.shape)
