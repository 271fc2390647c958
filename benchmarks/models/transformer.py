"""A small GPT: pre-norm blocks of causal attention and a gelu layer, tied embeddings, in the
spelling of GPT-2's TF-1 program (its own softmax, norm and gelu; dense layers as products of
reshaped tensors; a mask of 1e10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.models.spec import Array, Model, Optimizer, Weights, Work, dense_work, normal

__all__ = ["EPSILON", "GPT"]

EPSILON = 1e-5  # of the norms

OPTIMIZER = Optimizer("adam", 3e-4)


@dataclass(frozen=True)
class GPT(Model):
    """``tokens`` is the length of a sequence."""

    vocabulary: int = 4_096
    tokens: int = 128
    layers: int = 4
    width: int = 256
    heads: int = 4
    batch: int = 8
    optimizer: Optimizer = OPTIMIZER
    name: str = "gpt"
    title: str = "transformer, 4 layers of 256, 4 heads, 128 tokens, Adam"

    def parameters(self) -> dict[str, Array]:
        random = np.random.RandomState(9)
        width = self.width
        values = {
            "wte": normal(random, (self.vocabulary, width), 0.02),
            "wpe": normal(random, (self.tokens, width), 0.01),
        }
        dense = {"attn": 3, "attn_proj": 1, "mlp": 4, "mlp_proj": 1}
        for i in range(self.layers):
            for name, outputs in dense.items():
                inputs = 4 * width if name == "mlp_proj" else width
                shape = (1, inputs, outputs * width)
                values[f"h{i}/{name}/w"] = normal(random, shape, 0.02)
                values[f"h{i}/{name}/b"] = np.zeros(outputs * width, np.float32)
            values |= _norm_parameters(f"h{i}/ln_1", width) | _norm_parameters(f"h{i}/ln_2", width)
        return values | _norm_parameters("ln_f", width)

    def examples(self, batch: int) -> tuple[Array, Array]:
        tokens = np.random.RandomState(10).randint(0, self.vocabulary, (batch, self.tokens + 1))
        return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)

    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        batch, length = _shape_list(tf, x)
        h = tf.gather(weights["wte"], x) + weights["wpe"][:length]
        for i in range(self.layers):
            h = h + self._attention(tf, weights, f"h{i}", _norm(tf, weights, f"h{i}/ln_1", h))
            y = _dense(tf, weights, f"h{i}/mlp", _norm(tf, weights, f"h{i}/ln_2", h))
            h = h + _dense(tf, weights, f"h{i}/mlp_proj", _gelu(tf, y))
        h = _norm(tf, weights, "ln_f", h)
        if not training:
            return tf.matmul(h[:, -1], weights["wte"], transpose_b=True), {}
        flat = tf.reshape(h, [-1, self.width])
        logits = tf.matmul(flat, weights["wte"], transpose_b=True)
        return tf.reshape(logits, [batch, length, self.vocabulary]), {}

    def _attention(self, tf: Any, weights: Weights, block: str, x: Any) -> Any:
        c = _dense(tf, weights, f"{block}/attn", x)
        q, k, v = (self._split_heads(tf, part) for part in tf.split(c, 3, axis=2))
        w = tf.matmul(q, k, transpose_b=True)  # [batch, head, to, from]
        w = w * tf.rsqrt(tf.cast(_shape_list(tf, v)[-1], w.dtype))
        a = tf.matmul(_softmax(tf, _masked(tf, w)), v)
        a = tf.transpose(a, [0, 2, 1, 3])
        *start, heads, width = _shape_list(tf, a)
        return _dense(tf, weights, f"{block}/attn_proj", tf.reshape(a, [*start, heads * width]))

    def _split_heads(self, tf: Any, x: Any) -> Any:
        *start, width = _shape_list(tf, x)
        x = tf.reshape(x, [*start, self.heads, width // self.heads])
        return tf.transpose(x, [0, 2, 1, 3])

    def forward_work(self, batch: int) -> Work:
        return self._work(batch, batch)

    def training_forward_work(self) -> Work:
        return self._work(self.batch, self.batch * self.tokens)

    def _work(self, batch: int, predictions: int) -> Work:
        rows, width = batch * self.tokens, self.width
        block = dense_work(rows, width, 3 * width) + dense_work(rows, width, width)
        block += dense_work(rows, width, 4 * width) + dense_work(rows, 4 * width, width)
        head = width // self.heads
        attended = dense_work(self.tokens, head, self.tokens) * 2  # the mask saves none of them
        block += attended * (batch * self.heads)
        return block * self.layers + dense_work(predictions, width, self.vocabulary)


def _norm_parameters(name: str, width: int) -> dict[str, Array]:
    return {f"{name}/g": np.ones(width, np.float32), f"{name}/b": np.zeros(width, np.float32)}


def _shape_list(tf: Any, x: Any) -> list[Any]:
    static = x.shape.as_list()
    dynamic = tf.shape(x)
    return [dynamic[i] if size is None else size for i, size in enumerate(static)]


def _softmax(tf: Any, x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


def _gelu(tf: Any, x: Any) -> Any:
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def _norm(tf: Any, weights: Weights, name: str, x: Any) -> Any:
    u = tf.reduce_mean(x, axis=-1, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
    x = (x - u) * tf.rsqrt(s + EPSILON)
    return x * weights[f"{name}/g"] + weights[f"{name}/b"]


def _dense(tf: Any, weights: Weights, name: str, x: Any) -> Any:
    w, b = weights[f"{name}/w"], weights[f"{name}/b"]
    *start, inputs = _shape_list(tf, x)
    outputs = w.shape.as_list()[-1]
    y = tf.matmul(tf.reshape(x, [-1, inputs]), tf.reshape(w, [-1, outputs])) + b
    return tf.reshape(y, [*start, outputs])


def _masked(tf: Any, w: Any) -> Any:
    *_, to, source = _shape_list(tf, w)
    i = tf.range(to)[:, None]
    j = tf.range(source)
    b = tf.cast(i >= j - source + to, w.dtype)
    b = tf.reshape(b, [1, 1, to, source])
    return w * b - tf.cast(1e10, w.dtype) * (1 - b)
