"""Random tensors: uniform, normal and truncated normal numbers, shuffling, drawing from classes.

An op's generator belongs to the session and moves on with every run, so a session gives a new value
each time and a new session starts over. With fixed seeds the numbers are TensorFlow's (see
:mod:`headrace.kernels.numpy.philox`).

``Multinomial``: TensorFlow splits a large batch over its threads, and its numbers then depend on
how many there are. The numbers here are those of one thread, always.

    x = random_uniform([2, 3], -1.0, 1.0, seed=7)
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op, apply_operation
from headrace.core.convert import convert, convert_to_tensor
from headrace.core.dtypes import DType
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, KernelNode, define, lookup
from headrace.core.scopes import name_scope
from headrace.core.seeds import get_seed, set_random_seed
from headrace.core.shape_fns import unchanged
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.kernels.numpy import philox
from headrace.ops.array.array_shape import shape as shape_op
from headrace.ops.array.basic import constant
from headrace.runtime.memory import physical_memory

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, ShapeLike, TensorLike
    from headrace.core.opdef import OpDef
    from headrace.core.tensor import Operation

__all__ = [
    "categorical",
    "get_seed",
    "multinomial",
    "random_crop",
    "random_normal",
    "random_shuffle",
    "random_uniform",
    "set_random_seed",
    "set_seed",
    "truncated_normal",
]

#: The TF 2 name.
set_seed = set_random_seed

# kernels ----------------------------------------------------------------------------------------


def generator(rt: Runtime, node: KernelNode) -> philox.Guarded:
    """The generator of this op in this session."""
    make = partial(philox.Guarded, node.attrs["seed"], node.attrs["seed2"])
    return rt.session_resource(("random", node.key), make)


def shape_of(value: Array) -> tuple[int, ...]:
    """The shape that a shape input asks for."""
    if np.ndim(value) != 1:
        given = shapes.show(np.shape(value)).replace(" ", "")
        raise errors.InvalidArgumentError(
            None, None, f"shape must be a vector of {{int32,int64}}, got shape {given}"
        )
    out = tuple(value.tolist())
    if out and min(out) < 0:
        raise errors.InvalidArgumentError(None, None, f"Dimension {min(out)} must be >= 0")
    return out


def _uniform_kernel(
    xp: ArrayNamespace, shape: Array, *, dtype: DType, rt: Runtime, node: KernelNode
) -> Array:
    wanted = shape_of(shape)
    numbers = generator(rt, node).numbers(philox.uniform, math.prod(wanted), dtype.np_dtype)
    return numbers.reshape(wanted)


def _normal_kernel(
    xp: ArrayNamespace, shape: Array, *, dtype: DType, rt: Runtime, node: KernelNode
) -> Array:
    wanted = shape_of(shape)
    numbers = generator(rt, node).numbers(philox.normal, math.prod(wanted), dtype.np_dtype)
    return numbers.reshape(wanted)


def _truncated_kernel(
    xp: ArrayNamespace, shape: Array, *, dtype: DType, rt: Runtime, node: KernelNode
) -> Array:
    wanted = shape_of(shape)
    numbers = generator(rt, node).numbers(
        philox.truncated_normal, math.prod(wanted), dtype.np_dtype
    )
    return numbers.reshape(wanted)


def int_range(minval: Any, maxval: Any) -> tuple[int, int]:
    """The bounds of a uniform integer, checked."""
    for name, value in (("minval", minval), ("maxval", maxval)):
        if np.ndim(value):
            given = shapes.show(np.shape(value)).replace(" ", "")
            raise errors.InvalidArgumentError(None, None, f"{name} must be 0-D, got shape {given}")
    low, high = int(minval), int(maxval)
    if low >= high:
        raise errors.InvalidArgumentError(None, None, f"Need minval < maxval, got {low} >= {high}")
    return low, high


def _uniform_int_kernel(
    xp: ArrayNamespace,
    shape: Array,
    minval: Array,
    maxval: Array,
    *,
    Tout: DType,
    rt: Runtime,
    node: KernelNode,
) -> Array:
    wanted = shape_of(shape)
    count = math.prod(wanted)
    if not count:
        return np.empty(wanted, Tout.np_dtype)
    low, high = int_range(minval, maxval)
    bits = generator(rt, node).numbers(philox.words, count, Tout.np_dtype)
    return philox.into_range(bits, low, high, Tout.np_dtype).reshape(wanted)


def _shuffle_kernel(xp: ArrayNamespace, value: Array, *, rt: Runtime, node: KernelNode) -> Any:
    if np.ndim(value) == 0 or value.size <= 1 or value.shape[0] <= 1:
        return value
    n = value.shape[0]
    needed = -(-(n - 1) // 4)
    words = philox.groups(generator(rt, node).reserve(needed), needed).reshape(-1)[: n - 1]
    steps = (words % np.arange(n, 1, -1, dtype=np.uint32)).tolist()
    order = list(range(n))
    for i, step in enumerate(steps):
        j = i + step
        order[i], order[j] = order[j], order[i]
    return value[np.array(order)]


def check_memory(nbytes: int, shape: tuple[int, ...]) -> None:
    """Refuse at once what no memory of this machine can hold."""
    if nbytes > physical_memory():
        raise errors.ResourceExhaustedError(
            None,
            None,
            f"OOM when allocating tensor with shape{shapes.show(shape)}: it needs {nbytes:,} bytes",
        )


def check_draw(logits: Array, num_samples: Array) -> int:
    """The number of draws, after TensorFlow's checks of the inputs."""
    if np.ndim(logits) != 2:
        given = shapes.show(np.shape(logits)).replace(" ", "")
        raise errors.InvalidArgumentError(
            None, None, f"logits should be a matrix, got shape {given}"
        )
    if np.ndim(num_samples):
        given = shapes.show(np.shape(num_samples)).replace(" ", "")
        raise errors.InvalidArgumentError(
            None, None, f"num_samples should be a scalar, got shape {given}"
        )
    count = int(num_samples)
    if count < 0:
        raise errors.InvalidArgumentError(
            None, None, f"num_samples should be nonnegative, got {count}"
        )
    if logits.shape[1] == 0:
        raise errors.InvalidArgumentError(None, None, "num_classes should be positive, got 0")
    check_memory(logits.shape[0] * count * 16, (logits.shape[0], count))
    return count


