"""oneDNN through cffi: products, convolutions, normalisation, softmax, LSTM layers, element-wise
functions, updates.

Arrays are used where they lie; results are the same as NumPy's within rounding. A single matrix
product needs no preparation, so a new shape costs nothing; everything else has a primitive for each
shape, in bounded caches.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.kernels.onednn import adam_primitives as updates
from headrace.kernels.onednn import sgemm as plain
from headrace.kernels.onednn.bound_primitives import Fixed
from headrace.kernels.onednn.conv_primitives import Convolutions
from headrace.kernels.onednn.elementwise_primitives import Elementwise
from headrace.kernels.onednn.lstm_primitives import Lstms
from headrace.kernels.onednn.memory_formats import Layouts
from headrace.kernels.onednn.norm_primitives import Norms
from headrace.kernels.onednn.onednn_library import Api, load
from headrace.kernels.onednn.pool_primitives import Pooling
from headrace.kernels.onednn.product_choices import choices_for
from headrace.kernels.onednn.product_primitives import Products
from headrace.kernels.onednn.recurrent_products import Recurrent
from headrace.kernels.onednn.reduction_primitives import Sums
from headrace.kernels.onednn.softmax_primitives import Softmaxes
from headrace.kernels.onednn.weight_types import choose_way
from headrace.runtime.cpu_features import isa_name
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["OneDnn"]


class OneDnn:
    """The functions that ``headrace.kernels.accel`` asks for."""

    def __init__(self) -> None:
        self.api: Api = load()
        self.api.set_threads(thread_count())
        self.isa = self.api.isa
        self._choices = choices_for(self.isa)
        self.is_slow_inside = self._choices.is_slow_inside
        self.name = f"oneDNN {self.api.version} ({isa_name(self.isa)})"
        self._adam = updates.Adam(self.api)
        self._bind_windows()
        self._bind_products()
        self._bind_rows()

    def _bind_products(self) -> None:
        """Batches of products, and products with packed weights."""
        products = Products(self.api)
        self.batch_matmul, self.pack = products.batch_matmul, products.pack
        self.scores, self.as_pixels = products.scores, products.as_pixels
        self.product, self.matmul_bias = products.product, products.matmul_bias
        self.weights_form = partial(choose_way, isa=self.api.isa)
        recurrent = Recurrent(self.api)
        self.gates, self.steps_product = recurrent.gates, recurrent.product
        lstms = Lstms(self.api)
        self.pack_lstm, self.lstm = lstms.pack, lstms.layer
        self.fixed = Fixed(self.api, products, lstms)

    def _bind_rows(self) -> None:
        """Element-wise functions, sums, softmax, normalisation."""
        api = self.api
        elementwise, softmaxes, norms = Elementwise(api), Softmaxes(api), Norms(api)
        self.row_sums = Sums(api).row_sums
        self.unary, self.gradient = elementwise.unary, elementwise.gradient
        self.relu_grad = elementwise.relu_grad
        self.softmax, self.softmax_grad = softmaxes.softmax, softmaxes.softmax_grad
        self.log_softmax, self.log_softmax_grad = softmaxes.log_softmax, softmaxes.log_softmax_grad
        self.batch_norm, self.batch_norm_grad = norms.batch_norm, norms.batch_norm_grad
        self.batch_norm_inference = norms.batch_norm_inference
        self.layer_norm, self.layer_norm_grad = norms.layer_norm, norms.layer_norm_grad

    def _bind_windows(self) -> None:
        """Convolution and pooling."""
        self._layouts = layouts = Layouts(self.api)
        convolutions, pooling = Convolutions(self.api, layouts), Pooling(self.api, layouts)
        self.conv = convolutions.conv
        self.conv_input_grad = convolutions.conv_input_grad
        self.conv_filter_grad = convolutions.conv_filter_grad
        self.conv_filter_and_bias_grad = convolutions.conv_filter_and_bias_grad
        self.filter_order = convolutions.filter_order
        self.pack_filter = convolutions.pack
        self.max_pool, self.max_pool_grad = pooling.max_pool, pooling.max_pool_grad
        self.avg_pool, self.avg_pool_grad = pooling.avg_pool, pooling.avg_pool_grad

    def set_threads(self, n: int) -> None:
        self.api.set_threads(n)

    def matmul(self, a: Array, b: Array, out: Array, accumulate: bool = False) -> Array | None:
        if out is None and plain.better_swapped(a, b, self._choices):
            swapped = plain.matmul(self.api, b.T, a.T, None)
            return None if swapped is None else self._layouts.contiguous(swapped.T)
        if not accumulate and plain.better_as_primitive(a, b, self._choices):
            return self.batch_matmul(a, b, out)
        return plain.matmul(self.api, a, b, out, accumulate)

    def few_rows(self, a: Array, b: Array, bias: Array) -> Array | None:
        return plain.few_rows(self.api, a, b, bias)

    def adam(
        self,
        var: Array,
        m: Array,
        v: Array,
        rate: float | Array,
        beta1: float | Array,
        beta2: float | Array,
        epsilon: float | Array,
        grad: Array,
    ) -> bool:
        return self._adam(var, m, v, rate, beta1, beta2, epsilon, grad)
