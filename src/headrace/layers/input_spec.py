"""What a layer accepts: rank, shape, type and the sizes of some axes of each of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.annotations import DTypeLike
from headrace.core.shapes import dimension_value

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["InputSpec", "assert_input_compatibility"]


class InputSpec:
    """A condition on one input: ``InputSpec(ndim=4, axes={-1: 3})``.

    ``shape`` gives every size (None: any); ``ndim``, ``min_ndim`` and ``max_ndim`` bound the rank;
    ``axes`` maps an axis to its size.
    """

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self.shape = shape
        self.ndim = ndim if shape is None else len(shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        try:
            self.axes = {int(k): v for k, v in (axes or {}).items()}
        except (ValueError, TypeError, AttributeError):
            raise TypeError("The keys in axes must be integers.") from None
        rank = self.ndim or self.max_ndim
        if self.axes and rank is not None and max(self.axes) > rank - 1:
            raise ValueError(
                f"Axis {max(self.axes)} is greater than the maximum allowed value: {rank - 1}"
            )

    def __repr__(self) -> str:
        fields = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        given = [f"{name}={getattr(self, name)}" for name in fields if getattr(self, name)]
        return f"InputSpec({', '.join(given)})"

    def get_config(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "shape": self.shape,
            "ndim": self.ndim,
            "max_ndim": self.max_ndim,
            "min_ndim": self.min_ndim,
            "axes": self.axes,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        return cls(**config)


def assert_input_compatibility(input_spec: object, inputs: Tensor, layer_name: str) -> None:
    """ValueError unless every input fits its spec."""
    if not input_spec:
        return
    flat, specs = nest.flatten(inputs), nest.flatten(input_spec)
    if len(flat) != len(specs):
        raise ValueError(
            f"Layer {layer_name} expects {len(specs)} inputs, but it received {len(flat)} "
            "input tensors. "
            f"Inputs received: {flat}"
        )
    for index, (x, spec) in enumerate(zip(flat, specs)):
        if spec is not None:
            _check_rank(spec, x, index, layer_name)
            _check_dtype(spec, x, index, layer_name)
            _check_sizes(spec, x, index, layer_name)


def _head(index: int, layer: str) -> str:
    return f"Input {index} of layer {layer} is incompatible with the layer: "


def _check_rank(spec: InputSpec, x: Tensor, index: int, layer: str) -> None:
    if spec.ndim is None and spec.min_ndim is None and spec.max_ndim is None:
        return
    rank = x.shape.ndims
    if rank is None:
        raise ValueError(
            _head(index, layer) + "its rank is undefined, but the layer requires a defined rank."
        )
    if spec.ndim is not None and rank != spec.ndim:
        raise ValueError(
            f"{_head(index, layer)}expected ndim={spec.ndim}, found ndim={rank}. "
            f"Full shape received: {x.shape.as_list()}"
        )
    if spec.max_ndim is not None and rank > spec.max_ndim:
        raise ValueError(
            f"{_head(index, layer)}expected max_ndim={spec.max_ndim}, found ndim={rank}"
        )
    if spec.min_ndim is not None and rank < spec.min_ndim:
        raise ValueError(
            f"{_head(index, layer)}: expected min_ndim={spec.min_ndim}, found ndim={rank}. "
            f"Full shape received: {x.shape.as_list()}"
        )


def _check_dtype(spec: InputSpec, x: Tensor, index: int, layer: str) -> None:
    if spec.dtype is not None and x.dtype != spec.dtype:
        raise ValueError(f"{_head(index, layer)}expected dtype={spec.dtype}, found dtype={x.dtype}")


def _check_sizes(spec: InputSpec, x: Any, index: int, layer: str) -> None:
    if not spec.axes and spec.shape is None:
        return
    shape = x.shape.as_list()
    for axis, size in spec.axes.items():
        want = dimension_value(size)
        if want is not None and shape[axis] not in (want, None):
            raise ValueError(
                f"{_head(index, layer)}expected axis {axis} of input shape to have value "
                f"{want} but received input "
                f"with shape {shape}"
            )
    if spec.shape is not None:
        for want, have in zip(spec.shape, shape):
            if want is not None and have is not None and want != have:
                raise ValueError(
                    f"Input {index} is incompatible with layer {layer}: expected "
                    f"shape={spec.shape}, "
                    f"found shape={shape}"
                )
