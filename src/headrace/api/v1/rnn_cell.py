"""``tf.nn.rnn_cell``."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.layers.rnn.basic_cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell
from headrace.layers.rnn.cell_wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    MultiRNNCell,
    ResidualWrapper,
)

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell",
    "LSTMStateTuple", "MultiRNNCell", "RNNCell", "ResidualWrapper",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("nn.rnn_cell", __name__)
