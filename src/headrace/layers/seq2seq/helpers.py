"""Helpers: what a decoder's next input is, from given sequences or from its own samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.dynamic_rnn import transpose_batch_time
from headrace.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "CustomHelper",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
]


def _unstacked(x: Tensor) -> TensorArray:
    return TensorArray(x.dtype, size=ops.shape(x)[0], element_shape=x.shape[1:]).unstack(x)


def _lookup(embedding: object) -> Callable[[Any], Any]:
    return embedding if callable(embedding) else lambda ids: ops.embedding_lookup(embedding, ids)


def _categorical(logits: Any, seed: int | None) -> Tensor:
    drawn = ops.multinomial(logits, 1, seed=seed, output_dtype=dtypes.int32)
    return ops.reshape(drawn, ops.shape(logits)[:-1])


def _bernoulli(probability: Tensor, n: TensorLike, seed: int | None) -> Tensor:
    shape = ops.concat([ops.reshape(n, [1]), ops.shape(probability)], 0)
    noise = ops.random_uniform(shape, seed=seed, dtype=probability.dtype)
    return ops.less(noise, probability)


class Helper:
    """Base class of helpers: what a decoder reads first, samples, and reads next."""

    @property
    def batch_size(self) -> Any:
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> Any:
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> Any:
        """``(finished, first_inputs)``."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """``sample_ids``."""
        raise NotImplementedError

    def next_inputs(
        self,
        time: object,
        outputs: object,
        state: object,
        sample_ids: object,
        name: str | None = None,
    ) -> Any:
        """``(finished, next_inputs, next_state)``."""
        raise NotImplementedError


class CustomHelper(Helper):
    """A helper of three functions: ``initialize_fn``, ``sample_fn`` and ``next_inputs_fn``.

    ``initialize_fn()`` returns ``(finished, first inputs)``, ``sample_fn(time=, outputs=, state=)``
    the samples and ``next_inputs_fn(time=, outputs=, state=, sample_ids=)`` a triple of finished,
    next inputs and next state. ``sample_ids_shape`` and ``sample_ids_dtype`` describe one sample
    (default: a scalar int32).
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: object = None,
        sample_ids_dtype: object = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Tensor | None = None
        self._sample_ids_shape = TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self) -> Tensor:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> Any:
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, following = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = ops.size(finished)
        return finished, following

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, f"{type(self).__name__}Sample", [time]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self,
        time: object,
        outputs: object,
        state: object,
        sample_ids: object,
        name: str | None = None,
    ) -> Any:
        with name_scope(name, f"{type(self).__name__}NextInputs", [time]):
            return self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )


class TrainingHelper(Helper):
    """Inputs are given sequences (batch, time, …); samples are the largest outputs.

    ``inputs`` may be a structure of tensors; ``time_major`` says that they are [time, batch, …].
    ``sequence_length`` is int32 [batch]: inputs after the end are zeros. For teacher forcing with a
    ``BasicDecoder``.
    """

    def __init__(
        self,
        inputs: object,
        sequence_length: object,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "TrainingHelper", [*nest.flatten(inputs), sequence_length]):
            inputs = nest.map_structure(ops.convert_to_tensor, inputs)
            self._inputs = inputs
            if not time_major:
                inputs = nest.map_structure(transpose_batch_time, inputs)
            self._input_tas = nest.map_structure(_unstacked, inputs)
            self._sequence_length = ops.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.ndims != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda x: ops.zeros_like(x[0, :]), inputs)
            self._start_inputs = self._zero_inputs
            self._batch_size = ops.size(sequence_length)

    @property
    def inputs(self) -> Any:
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        return self._sequence_length

    @property
    def batch_size(self) -> Tensor:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return dtypes.int32

    def initialize(self, name: str | None = None) -> tuple[Tensor, ...]:
        with name_scope(name, "TrainingHelperInitialize"):
            finished = ops.equal(0, self._sequence_length)
            following = ops.cond(
                ops.reduce_all(finished),
                lambda: self._zero_inputs,
                lambda: nest.map_structure(lambda ta: ta.read(0), self._input_tas),
            )
            return finished, following

    def sample(
        self, time: Tensor, outputs: Tensor, state: object, name: str | None = None
    ) -> Tensor:
        with name_scope(name, "TrainingHelperSample", [time]):
            return ops.cast(ops.argmax(outputs, axis=-1), dtypes.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: object,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        with name_scope(name, "TrainingHelperNextInputs", [time]):
            next_time = time + 1
            finished = next_time >= self._sequence_length

            def read(ta: TensorArray) -> Tensor:
                return ta.read(next_time)

            following = ops.cond(
                ops.reduce_all(finished),
                lambda: self._zero_inputs,
                lambda: nest.map_structure(read, self._input_tas),
            )
            return finished, following, state


def _probability(given: object) -> Tensor:
    probability = ops.convert_to_tensor(given, name="sampling_probability")
    if probability.shape.ndims not in (0, 1):
        raise ValueError(
            "sampling_probability must be either a scalar or a vector. saw shape: "
            f"{probability.shape}"
        )
    return probability


def _mixed(
    chosen: TensorLike, others: TensorLike, sampled: TensorLike, given: TensorLike, like: TensorLike
) -> Tensor:
    """Rows ``chosen`` from ``sampled``, the other rows from ``given``."""
    shape = ops.shape(like)
    return ops.scatter_nd(indices=chosen, updates=sampled, shape=shape) + ops.scatter_nd(
        indices=others, updates=given, shape=shape
    )


def _rows(mask: TensorLike) -> Tensor:
    return ops.cast(ops.where(mask), dtypes.int32)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Scheduled sampling.

    With a probability, the next input is the embedding of the decoder's own sample.
    """

    def __init__(
        self,
        inputs: object,
        sequence_length: object,
        embedding: object,
        sampling_probability: object,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = _lookup(embedding)
            self._sampling_probability = _probability(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time]):
            choose = _bernoulli(self._sampling_probability, self.batch_size, self._scheduling_seed)
            none = ops.fill([self.batch_size], -1)
            return ops.where(choose, _categorical(outputs, self._seed), none)

    def next_inputs(
        self,
        time: Any,
        outputs: object,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids, name)

            def mixed() -> Tensor:
                chosen, others = _rows(sample_ids > -1), _rows(sample_ids <= -1)
                sampled = self._embedding_fn(ops.gather_nd(sample_ids, chosen))
                return _mixed(chosen, others, sampled, ops.gather_nd(given, others), given)

            return finished, ops.cond(ops.reduce_all(finished), lambda: given, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Scheduled sampling of the decoder's outputs themselves.

    At each step and for each sequence the next input is, with ``sampling_probability``,
    ``next_inputs_fn(outputs)`` (default: the outputs) instead of the given one.
    ``auxiliary_inputs`` are joined to every input. The rest is as in ``TrainingHelper``.
    """

    def __init__(
        self,
        inputs: object,
        sequence_length: object,
        sampling_probability: object,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: object = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledOutputTrainingHelper"):
            self._sampling_probability = _probability(sampling_probability)
            self._auxiliary_input_tas = None
            if auxiliary_inputs is not None:
                inputs = ops.convert_to_tensor(inputs, name="inputs")
                extra = ops.convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = ops.concat((inputs, extra), -1)
                self._auxiliary_input_tas = _unstacked(
                    extra if time_major else transpose_batch_time(extra)
                )
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time]):
            choose = _bernoulli(self._sampling_probability, self.batch_size, self._seed)
            return ops.cast(choose, dtypes.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids, name)
            choose = ops.cast(sample_ids, dtypes.bool)

            def with_extra(values: TensorLike, rows: TensorLike | None = None) -> Any:
                if self._auxiliary_input_tas is None:
                    return values
                extra = self._auxiliary_input_tas.read(time + 1)
                extra = extra if rows is None else ops.gather_nd(extra, rows)
                return ops.concat((values, extra), -1)

            def mixed() -> Tensor:
                if self._next_inputs_fn is None:
                    return ops.where(choose, with_extra(outputs), given)
                chosen, others = _rows(choose), _rows(ops.logical_not(choose))
                sampled = with_extra(self._next_inputs_fn(ops.gather_nd(outputs, chosen)), chosen)
                return _mixed(chosen, others, sampled, ops.gather_nd(given, others), given)

            nothing = ops.logical_or(
                ops.reduce_all(finished), ops.logical_not(ops.reduce_any(choose))
            )
            return finished, ops.cond(nothing, lambda: given, mixed), state