def draws_reserved(batch: int, count: int) -> int:
    return batch * (-(-count // 4) * 4 * 2) * philox.PER_NUMBER


def draw(start: philox.Philox, logits: Array, count: int, dtype: np.dtype[Any]) -> Any:
    """``count`` class numbers for each row: places of uniform numbers in its running sum."""
    batch = logits.shape[0]
    weights = logits.astype(np.float64)
    finite = np.isfinite(weights)
    top = weights.max(axis=1, keepdims=True, where=finite, initial=-np.inf)
    weights = np.where(finite, np.exp(weights - top), 0.0)
    sums = weights.cumsum(axis=1)
    found = philox.uniform(start, batch * count, np.dtype(np.float64)).reshape(batch, count)
    found = found * sums[:, -1:]
    if count * weights.size <= 1 << 16:  # compare everything: no loop over the rows
        return (sums[:, None, :] <= found[:, :, None]).sum(axis=2, dtype=dtype)
    out = np.empty((batch, count), dtype)
    for row in range(batch):
        out[row] = sums[row].searchsorted(found[row], side="right")
    return out


def _multinomial_kernel(
    xp: ArrayNamespace,
    logits: Array,
    num_samples: Array,
    *,
    output_dtype: DType,
    rt: Runtime,
    node: KernelNode,
) -> Any:
    count = check_draw(logits, num_samples)
    batch = logits.shape[0]
    if not batch or not count:
        return np.empty((batch, count), output_dtype.np_dtype)
    start = generator(rt, node).reserve(draws_reserved(batch, count))
    return draw(start, logits, count, output_dtype.np_dtype)


# definitions ------------------------------------------------------------------------------------


def shape_input(c: Inference) -> list[Shape]:
    """Input 0 holds the output's shape."""
    c.require_rank(0, 1)
    return [c.shape_value(0)]


def _uniform_int_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 0)
    c.require_rank(2, 0)
    return shape_input(c)


def draw_shape(c: Inference) -> list[Shape]:
    batch = c.require_rank(0, 2)
    c.require_rank(1, 0)
    count = c.value(1)
    if count is not None and count < 0:
        raise ValueError(
            f"Dimension size, given by scalar input 1, must be non-negative but is {int(count)}"
        )
    return [(batch[0] if batch is not None else None, None if count is None else int(count))]


_SEEDS = "seed: int=0, seed2: int=0"

RANDOM_UNIFORM = define(
    "RandomUniform",
    f"shape: T -> output: dtype; {_SEEDS}, dtype: type(float), T: type(index)",
    shape=shape_input,
    kernel=_uniform_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    shape_input=0,
)
RANDOM_STANDARD_NORMAL = define(
    "RandomStandardNormal",
    f"shape: T -> output: dtype; {_SEEDS}, dtype: type(float), T: type(index)",
    shape=shape_input,
    kernel=_normal_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    shape_input=0,
)
TRUNCATED_NORMAL = define(
    "TruncatedNormal",
    f"shape: T -> output: dtype; {_SEEDS}, dtype: type(float), T: type(index)",
    shape=shape_input,
    kernel=_truncated_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    shape_input=0,
)
RANDOM_UNIFORM_INT = define(
    "RandomUniformInt",
    f"shape: T, minval: Tout, maxval: Tout -> output: Tout; {_SEEDS}, "
    "Tout: type(index), T: type(index)",
    shape=_uniform_int_shape,
    kernel=_uniform_int_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    shape_input=0,
)
RANDOM_SHUFFLE = define(
    "RandomShuffle",
    f"value: T -> output: T; {_SEEDS}",
    shape=unchanged,
    kernel=_shuffle_kernel,
    grad=NO_GRADIENT_YET,
    stateful=True,
    random=True,
    view=True,
)
MULTINOMIAL = define(
    "Multinomial",
    f"logits: T, num_samples: int32 -> output: output_dtype; "
    f"{_SEEDS}, T: type(real), output_dtype: type(index)=int64",
    shape=draw_shape,
    kernel=_multinomial_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(1,),
)

# wrappers ---------------------------------------------------------------------------------------

_UNIFORM_TYPES = (
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
    dtypes.int32,
    dtypes.int64,
)


def shape_tensor(shape: object) -> Tensor:
    """A shape argument as a tensor; a list may hold tensors and Dimensions."""
    if isinstance(shape, (list, tuple)) and not shape:
        return convert(shape, dtypes.int32, "shape")
    return convert(shape, None, "shape")


def op_seeds(seed: object) -> dict[str, Any]:
    """The seed attributes of an op that was given ``seed``."""
    first, second = get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


def uniform_bounds(dtype: DType, maxval: TensorLike | None) -> Any:
    """Check the type of a uniform distribution and fill in its upper bound."""
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(f"Invalid dtype {dtype!r}")
    if maxval is not None:
        return maxval
    if dtype.is_integer:
        raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
    return 1


def random_uniform(
    shape: Any,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers of ``shape`` drawn uniformly from [minval, maxval); new ones in every run.

    Integers need ``maxval``. With ``seed`` (or ``tf.set_random_seed``) the numbers are TensorFlow's
    and begin anew with each session.
    """
    dtype = dtypes.as_dtype(dtype)
    maxval = uniform_bounds(dtype, maxval)
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        low = convert(minval, dtype, "min")
        high = convert(maxval, dtype, "max")
        seeds = op_seeds(seed)
        if dtype.is_integer:
            return apply(RANDOM_UNIFORM_INT, shape, low, high, name=scope, **seeds)
        drawn = apply(RANDOM_UNIFORM, shape, dtype=dtype, **seeds)
        scaled = apply_op("Mul", drawn, apply_op("Sub", high, low, name="sub"), name="mul")
        return apply_op("Add", scaled, low, name=scope)


def random_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: object = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers of a shape, drawn anew in every run.

    With a ``seed`` (or ``tf.set_random_seed``) a session begins the same sequence each time.

    ``mean`` and ``stddev`` are broadcast to ``shape``.
    """
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        return _scaled(
            RANDOM_STANDARD_NORMAL, shape, mean, stddev, dtypes.as_dtype(dtype), seed, scope
        )


def truncated_normal(
    shape: object,
    mean: object = 0.0,
    stddev: object = 1.0,
    dtype: object = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers of ``shape``; those more than two standard deviations off are drawn again.

    The usual first values of weights. With ``seed`` the numbers are TensorFlow's.

    ``mean`` and ``stddev`` are broadcast to ``shape``.
    """
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        return _scaled(TRUNCATED_NORMAL, shape, mean, stddev, dtypes.as_dtype(dtype), seed, scope)


def _scaled(
    opdef: OpDef,
    shape: object,
    mean: object,
    stddev: object,
    dtype: DType,
    seed: int | None,
    scope: str,
) -> Tensor:
    shape = shape_tensor(shape)
    mean = convert(mean, dtype, "mean")
    stddev = convert(stddev, dtype, "stddev")
    drawn = apply(opdef, shape, dtype=dtype, **op_seeds(seed))
    return apply_op("Add", apply_op("Mul", drawn, stddev, name="mul"), mean, name=scope)


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of ``value`` in a random order, drawn anew in every run."""
    return apply(RANDOM_SHUFFLE, value, name=name, **op_seeds(seed))


def random_crop(
    value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None
) -> Tensor:
    """A piece of ``value`` of the given size, at a random place.

    ``size`` has a number for each dimension of ``value``, none larger than it; the place is drawn
    anew in each run. ``seed`` makes the sequence repeatable.

        tf.random_crop([[1, 1], [1, 1]], [1, 2])  # [[1, 1]]
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert(size, dtypes.int32, "size")
        shape = shape_op(value)
        fits = apply_op("GreaterEqual", shape, size)
        fits = apply_op("All", fits, constant([0], dtypes.int32), keep_dims=False)
        check = _assert_fits(fits, shape, size)
        with get_default_graph().control_dependencies([check]):
            shape = apply_op("Identity", shape, name="control_dependency")
        limit = apply_op("AddV2", apply_op("Sub", shape, size, name="sub"), 1, name="add")
        offset = random_uniform(
            shape_op(shape), dtype=dtypes.int32, maxval=dtypes.int32.max, seed=seed
        )
        offset = apply_op("FloorMod", offset, limit, name="mod")
        return apply_op("Slice", value, offset, size, name=scope)


def _assert_fits(fits: Tensor, shape: Tensor, size: Tensor) -> Operation:
    text = "Need value.shape >= size, got "
    with name_scope("Assert"):
        constant(
            text
        )  # TensorFlow makes this one too; without it the seeds of later ops would differ
        return apply_operation(lookup("Assert"), fits, [text, shape, size], summarize=1000)


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: object = None,
) -> Tensor:
    """``num_samples`` class numbers for each row of unnormalised log-probabilities [rows, classes].

    ``output_dtype`` is int64 or int32. ``tf.random.categorical`` is the newer name.
    """
    with name_scope(name, "multinomial", [logits]):
        return _drawn(logits, num_samples, output_dtype, seed)


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DType | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """For each row of unnormalised log-probabilities ``num_samples`` class numbers.

    ``logits`` is [batch, classes]; the result is int64 (or ``dtype`` int32) [batch, num_samples].
    ``seed`` makes the sequence repeatable.

        tf.random.categorical([[0.0, -100.0]], 2)  # [[0, 0]]
    """
    with name_scope(name, "categorical", [logits]):
        return _drawn(logits, num_samples, dtype, seed)


def _drawn(logits: TensorLike, num_samples: object, dtype: object, seed: object) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    dtype = dtypes.int64 if dtype is None else dtype
    return apply(MULTINOMIAL, logits, num_samples, output_dtype=dtype, **op_seeds(seed))
