"""``tf.contrib.cudnn_rnn``, computed on the CPU."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.rnn.cudnn_layers import (
    CudnnCompatibleGRUCell,
    CudnnCompatibleLSTMCell,
    CudnnGRU,
    CudnnLSTM,
    CudnnRNNRelu,
    CudnnRNNTanh,
)

__all__ = [
    "CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell", "CudnnGRU", "CudnnLSTM", "CudnnRNNRelu",
    "CudnnRNNTanh",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.cudnn_rnn", __name__, [])
