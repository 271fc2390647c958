"""Attention over a memory.

Scores of a query against keys, made into weights, for ``tf.contrib.seq2seq``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.dense import Dense
from headrace.layers.rnn.cell_base import zero_state_tensors
from headrace.ops.control.assertions import assert_positive
from headrace.variables.initializers import (
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "AttentionMechanism",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
]


class AttentionMechanism:
    """Base of all: ``alignments, next_state = mechanism(query, state)``."""

    @property
    def alignments_size(self) -> Any:
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        raise NotImplementedError


class BaseAttentionMechanism(AttentionMechanism):
    """A memory (batch, time, …) with its keys, masked by lengths."""

    def __init__(
        self,
        query_layer: Any,
        memory: object,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: TensorLike | None = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: object = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        for layer, which in ((query_layer, "query_layer"), (memory_layer, "memory_layer")):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{which} is not a Layer: {type(layer).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        if score_mask_value is None:
            score_mask_value = dtypes.as_dtype(self.dtype).as_numpy_dtype(-np.inf)
        self._probability_fn: Callable[[Any, Any], Any] = lambda score, before: probability_fn(
            _masked_score(score, memory_sequence_length, score_mask_value), before
        )
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values: Tensor = _prepare_memory(
                memory, memory_sequence_length, check_inner_dims_defined
            )
            self._keys: Tensor = self._memory_layer(self._values) if memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            shape = self._keys.shape
            self._batch_size = dimension_value(shape[0]) or ops.shape(self._keys)[0]
            self._alignments_size = dimension_value(shape[1]) or ops.shape(self._keys)[1]

    @property
    def memory_layer(self) -> Any:
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        return self._query_layer

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def keys(self) -> Tensor:
        return self._keys

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: TensorLike, dtype: Any) -> Any:
        return zero_state_tensors(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        return self.initial_alignments(batch_size, dtype)


def _prepare_memory(memory: object, lengths: object, check_dims: bool) -> Any:
    """The memory as tensors, zero past the end of each row."""
    memory = nest.map_structure(lambda m: ops.convert_to_tensor(m, name="memory"), memory)
    if lengths is not None:
        lengths = ops.convert_to_tensor(lengths, name="memory_sequence_length")
    for each in nest.flatten(memory) if check_dims else ():
        if not each.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {each.name} to have fully defined inner dims, but saw "
                f"shape: {each.shape}"
            )
    if lengths is None:
        return memory
    first = nest.flatten(memory)[0]
    mask = ops.sequence_mask(lengths, maxlen=ops.shape(first)[1], dtype=first.dtype)

    def masked(each: Tensor) -> Tensor:
        known = each.shape.ndims
        rank = ops.rank(each) if known is None else known
        ones = ops.ones(rank - 2, dtype=dtypes.int32)
        return each * ops.reshape(mask, ops.concat((ops.shape(mask), ones), 0))

    return nest.map_structure(masked, memory)


def _masked_score(score: TensorLike, lengths: TensorLike | None, value: Any) -> Any:
    if lengths is None:
        return score
    message = "All values in memory_sequence_length must be greater than zero."
    with control_dependencies([assert_positive(lengths, message=message)]):
        mask = ops.sequence_mask(lengths, maxlen=ops.shape(score)[1])
    return ops.where(mask, score, value * ops.ones_like(score))


# scores ------------------------------------------------------------------------------------------


def _luong_score(query: Tensor, keys: Tensor, scale: TensorLike | None) -> Any:
    depth, units = dimension_value(query.shape[-1]), dimension_value(keys.shape[-1])
    if depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys.  Query "
            f"({query}) has units: {depth}.  "
            f"Keys ({keys}) have units: {units}.  Perhaps you need to set num_units to "
            f"the keys' dimension ({units})?"
        )
    score = ops.matmul(ops.expand_dims(query, 1), keys, transpose_b=True)
    score = ops.squeeze(score, [1])
    return score if scale is None else scale * score


def _bahdanau_score(
    query: Tensor,
    keys: TensorLike,
    v: Tensor | Variable,
    g: Tensor | Variable | None = None,
    b: TensorLike | None = None,
) -> Tensor:
    query = ops.expand_dims(query, 1)
    if g is None or b is None:
        return ops.reduce_sum(v * ops.tanh(keys + query), [2])
    normed = g * v * ops.rsqrt(ops.reduce_sum(ops.square(v)))
    return ops.reduce_sum(normed * ops.tanh(keys + query + b), [2])


def _without_state(probability_fn: Callable[[Any], Any] | None) -> Callable[[Any, Any], Any]:
    function = probability_fn or ops.softmax
    return lambda score, _: function(score)


def _dense(units: int, name: str, dtype: DTypeLike | None) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtype or dtypes.float32)


class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention: the score of a memory position is the query's product with its key.

    ``memory`` is [batch, time, depth]; ``num_units`` must be the depth of the queries; ``scale``
    learns a factor. Give it to an AttentionWrapper.
    """

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: object = None,
        dtype: DTypeLike | None = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            None,
            memory,
            _without_state(probability_fn),
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with variable_scope(None, "luong_attention", [query]):
            score = _luong_score(query, self._keys, _scale_of(self._scale, query))
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _scale_of(wanted: bool, query: Tensor) -> Any:
    if not wanted:
        return None
    return get_variable("attention_g", dtype=query.dtype, initializer=ones_initializer, shape=())


