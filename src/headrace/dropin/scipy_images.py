"""The image functions that ``scipy.misc`` had until SciPy 1.3, for programs that import them.

GAN and style-transfer programs of TensorFlow 1's time read and write their pictures with
``scipy.misc.imread``, ``imresize`` and ``imsave``. :mod:`headrace.dropin.package_names` gives these
names to ``scipy.misc`` when a program imports it. They need Pillow, as they did then.

    >>> scipy.misc.imresize(picture, (64, 64)).shape
    (64, 64, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["bytescale", "fromimage", "imread", "imresize", "imrotate", "imsave", "toimage"]

_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "The image functions of scipy.misc need Pillow: pip install pillow"
        ) from None
    return Image


def bytescale(
    data: object,
    cmin: float | None = None,
    cmax: float | None = None,
    high: int = 255,
    low: int = 0,
) -> Array:
    """Scale to `low` … `high` as uint8; uint8 stays as it is.

    `cmin` and `cmax` are the values that become `low` and `high` (default: the smallest and the
    largest).
    """
    values: Array = np.asarray(data)
    if values.dtype == np.uint8:
        return values
    if high > 255 or low < 0 or high < low:
        raise ValueError(f"low and high must lie in 0 to 255 in this order, not {low}, {high}")
    least = values.min() if cmin is None else cmin
    span = (values.max() if cmax is None else cmax) - least
    if span < 0:
        raise ValueError("`cmax` should be larger than `cmin`.")
    scaled = (values - least) * (float(high - low) / (span or 1)) + low
    return cast("Array", (scaled.clip(low, high) + 0.5).astype(np.uint8))


def toimage(
    arr: object,
    high: int = 255,
    low: int = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    pal: object = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """A Pillow image of an array of rows and columns, with 3 or 4 channels or none.

    Values other than uint8 are scaled to the range of bytes. `channel_axis` names the axis of the
    channels where several axes could be it.
    """
    data = np.asarray(arr)
    if np.iscomplexobj(data):
        raise ValueError("Cannot convert a complex-valued array.")
    channels = [n for n in data.shape if n in (3, 4)]
    if data.ndim == 2:
        return _grey_image(data, high, low, cmin, cmax, pal, mode)
    if data.ndim != 3 or not channels:
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    return _colour_image(data, bytescale(data, cmin, cmax, high, low), mode, channel_axis)


def _grey_image(
    data: Array,
    high: int,
    low: int,
    cmin: float | None,
    cmax: float | None,
    pal: object,
    mode: str | None,
) -> Any:
    image = _pillow()
    if mode == "F":
        return image.fromarray(data.astype(np.float32))
    if mode == "1":
        above = bytescale(data, cmin, cmax, high, low) > high
        return image.fromarray(above.astype(np.uint8) * 255).convert("1")
    if mode == "I":
        least = data.min() if cmin is None else cmin
        span = (data.max() if cmax is None else cmax) - least
        scaled = (data - least) * (float(high - low) / (span or 1)) + low
        return image.fromarray(scaled.astype(np.int32))
    if mode not in (None, "L", "P"):
        raise ValueError(f"Mode {mode!r} does not go with an array of two dimensions.")
    made = image.fromarray(bytescale(data, cmin, cmax, high, low))
    if mode == "P" or pal is not None:
        made = made.copy()
        made.putpalette(np.asarray(_greys() if pal is None else pal, np.uint8).tobytes())
    return made


def _greys() -> Array:
    return np.repeat(np.arange(256, dtype=np.uint8), 3)


def _colour_image(data: Array, scaled: Array, mode: str | None, channel_axis: int | None) -> Any:
    if channel_axis is None:
        wanted = 3 if 3 in data.shape else 4
        channel_axis = data.shape.index(wanted)
    channels = data.shape[channel_axis]
    if channels not in (3, 4):
        raise ValueError("Channel dimension is not valid.")
    if mode is None:
        mode = "RGB" if channels == 3 else "RGBA"
    if len(mode.replace("YCbCr", "YCC")) != channels:
        raise ValueError(f"Mode {mode!r} does not go with {channels} channels.")
    planes = np.ascontiguousarray(np.moveaxis(scaled, channel_axis, -1))
    size = (planes.shape[1], planes.shape[0])
    return _pillow().frombytes(mode, size, planes.tobytes())


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> Array:
    """The pixels of a Pillow image; `flatten` gives grey values as floats."""
    if mode is not None:
        im = im if mode == im.mode else im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: str, flatten: bool = False, mode: str | None = None) -> Array:
    """The pixels of an image file, as :func:`fromimage` gives them."""
    with _pillow().open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: str, arr: object, format: str | None = None) -> None:
    """Write an array as an image file; the format follows from the name unless it is given."""
    image = toimage(arr, channel_axis=2)
    if format is None:
        image.save(name)
    else:
        image.save(name, format)


def imresize(arr: object, size: Any, interp: str = "bilinear", mode: str | None = None) -> Array:
    """Resize an image: to `size` per cent (an integer), by a factor (a float), or to (rows,
    columns).
    """
    image = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        target = tuple((np.array(image.size) * (size / 100.0)).astype(int).tolist())
    elif isinstance(size, (float, np.floating)):
        target = tuple((np.array(image.size) * size).astype(int).tolist())
    else:
        target = (int(size[1]), int(size[0]))
    return fromimage(image.resize(target, resample=_FILTERS[interp]))


def imrotate(arr: object, angle: float, interp: str = "bilinear") -> Array:
    """Turn an image by `angle` degrees, counter-clockwise."""
    return fromimage(toimage(np.asarray(arr)).rotate(angle, resample=_FILTERS[interp]))