class GreedyEmbeddingHelper(Helper):
    """The next input is the embedding of the largest output, until ``end_token``.

    ``embedding`` is a table for ``tf.nn.embedding_lookup`` or a function of ids; ``start_tokens``
    is int32 [batch], ``end_token`` a scalar. For inference with a ``BasicDecoder``.
    """

    def __init__(self, embedding: object, start_tokens: object, end_token: object) -> None:
        self._embedding_fn = _lookup(embedding)
        self._start_tokens = ops.convert_to_tensor(
            start_tokens, dtype=dtypes.int32, name="start_tokens"
        )
        self._end_token = ops.convert_to_tensor(end_token, dtype=dtypes.int32, name="end_token")
        if self._start_tokens.shape.ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = ops.size(start_tokens)
        if self._end_token.shape.ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Tensor:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return dtypes.int32

    def initialize(self, name: str | None = None) -> tuple[Tensor, ...]:
        return ops.tile([False], [self._batch_size]), self._start_inputs

    def sample(
        self, time: Tensor, outputs: Tensor, state: Tensor, name: str | None = None
    ) -> Tensor:
        _check_single(outputs)
        return ops.argmax(outputs, axis=-1, output_type=dtypes.int32)

    def next_inputs(
        self,
        time: object,
        outputs: object,
        state: object,
        sample_ids: Any,
        name: str | None = None,
    ) -> tuple[Any, ...]:
        finished = ops.equal(sample_ids, self._end_token)
        following = ops.cond(
            ops.reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embedding_fn(sample_ids),
        )
        return finished, following, state


def _check_single(outputs: TensorLike) -> None:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As GreedyEmbeddingHelper, with samples drawn from the outputs as logits.

    Logits are divided by ``softmax_temperature`` first: above 1 samples vary more, below 1 less.
    ``seed`` makes them repeatable.
    """

    def __init__(
        self,
        embedding: object,
        start_tokens: object,
        end_token: object,
        softmax_temperature: object = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        _check_single(outputs)
        logits = outputs
        if self._softmax_temperature is not None:
            logits = logits / self._softmax_temperature
        return _categorical(logits, self._seed)


class InferenceHelper(Helper):
    """A helper of functions: ``sample_fn``, ``end_fn``, and ``next_inputs_fn`` from a sample.

    ``sample_fn(outputs)`` gives samples of ``sample_shape`` and ``sample_dtype``,
    ``end_fn(samples)`` says which sequences end. ``start_inputs`` is [batch, …]; without
    ``next_inputs_fn`` the samples themselves are the next inputs.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: object,
        sample_dtype: object,
        start_inputs: object,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = ops.shape(start_inputs)[0]
        self._start_inputs = ops.convert_to_tensor(start_inputs, name="start_inputs")

    @property
    def batch_size(self) -> Tensor:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> Any:
        return ops.tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self,
        time: object,
        outputs: object,
        state: object,
        sample_ids: object,
        name: str | None = None,
    ) -> Any:
        following = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), following, state
