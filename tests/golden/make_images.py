"""Makes the small image files in ``tests/golden/images``: ``python tests/golden/make_images.py`` (with Pillow).

One picture, 10 rows of 13 pixels, in the formats, colour resolutions and depths that the decoding ops tell apart.
"""

import os

import numpy as np
from PIL import Image

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")


def picture():
    y, x = np.mgrid[0:10, 0:13]
    channels = [128 + 100 * np.sin(x / 3.0), 128 + 100 * np.cos(y / 2.0), (x * 11 + y * 7) % 256]
    return np.stack(channels, axis=-1).astype(np.uint8)


def main():
    pixels = picture()
    rgb = Image.fromarray(pixels)
    alpha = Image.fromarray(pixels[:, :, 2])
    rgba, gray_alpha = rgb.convert("RGBA"), rgb.convert("LA")
    rgba.putalpha(alpha)
    gray_alpha.putalpha(alpha)
    wide = Image.fromarray(pixels[:, :, 0].astype(np.uint16) * 200)
    frames = [Image.fromarray(np.roll(pixels, 4 * i, axis=1)) for i in range(3)]
    palette = rgb.quantize(8)
    files = {
        "444.jpg": (rgb, dict(quality=80, subsampling=0)),
        "420.jpg": (rgb, dict(quality=80, subsampling=2)),
        "gray.jpg": (rgb.convert("L"), dict(quality=80)),
        "rgb.png": (rgb, {}),
        "rgba.png": (rgba, {}),
        "gray.png": (rgb.convert("L"), {}),
        "gray_alpha.png": (gray_alpha, {}),
        "gray16.png": (wide, {}),
        "palette.png": (palette, {}),
        "one.gif": (palette, {}),
        "frames.gif": (frames[0], dict(save_all=True, append_images=frames[1:])),
        "rgb.bmp": (rgb, {}),
        "gray.bmp": (rgb.convert("L"), {}),
        "rgba.bmp": (rgba, {}),
    }
    for name, (image, options) in files.items():
        image.save(os.path.join(FOLDER, name), **options)


if __name__ == "__main__":
    main()
