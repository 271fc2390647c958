"""jax.numpy as an array namespace, as ``numpy_xp`` is NumPy's: for kernels that XLA is to compile.

It is imported when the first program is made for XLA, and needs jax (``headrace[xla]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as _jnp
import jax.scipy.special as _special

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.numpy.im2col import Geometry

name = "jax"
#: Found by ``__getattr__``.
fft: Any
linalg: Any
pooling: Any
resample: Any


def index_add(array: Array, index: Array | Sequence[Any], values: Array) -> Any:
    """A copy of ``array`` with ``values`` added at ``index``; repeated indices accumulate."""
    return _jnp.asarray(array).at[index].add(values)


def index_set(array: Array, index: Array | Sequence[Any], values: Array) -> Any:
    """A copy of ``array`` with ``values`` put at ``index``."""
    return _jnp.asarray(array).at[index].set(values)


while_loop = jax.lax.while_loop


def _conv(x: Array, w: Array, g: Geometry) -> Any:
    axes = "DHW"[-len(g.strides) :]
    order = (f"N{axes}C", f"{axes}IO", f"N{axes}C")
    return jax.lax.conv_general_dilated(
        x, w, g.strides, g.pads, rhs_dilation=g.dilations, dimension_numbers=order
    )


def _conv_input_grad(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Any:
    zeros = _jnp.zeros(tuple(x_shape), gradient.dtype)
    return jax.vjp(lambda x: _conv(x, w, g), zeros)[1](gradient)[0]


def _conv_filter_grad(x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry) -> Any:
    zeros = _jnp.zeros(tuple(w_shape), gradient.dtype)
    return jax.vjp(lambda w: _conv(x, w, g), zeros)[1](gradient)[0]


#: What ``windowed`` is to NumPy. (Pooling is not there yet.)
windows = SimpleNamespace(
    conv=_conv, conv_input_grad=_conv_input_grad, conv_filter_grad=_conv_filter_grad
)


def __getattr__(attr: str) -> Any:
    found = getattr(_jnp, attr, None)
    return getattr(_special, attr) if found is None else found
