"""``tf.random.Generator``: a stream of random numbers with a state that the program holds.

The state is TensorFlow's for Philox, ``[counter, counter, key]`` in an int64 variable; equal states
give TensorFlow's numbers. A call that makes n numbers moves the counter on by 256 n. In a function
that is traced a call is an operation that draws when the function runs.

    >>> g = tf.random.Generator.from_seed(1)
    >>> g.normal([2, 2])
"""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import STATE, eager_mode
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.eager_variables import EagerVariable
from headrace.kernels.numpy import philox
from headrace.ops.control import py_func as script
from headrace.ops.random.random_ops import int_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import Array, DTypeLike, ShapeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["Generator", "get_global_generator", "set_global_generator"]

_ALGORITHMS = ("philox", "auto_select", 1, 3, None)
_MASK = (1 << 64) - 1


class Generator:
    """A random-number generator with a state of its own.

    Every draw (``normal``, ``uniform`` …) moves the state on, so equal states give equal numbers.
    Usually made by ``from_seed``; ``copy_from`` continues where another one is, ``state`` and
    ``alg`` ("philox" or 1) are three integers and their algorithm. The state is a variable that
    checkpoints keep.
    """

    def __init__(
        self, copy_from: Generator | None = None, state: object = None, alg: object = None
    ) -> None:
        if copy_from is not None:
            state, alg = copy_from._words(), "philox"
        if state is None:
            raise ValueError("`state` and `alg` must be given unless `copy_from` is")
        if alg not in _ALGORITHMS:
            raise ValueError(f"Headrace's generators are Philox, not {alg!r}")
        with eager_mode():
            value = convert_to_tensor(state, dtypes.int64)
            self._state = EagerVariable(value, trainable=False, name="StateVar", dtype=dtypes.int64)
        self._lock = threading.Lock()

    @classmethod
    def from_seed(cls, seed: int | None, alg: object = None) -> Generator:
        """A generator whose state is made of one number."""
        return cls(state=_state_of(seed), alg=alg)

    @classmethod
    def from_state(cls, state: object, alg: object) -> Generator:
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: object, alg: object) -> Generator:
        words = [int(c) for c in np.asarray(counter).reshape(-1)]
        return cls(state=[*words, int(np.asarray(key))], alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: object = None) -> Generator:
        words = np.frombuffer(os.urandom(24), np.int64)
        return cls(state=words, alg=alg)

    # the state ----------------------------------------------------------------------------------
    def _words(self) -> Array:
        return np.array(STATE.raw(self._state._key))

    @property
    def state(self) -> EagerVariable:
        return self._state

    @property
    def algorithm(self) -> int:
        return 1

    @property
    def key(self) -> EagerTensor:
        return wrap(self._words()[2], dtypes.int64)

    def reset(self, state: object) -> None:
        self._state.assign(convert_to_tensor(state, dtypes.int64))

    def reset_from_seed(self, seed: int | None) -> None:
        self.reset(_state_of(seed))

    def reset_from_key_counter(self, key: TensorLike, counter: object) -> None:
        words = [int(c) for c in np.asarray(counter).reshape(-1)]
        self.reset(np.array([*words, int(np.asarray(key))], np.int64))

    def skip(self, delta: Any) -> EagerTensor:
        """Move on as if ``delta`` numbers had been made."""
        if not get_default_graph()._is_eager:
            raise NotImplementedError("Generator.skip works eagerly, not in a tf.function")
        self._take(int(delta))
        return wrap(self._words(), dtypes.int64)

    def _take(self, count: int) -> philox.Philox:
        with self._lock:
            low, high, key = (int(w) & _MASK for w in self._words())
            start = philox.Philox(key, high, low)
            counter = ((high << 64 | low) + philox.PER_NUMBER * count) & (1 << 128) - 1
            words = np.array([counter & _MASK, counter >> 64, key], np.uint64).view(np.int64)
            STATE.values[self._state._key] = words
        return start

    # numbers ------------------------------------------------------------------------------------
    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DType = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        return self._drawn(philox.normal, shape, dtype) * _as_tensor(stddev, dtype) + _as_tensor(
            mean, dtype
        )

    def truncated_normal(
        self,
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        return self._drawn(philox.truncated_normal, shape, dtype) * _as_tensor(
            stddev, dtype
        ) + _as_tensor(mean, dtype)

    def uniform(
        self,
        shape: ShapeLike,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        dtype: DType = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        kind = dtypes.as_dtype(dtype)
        if kind.is_integer:
            if maxval is None:
                raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
            return self._made(
                self._integers, kind, shape, _as_tensor(minval, kind), _as_tensor(maxval, kind)
            )
        numbers = self._drawn(philox.uniform, shape, kind)
        high_value = _as_tensor(1 if maxval is None else maxval, kind)
        low_value = _as_tensor(minval, kind)
        return numbers * (high_value - low_value) + low_value

    def uniform_full_int(
        self, shape: ShapeLike, dtype: DType = dtypes.uint64, name: str | None = None
    ) -> Any:
        """Integers over the whole range of the type."""
        kind = dtypes.as_dtype(dtype)
        return self._made(self._words_of, kind, shape)

    def _drawn(self, make: Callable[..., Any], shape: object, dtype: DTypeLike) -> Any:
        def numbers(count: int, kind: Any) -> Any:
            return make(self._take(count), count, kind.np_dtype)

        return self._made(numbers, dtypes.as_dtype(dtype), shape)

    def _words_of(self, count: int, kind: dtypes.DType) -> Array:
        return philox.words(self._take(count), count, kind.np_dtype).view(kind.np_dtype)

    def _integers(self, count: int, kind: dtypes.DType, minval: object, maxval: object) -> Array:
        bits = philox.words(self._take(count), count, kind.np_dtype)
        low, high = int_range(minval, maxval)
        return philox.into_range(bits, low, high, kind.np_dtype)

    def _made(
        self, make: Callable[..., Any], kind: dtypes.DType, shape: object, *inputs: object
    ) -> Any:
        """A tensor of the numbers that ``make(count, kind, *inputs)`` gives.

        Now, or whenever the function runs.
        """
        size = convert_to_tensor(shape, dtype_hint=dtypes.int32)

        def draw(wanted: TensorLike, *values: object) -> Any:
            dims = tuple(int(d) for d in np.asarray(wanted).reshape(-1))
            return make(math.prod(dims), kind, *values).reshape(dims)

        if get_default_graph()._is_eager:
            return wrap(draw(size, *[np.asarray(t) for t in inputs]), kind)
        out = script.py_func(draw, [size, *inputs], kind)
        known = static_value(size)
        out.set_shape(None if known is None else tuple(known.reshape(-1).tolist()))
        return out

    # more generators ----------------------------------------------------------------------------
    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless ops, a column each."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return apply_op("Pack", [keys, apply_op("ZerosLike", keys)], axis=0)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators."""
        if not get_default_graph()._is_eager:
            raise NotImplementedError("Generator.split works eagerly, not in a tf.function")
        keys = self.uniform_full_int([count], dtypes.int64)._static
        return [Generator(state=np.array([0, 0, k], np.int64), alg="philox") for k in keys]


def _state_of(seed: int | None) -> Array:
    """One number as a state; several fill it from the front."""
    words = np.zeros(3, np.int64)
    given = np.atleast_1d(np.asarray(seed)).astype(np.int64)
    words[: len(given)] = given
    return words


def _as_tensor(value: TensorLike, dtype: DTypeLike) -> Tensor:
    return convert_to_tensor(value, dtypes.as_dtype(dtype))


_global: list[Generator | None] = [None]


def get_global_generator() -> Generator:
    """The generator that all share; its first state is any."""
    found = _global[0]
    if found is None:
        found = _global[0] = Generator.from_non_deterministic_state()
    return found


def set_global_generator(generator: Generator) -> None:
    """Replace the generator that ``get_global_generator`` returns."""
    _global[0] = generator
