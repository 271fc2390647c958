"""Makes the small image files in ``tests/golden/images``: ``python tests/golden/make_images.py``
(with Pillow and simplejpeg).

One picture, 10 rows of 13 pixels, in the formats, colour resolutions and depths that the decoding
ops tell apart; and in ``images/jpeg`` a larger one, of every kind of JPEG file.
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


def photo():
    """27 rows of 37 pixels.

    No multiple of a block of 8 or 16. Colours change fast, so that upscaling them matters.
    """
    rng = np.random.RandomState(7)
    y, x = np.mgrid[0:27, 0:37]
    smooth = np.stack(
        [128 + 90 * np.sin(x / 2.0 + i) * np.cos(y / (3.0 + i)) for i in range(3)], axis=-1
    )
    return np.clip(smooth + rng.randint(-25, 26, smooth.shape), 0, 255).astype(np.uint8)


def jpeg_files():
    import simplejpeg

    pixels = photo()
    rgb = Image.fromarray(pixels)
    kinds = {
        "444": (rgb, dict(subsampling=0)),
        "422": (rgb, dict(subsampling=1)),
        "420": (rgb, dict(subsampling=2)),
        "progressive": (rgb, dict(subsampling=2, progressive=True)),
        "restart": (rgb, dict(subsampling=2, restart_marker_blocks=2)),
        "gray": (rgb.convert("L"), {}),
        "rgb": (rgb, dict(keep_rgb=True)),
        "cmyk": (rgb.convert("CMYK"), {}),
    }
    folder = os.path.join(FOLDER, "jpeg")
    os.makedirs(folder, exist_ok=True)
    for name, (image, options) in kinds.items():
        image.save(os.path.join(folder, name + ".jpg"), quality=85, **options)
    for name in ("440", "411"):
        with open(os.path.join(folder, name + ".jpg"), "wb") as file:
            file.write(simplejpeg.encode_jpeg(pixels, 85, "RGB", name))
    with open(os.path.join(folder, "cmyk.jpg"), "rb") as file:
        inks = file.read()
    with open(os.path.join(folder, "420.jpg"), "rb") as file:
        data = bytearray(file.read())
    for at in (len(data) // 2, 2 * len(data) // 3):
        data[at] ^= 0x55
    files = {"inks_as_they_are": inks.replace(b"Adobe", b"Other"), "damaged": bytes(data)}
    for name, contents in files.items():
        with open(os.path.join(folder, name + ".jpg"), "wb") as file:
            file.write(contents)


if __name__ == "__main__":
    main()
    jpeg_files()
