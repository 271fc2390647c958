"""Initializers: what ``get_variable`` and the layers call with a shape to get a first value.

An initializer is called as ``init(shape, dtype=None, partition_info=None)`` and can be written to
and read from a dictionary (``get_config``, ``from_config``). Names and numbers are TF 1.15's, with
its contrib factories at the end.

    >>> glorot_uniform_initializer(seed=1)([3, 4])
    <tf.Tensor 'random_uniform:0' shape=(3, 4) dtype=float32>
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_many, apply_op
from headrace.core.dtypes import DType
from headrace.core.opdef import lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import all_known, to_plain
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.array.filling import ones, zeros
from headrace.ops.random.random_ops import random_normal, random_uniform, truncated_normal

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike

__all__ = [
    "Constant",
    "ConvolutionDeltaOrthogonal",
    "GlorotNormal",
    "GlorotUniform",
    "Identity",
    "Initializer",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "UniformUnitScaling",
    "VarianceScaling",
    "Zeros",
    "constant_initializer",
    "contrib_variance_scaling_initializer",
    "convolutional_delta_orthogonal",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "he_normal",
    "he_uniform",
    "identity_initializer",
    "lecun_normal",
    "lecun_uniform",
    "ones_initializer",
    "orthogonal_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "truncated_normal_initializer",
    "uniform_unit_scaling_initializer",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
    "zeros_initializer",
]


def _dims(shape: object) -> list[int]:
    """A shape as a list of numbers."""
    plain = to_plain(shape)
    if not all_known(plain):
        raise ValueError(f"The shape of an initial value must be known here, got {shape}")
    return [int(d) for d in plain]


def _float_dtype(dtype: DTypeLike) -> DType:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


class Initializer:
    """Base class of all initializers: ``initializer(shape, dtype)`` returns a tensor."""

    dtype: DType

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(**config)


class Zeros(Initializer):
    """Zeros of the variable's shape; an instance is given as ``initializer=``."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        return zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class Ones(Initializer):
    """Ones of the variable's shape; an instance is given as ``initializer=``."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        return ones(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class Constant(Initializer):
    """A given value: a number, or a list, whose last element is repeated to fill the shape.

    ``verify_shape`` refuses a value whose shape is not the variable's. ``dtype`` is used where the
    variable names none.

        tf.constant_initializer([1, 2])([3])  # [1.0, 2.0, 2.0]
    """

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value)} (expected Python scalar, list "
                "or tuple of values, or numpy.ndarray)."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self,
        shape: Any,
        dtype: DTypeLike | None = None,
        partition_info: object = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        verify = self._verify_shape if verify_shape is None else verify_shape
        dtype = self.dtype if dtype is None else dtype
        return constant(self.value, dtype=dtype, shape=shape, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value, "dtype": self.dtype.name}


class RandomUniform(Initializer):
    """Numbers uniform in [minval, maxval), from the stream of ``seed``.

    ``maxval`` None means 1 for floats; integers need it. ``dtype`` is used where the variable names
    none.
    """

    def __init__(
        self,
        minval: Any = 0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        return random_uniform(shape, self.minval, self.maxval, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "minval": self.minval,
            "maxval": self.maxval,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class RandomNormal(Initializer):
    """Normal numbers of ``mean`` and ``stddev``, from the stream of ``seed``.

    ``dtype`` is used where the variable names none. With ``seed`` and the graph's seed unset the
    numbers differ from session to session.
    """

    def __init__(
        self,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _float_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        return random_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "stddev": self.stddev,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class TruncatedNormal(RandomNormal):
    """Normal numbers within two standard deviations of the mean.

    ``mean``, ``stddev``, ``seed`` and ``dtype`` are those of ``tf.random_normal_initializer``;
    numbers outside are drawn again.
    """

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        return truncated_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class UniformUnitScaling(Initializer):
    """Uniform numbers whose range keeps the scale of a layer's input.

    The range is ``factor * sqrt(3 / n)`` for n inputs: all dimensions but the last. ``factor`` is
    the gain of the activation that follows (about 1.43 for relu).
    """

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: DType | str = dtypes.float32
    ) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _float_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: Any = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        full = _dims(shape if partition_info is None else partition_info.full_shape)
        limit = math.sqrt(3 / max(float(math.prod(full[:-1])), 1.0)) * self.factor
        return random_uniform(shape, -limit, limit, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


#: The standard deviation of a standard normal distribution cut off at two.
_TRUNCATED_STDDEV = 0.87962566103423978


class VarianceScaling(Initializer):
    """Numbers of variance ``scale`` over a layer's number of inputs, outputs, or their mean.

    ``mode`` is "fan_in" (inputs), "fan_out" (outputs) or "fan_avg"; ``distribution``
    "truncated_normal", "untruncated_normal" or "uniform".
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Invalid `mode` argument:", mode)
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError("Invalid `distribution` argument:", distribution)
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _float_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: Any = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        fans = _fans(_dims(shape if partition_info is None else partition_info.full_shape))
        scale = self.scale / max(1.0, _connections(self.mode, *fans))
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        stddev = math.sqrt(scale) / _TRUNCATED_STDDEV
        return truncated_normal(shape, 0.0, stddev, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


def _fans(shape: list[int]) -> tuple[int, int]:
    """Inputs and outputs of one unit; further dimensions are a convolution's window."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    window = math.prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window


def _connections(mode: str, fan_in: float, fan_out: float) -> float:
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[mode]


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio's uniform distribution, also called Xavier's."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Glorot and Bengio's normal distribution, truncated."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance ``1 / inputs``, for ``selu`` networks."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance ``1 / inputs``."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance ``2 / inputs``, for ``relu`` networks."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance ``2 / inputs``, for ``relu`` networks."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


# matrices ---------------------------------------------------------------------------------------


class Orthogonal(Initializer):
    """A random orthogonal matrix; more dimensions are flattened to the last one.

    ``gain`` multiplies it; ``seed`` makes it repeatable. With fewer rows than columns its rows are
    orthonormal, otherwise its columns. One dimension is an error.
    """

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: DType | str = dtypes.float32
    ) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _float_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        dims = _dims(shape)
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        q = _orthogonal([max(rows, columns), min(rows, columns)], dtype, self.seed)
        if rows < columns:
            with name_scope("matrix_transpose"):
                q = apply_op("Transpose", q, [1, 0], name="transpose")
        reshaped = apply_op("Reshape", q, dims)
        return _times_gain(self.gain, reshaped)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


def _times_gain(gain: Any, matrix: Tensor) -> Tensor:
    """The gain, which may be NumPy's float64, with the type of what it multiplies."""
    if not isinstance(gain, Tensor):
        gain = float(gain)
    return apply_op("Mul", gain, matrix, T=matrix.dtype.base_dtype, name="mul")


def _orthogonal(shape: list[int], dtype: object, seed: int | None) -> Tensor:
    """Orthonormal columns; the signs of R's diagonal make the distribution uniform."""
    q, r = apply_many(
        lookup("Qr"), random_normal(shape, dtype=dtype, seed=seed), full_matrices=False
    )
    return apply_op("Mul", q, apply_op("Sign", apply_op("DiagPart", r)), name="mul")


class ConvolutionDeltaOrthogonal(Orthogonal):
    """A convolution kernel that is zero but for an orthogonal matrix at its centre."""

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: object = None
    ) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        dims = _dims(shape)
        if not 3 <= len(dims) <= 5:
            raise ValueError(
                "The tensor to initialize must be at least three-dimensional and at most "
                "five-dimensional"
            )
        if dims[-2] > dims[-1]:
            raise ValueError("In_filters cannot be greater than out_filters.")
        q = _orthogonal([dims[-1], dims[-1]], dtype, self.seed)
        q = apply_op("Slice", q, [0, 0], [dims[-2], dims[-1]])
        q = apply_op("ExpandDims", apply_op("Mul", q, self.gain, name="mul"), 0)
        centre = [[(d - 1) // 2 for d in dims[:-2]]]
        return apply_op("ScatterNd", centre, q, dims)


class Identity(Initializer):
    """The identity matrix times ``gain``."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _float_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: DType | None = None, partition_info: Any = None
    ) -> Tensor:
        dims = _dims(shape if partition_info is None else partition_info.full_shape)
        if len(dims) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        matrix = _eye(dims, self.dtype if dtype is None else dtype)
        if partition_info is not None:
            matrix = apply_op("Slice", matrix, list(partition_info.var_offset), _dims(shape))
        return _times_gain(self.gain, matrix)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "dtype": self.dtype.name}


def _eye(dims: list[int], dtype: object) -> Tensor:
    with name_scope("eye"):
        diagonal = ones([min(dims)], dtype)
        if dims[0] == dims[1]:
            return apply_op("MatrixDiag", diagonal, name="diag")
        return apply_op("MatrixSetDiag", zeros(dims, dtype), diagonal, name="set_diag")


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
orthogonal_initializer = Orthogonal
identity_initializer = Identity
convolutional_delta_orthogonal = ConvolutionDeltaOrthogonal

# tf.contrib.layers ------------------------------------------------------------------------------


def contrib_variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Callable[..., Any]:
    """``tf.contrib.layers.variance_scaling_initializer``, with its own factor for truncation.

    The variance is ``factor / n``, where n is the number of inputs ("FAN_IN"), of outputs
    ("FAN_OUT") or their mean ("FAN_AVG"). ``uniform`` draws from a range instead of a truncated
    normal distribution. The defaults are He's initializer, for relu.
    """
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def _initializer(shape: object, dtype: object = dtype, partition_info: object = None) -> Tensor:
        if not dtypes.as_dtype(dtype).is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        n = _connections(mode.lower(), *_fans(_dims(shape)))
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return random_uniform(shape, -limit, limit, dtype, seed=seed)
        return truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed=seed)

    return _initializer


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: DTypeLike = dtypes.float32
) -> Callable[..., Any]:
    """Glorot's initializer, uniform or normal: the variance is ``2 / (inputs + outputs)``.

    ``seed`` makes the numbers repeatable; the normal one is truncated at two deviations.
    ``tf.contrib.layers.xavier_initializer_conv2d`` is the same function.
    """
    return contrib_variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer
