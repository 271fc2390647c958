"""Which cases a library has in a group, and the module that they are called with.

module, version, cases = load("eager", "tf")
cases["eager_add"](module, FULL)
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from benchmarks import (
    busy_cases,
    data_cases,
    eager_cases,
    files_cases,
    graph_cases,
    jax_cases,
    machine_cases,
    memory_cases,
    program_cases,
    session_cases,
    torch_data_cases,
)
from benchmarks.model_cases import model_cases
from benchmarks.session_cases import Case

__all__ = ["load"]

_SESSIONS = {**session_cases.CASES, **graph_cases.CASES, **memory_cases.CASES}
_CASES: dict[str, dict[str, dict[str, Case]]] = {
    "engine": {"headrace": _SESSIONS, "tf": _SESSIONS, "jax": jax_cases.CASES},
    "machine": machine_cases.CASES,
    "data": {
        "headrace": data_cases.CASES,
        "tf": data_cases.CASES,
        "torch": torch_data_cases.CASES,
    },
    "eager": eager_cases.CASES,
    "busy": busy_cases.CASES,
    "files": {"headrace": files_cases.CASES, "tf": files_cases.CASES},
    "programs": {"headrace": program_cases.CASES, "tf": program_cases.CASES},
}
#: In these groups Headrace and TensorFlow are their second versions.
_VERSION_2 = {"data", "eager"}


def load(group: str, library: str) -> tuple[Any, str, dict[str, Case]]:
    module, version = _LOADERS.get(library, _load_by_name)(group, library)
    named = model_cases(library) if group in ("models", "inference") else _CASES[group][library]
    return module, version, named


def _load_headrace(group: str, library: str) -> tuple[Any, str]:
    version = import_module("headrace").HEADRACE_VERSION
    tf = import_module("headrace.compat.v2" if group in _VERSION_2 else "headrace")
    return tf, f"headrace {version}"


def _load_tensorflow(group: str, library: str) -> tuple[Any, str]:
    if library == "xla" or group in _VERSION_2:
        tf = import_module("tensorflow")
    else:
        tf = import_module("tensorflow.compat.v1")
        tf.disable_v2_behavior()
    return tf, f"tensorflow {tf.version.VERSION}"


def _load_torch(group: str, library: str) -> tuple[Any, str]:
    torch = import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    return torch, f"torch {torch.__version__}"


def _load_by_name(group: str, library: str) -> tuple[Any, str]:
    name = {"ort": "onnxruntime"}.get(library, library)
    module = import_module(name)
    return module, f"{name} {module.__version__.split('-')[0]}"


_LOADERS = {
    "headrace": _load_headrace,
    "tf": _load_tensorflow,
    "xla": _load_tensorflow,
    "torch": _load_torch,
    "compile": _load_torch,
}
