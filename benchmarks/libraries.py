"""The libraries that are compared: what a table calls them, and the environment that their Python
is in.

LIBRARIES["xla"].label                        # "TF jit_compile"
ENVIRONMENTS["tf"].variable                   # "HEADRACE_PEER_TF2"
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ENVIRONMENTS", "LABELS", "LIBRARIES", "OWN", "Environment", "Library"]

#: The library that the others are beside.
OWN = "headrace"


@dataclass(frozen=True)
class Environment:
    """``variable`` may name its Python.

    ``choices`` are what to install otherwise, the first that can be.
    """

    variable: str
    choices: list[list[str]]


ENVIRONMENTS = {
    "tf": Environment(
        "HEADRACE_PEER_TF2",
        [["tensorflow-cpu==2.21.0"], ["tensorflow==2.21.0"], ["tensorflow"]],
    ),
    "jax": Environment("HEADRACE_PEER_JAX", [["jax"]]),
    "torch": Environment(
        "HEADRACE_PEER_TORCH",
        [
            [torch, "numpy", "pillow", "tfrecord", "crc32c", "protobuf"]
            for torch in ("torch==2.13.0+cpu", "torch==2.13.0", "torch")
        ],
    ),
    "pytensor": Environment("HEADRACE_PEER_PYTENSOR", [["pytensor", "numba"]]),
    "ort": Environment(
        "HEADRACE_PEER_ORT", [["onnxruntime", "openvino", "onnx"], ["onnxruntime", "onnx"]]
    ),
}


@dataclass(frozen=True)
class Library:
    """``environment`` is None if Headrace's own Python has it. ``statement`` imports it as a user
    would (and uses a name, so that a lazy import does its work).
    """

    label: str
    environment: str | None
    statement: str


LIBRARIES = {
    OWN: Library("headrace", None, "import headrace as tf; tf.Session"),
    "numpy": Library("NumPy", None, "import numpy"),
    "tf": Library("TF", "tf", "import tensorflow.compat.v1 as tf; tf.Session"),
    "xla": Library("TF jit_compile", "tf", "import tensorflow as tf; tf.function"),
    "jax": Library("jax", "jax", "import jax; jax.numpy.add; jax.jit"),
    "torch": Library("torch", "torch", "import torch"),
    "compile": Library("torch.compile", "torch", "import torch; torch.compile"),
    "pytensor": Library("PyTensor", "pytensor", "import pytensor; pytensor.function"),
    "ort": Library("ONNX Runtime", "ort", "import onnxruntime"),
    "openvino": Library("OpenVINO", "ort", "import openvino"),
}
LABELS = {name: library.label for name, library in LIBRARIES.items()}