class _Additive(BaseAttentionMechanism):
    """What Bahdanau's forms have in common."""

    _num_units: int
    _normalize: bool

    def _score(self, query: Tensor) -> Tensor:
        n, kind = self._num_units, query.dtype
        processed = self.query_layer(query) if self.query_layer else query
        v, g, b = get_variable("attention_v", [n], dtype=kind), None, None
        if self._normalize:
            start = constant_initializer(math.sqrt(1.0 / n))
            g = get_variable("attention_g", dtype=kind, initializer=start, shape=())
            b = get_variable("attention_b", [n], dtype=kind, initializer=zeros_initializer())
        return _bahdanau_score(processed, self._keys, v, g, b)


class BahdanauAttention(_Additive):
    """Additive attention: the score of a memory position is ``v · tanh(query + key)``.

    ``memory`` is [batch, time, depth], ``memory_sequence_length`` masks what lies past a row's end,
    ``num_units`` is the depth of keys and queries; ``normalize`` learns the length of ``v`` apart.
    Give it to an AttentionWrapper.
    """

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: object = None,
        dtype: DTypeLike | None = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        super().__init__(
            _dense(num_units, "query_layer", dtype),
            memory,
            _without_state(probability_fn),
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with variable_scope(None, "bahdanau_attention", [query]):
            score = self._score(query)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


# monotonic ---------------------------------------------------------------------------------------


def safe_cumprod(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A cumulative product of numbers in [0, 1], as the exponential of a sum of logarithms.

    Zeros count as the least positive number, so gradients are finite. The further arguments are
    those of ``tf.cumsum``: ``axis``, ``exclusive``, ``reverse``.

        tf.contrib.seq2seq.safe_cumprod([0.5, 0.5])  # [0.5, 0.25]
    """
    with name_scope(None, "SafeCumprod", [x]):
        x = ops.convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        bounded: Any = ops.clip_by_value(x, tiny, 1)
        return ops.exp(ops.cumsum(ops.log(bounded), *args, **kwargs))


def monotonic_attention(
    p_choose_i: TensorLike, previous_attention: TensorLike, mode: str
) -> Tensor:
    """The distribution over memory entries where attention may only move forward.

    ``mode``: "recursive" (exact, a loop), "parallel" (fast, less exact for long memories) or "hard"
    (probabilities 0 and 1).
    """
    p = ops.convert_to_tensor(p_choose_i, name="p_choose_i")
    before = ops.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = dimension_value(p.shape[0]) or ops.shape(p)[0]
        shifted = ops.concat([ops.ones((batch, 1)), 1 - p[:, :-1]], 1)
        kept = ops.scan(
            lambda x, yz: ops.reshape(yz[0] * x + yz[1], (batch,)),
            [ops.transpose(shifted), ops.transpose(before)],
            ops.zeros((batch,)),
        )
        return p * ops.transpose(kept)
    if mode == "parallel":
        product = safe_cumprod(1 - p, axis=1, exclusive=True)
        ratio = before / ops.clip_by_value(product, 1e-10, 1.0)
        return p * product * ops.cumsum(ratio, axis=1)
    if mode == "hard":
        p = p * ops.cumsum(before, axis=1)
        return p * ops.cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _monotonic_probability(
    score: Tensor, before: Tensor, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Tensor:
    if sigmoid_noise > 0:
        noise = ops.random_normal(ops.shape(score), dtype=score.dtype, seed=seed)
        score = score + sigmoid_noise * noise
    p = ops.cast(score > 0, score.dtype) if mode == "hard" else ops.sigmoid(score)
    return monotonic_attention(p, before, mode)


class _Monotonic(BaseAttentionMechanism):
    """Attention that starts at the first entry."""

    _score_bias_init: Any

    def initial_alignments(self, batch_size: TensorLike, dtype: DType) -> Tensor:
        first = ops.zeros((batch_size,), dtype=dtypes.int32)
        return ops.one_hot(first, self._alignments_size, dtype=dtype)

    def _biased(self, score: Tensor, dtype: DTypeLike) -> Tensor:
        return score + get_variable(
            "attention_score_bias", dtype=dtype, initializer=self._score_bias_init
        )


class BahdanauMonotonicAttention(_Monotonic, _Additive):
    """Monotonic attention with Bahdanau's additive score: the position in the memory only moves
    on.
    """

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        score_mask_value: object = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        probability = functools.partial(
            _monotonic_probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            _dense(num_units, "query_layer", dtype),
            memory,
            probability,
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with variable_scope(None, "bahdanau_monotonic_attention", [query]):
            score = self._biased(self._score(query), query.dtype)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(_Monotonic):
    """Monotonic attention with Luong's score: the position in the memory only moves on.

    ``memory`` is [batch, time, depth] and is mapped to ``num_units``, which must be the query's
    size; rows after ``memory_sequence_length`` have no weight. ``scale`` learns a factor of the
    score. ``sigmoid_noise`` times a normal number is added to scores, so that training finds sharp
    choices; ``mode`` is "recursive", "parallel" (faster, less exact) or "hard" (at inference).
    """

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        score_mask_value: object = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        probability = functools.partial(
            _monotonic_probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            None,
            memory,
            probability,
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with variable_scope(None, "luong_monotonic_attention", [query]):
            score = _luong_score(query, self._keys, _scale_of(self._scale, query))
            score = self._biased(score, query.dtype)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def hardmax(logits: Tensor, name: str | None = None) -> Tensor:
    """1 at the largest entry of each row, 0 elsewhere."""
    with name_scope(name, "Hardmax", [logits]):
        logits = ops.convert_to_tensor(logits, name="logits")
        known = dimension_value(logits.shape[-1])
        depth = ops.shape(logits)[-1] if known is None else known
        return ops.one_hot(ops.argmax(logits, -1), depth, dtype=logits.dtype)
