"""Make scipy_images.json with SciPy 1.2, the last one whose scipy.misc had image functions.

pip install scipy==1.2.3 pillow numpy==1.18  # Python 3.7
python make_scipy_images.py > scipy_images.json
"""

import json
import sys

import numpy as np


def inputs():
    rng = np.random.RandomState(0)
    return {
        "bytes": rng.randint(0, 256, (6, 8, 3)).astype(np.uint8),
        "floats": rng.randn(6, 8, 3),
        "grey": rng.randn(6, 8),
        "planes": rng.randn(3, 6, 8),
        "alpha": rng.rand(6, 8, 4),
        "integers": rng.randint(-500, 500, (6, 8)),
    }


def cases(misc):
    """Name -> array, or the name of the error's class."""
    out = {}
    for name, x in inputs().items():
        calls = {
            "resize": lambda x=x: misc.imresize(x, (4, 5)),
            "nearest": lambda x=x: misc.imresize(x, (4, 5), interp="nearest"),
            "cubic": lambda x=x: misc.imresize(x, 150, interp="cubic"),
            "factor": lambda x=x: misc.imresize(x, 0.5),
            "mode_F": lambda x=x: misc.imresize(x, (3, 3), mode="F"),
            "mode_I": lambda x=x: misc.imresize(x, (3, 3), "nearest", "I"),
            "bytescale": lambda x=x: misc.bytescale(x, cmin=-1, cmax=1, high=200, low=10),
            "toimage": lambda x=x: np.asarray(misc.toimage(x, cmin=0.0, cmax=1.0)),
            "rotate": lambda x=x: misc.imrotate(x, 90),
            "axis": lambda x=x: np.asarray(misc.toimage(x, channel_axis=0)),
        }
        for call, function in calls.items():
            try:
                value = np.asarray(function())
                out[name + " " + call] = [value.dtype.name, value.tolist()]
            except ValueError:
                out[name + " " + call] = "ValueError"
    return out


if __name__ == "__main__":
    from scipy import misc

    json.dump(cases(misc), sys.stdout)
