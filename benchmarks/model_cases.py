"""The cases of whole models, made from ``benchmarks.models`` for each library: a training step,
inference, a check.

A check trains the tiny model for some steps: every library must see the same losses and logits.

    cases = model_cases(in_sessions)
    cases["mlp.train"](tf, FULL)()     # {"run": [0.0026, ...]}
    cases["mlp.check"](tf, FULL)()     # {"losses": [1.66, 1.65, 1.64], "logits": [0.158, ...]}
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.models import MODELS, TINY
from benchmarks.models.spec import Model
from benchmarks.scale import QUICK, Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import per_call

__all__ = ["ADAPTERS", "LATENCY", "THROUGHPUT", "model_cases"]

#: Batch sizes of inference.
LATENCY = 1
THROUGHPUT = 64

#: The module of a library's texts, and what to give its functions besides.
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "headrace": ("in_sessions", {}),
    "tf": ("in_sessions", {}),
    "xla": ("in_tf_function", {}),
    "jax": ("in_jax", {}),
    "torch": ("in_torch", {}),
    "compile": ("in_torch", {"compiled": True}),
    "pytensor": ("in_pytensor", {}),
    "ort": ("in_onnx", {}),
    "openvino": ("in_onnx", {}),
}
#: What a library does not have: PyTensor no convolution for images, and one way only to write a
#: loop.
MISSING = {"pytensor": {"lenet", "resnet", "lstm"}, "ort": {"lstm_loop"}, "openvino": {"lstm_loop"}}


def model_cases(library: str) -> dict[str, Case]:
    module, options = ADAPTERS[library]
    adapter = import_module(f"benchmarks.models.{module}")
    cases: dict[str, Case] = {}
    for name in MODELS.keys() - MISSING.get(library, set()):
        if hasattr(adapter, "training"):
            cases[f"{name}.train"] = _training(adapter, options, name)
        cases[f"{name}.latency"] = _inference(adapter, options, name, LATENCY)
        cases[f"{name}.throughput"] = _inference(adapter, options, name, THROUGHPUT)
        cases[f"{name}.check"] = _check(adapter, options, TINY[name])
    return cases


def _training(adapter: Any, options: dict[str, Any], name: str) -> Case:
    def case(module: Any, scale: Scale) -> Measure:
        return _timed(adapter.training(module, _of_scale(name, scale), **options), scale)

    return case


def _inference(adapter: Any, options: dict[str, Any], name: str, batch: int) -> Case:
    def case(module: Any, scale: Scale) -> Measure:
        return _timed(adapter.inference(module, _of_scale(name, scale), batch, **options), scale)

    return case


def _of_scale(name: str, scale: Scale) -> Model:
    return (TINY if scale is QUICK else MODELS)[name]


def _timed(call: Callable[[], Any], scale: Scale) -> Measure:
    return lambda: {"run": per_call(call, scale.seconds)}


def _check(adapter: Any, options: dict[str, Any], model: Model) -> Case:
    def case(module: Any, scale: Scale) -> Measure:
        def measure() -> Samples:
            values = {"logits": _floats(adapter.inference(module, model, 2, **options)())}
            if hasattr(adapter, "training"):
                step = adapter.training(module, model, **options)
                values["losses"] = [float(np.asarray(step())) for _ in range(3)]
            return values

        return measure

    return case


def _floats(value: Any) -> list[float]:
    return [float(x) for x in np.asarray(value).ravel()]
