"""The models that are trained and run whole, in every library.

A model's own module has its sizes, weights and data, its work, and its text for TensorFlow's API.
``in_sessions`` runs that text in Headrace and TensorFlow sessions, ``in_tf_function`` in
``tf.function(jit_compile=True)``; ``in_jax``, ``in_torch``, ``in_pytensor`` and ``in_onnx`` have
the models' texts for their libraries. Each of these offers

    step = training(module, model)                # step() trains once and gives the loss
    run = inference(module, model, batch)         # run() gives the logits
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.models.lenet import LeNet
from benchmarks.models.lstm import LSTM
from benchmarks.models.mlp import MLP
from benchmarks.models.resnet import ResNet
from benchmarks.models.spec import Model
from benchmarks.models.transformer import GPT

__all__ = ["MODELS", "TINY"]


def _as_loop(model: LSTM) -> LSTM:
    title = "the same LSTM as a loop (while_loop or scan), clipped descent"
    return replace(model, loop=True, name="lstm_loop", title=title)


def _by_name(*models: Model) -> dict[str, Model]:
    return {model.name: model for model in models}


_TINY_LSTM = LSTM(vocabulary=17, hidden=6, steps=4, batch=3)

#: As measured.
MODELS = _by_name(MLP(), LeNet(), ResNet(), LSTM(), _as_loop(LSTM()), GPT())
#: The same models so small that a check or a test takes no time.
TINY = _by_name(
    MLP(sizes=(12, 9, 8, 5), batch=7),
    LeNet(side=8, filters=(3, 4), dense=10, batch=3),
    ResNet(side=8, widths=(4, 6), depth=2, batch=4),
    _TINY_LSTM,
    _as_loop(_TINY_LSTM),
    GPT(vocabulary=23, tokens=6, layers=2, width=8, heads=2, batch=3),
)
