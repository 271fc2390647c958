"""``tf.contrib.rnn``."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.rnn.basic_cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from headrace.layers.rnn.bidirectional import (
    stack_bidirectional_dynamic_rnn,
    stack_bidirectional_rnn,
    static_bidirectional_rnn,
)
from headrace.layers.rnn.block_cells import (
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
    LSTMBlockFusedCell,
)
from headrace.layers.rnn.cell_base import LayerRNNCell, LSTMStateTuple, RNNCell
from headrace.layers.rnn.cell_wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    MultiRNNCell,
    ResidualWrapper,
)
from headrace.layers.rnn.contrib_cells import (
    IndRNNCell,
    IndyGRUCell,
    IndyLSTMCell,
    IntersectionRNNCell,
    LayerNormBasicLSTMCell,
    NASCell,
    UGRNNCell,
)
from headrace.layers.rnn.dynamic_rnn import transpose_batch_time
from headrace.layers.rnn.fused_cells import (
    CompiledWrapper,
    FusedRNNCell,
    FusedRNNCellAdaptor,
    LSTMBlockWrapper,
    TimeReversedFusedRNN,
    best_effort_input_batch_size,
)
from headrace.layers.rnn.grid_cells import BidirectionalGridLSTMCell, GridLSTMCell
from headrace.layers.rnn.projection_wrappers import (
    AttentionCellWrapper,
    EmbeddingWrapper,
    HighwayWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from headrace.layers.rnn.sharded_cells import (
    CoupledInputForgetGateLSTMCell,
    GLSTMCell,
    SRUCell,
    TimeFreqLSTMCell,
)
from headrace.layers.rnn.special_cells import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
    PhasedLSTMCell,
)
from headrace.layers.rnn.static_rnn import static_rnn, static_state_saving_rnn

__all__ = [
    "AttentionCellWrapper", "BasicLSTMCell", "BasicRNNCell", "BidirectionalGridLSTMCell",
    "CompiledWrapper", "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell",
    "CoupledInputForgetGateLSTMCell", "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper",
    "FusedRNNCell", "FusedRNNCellAdaptor", "GLSTMCell", "GRUBlockCell", "GRUBlockCellV2", "GRUCell",
    "GridLSTMCell", "HighwayWrapper", "IndRNNCell", "IndyGRUCell", "IndyLSTMCell",
    "InputProjectionWrapper", "IntersectionRNNCell", "LSTMBlockCell", "LSTMBlockFusedCell",
    "LSTMBlockWrapper", "LSTMCell", "LSTMStateTuple", "LayerNormBasicLSTMCell", "LayerRNNCell",
    "MultiRNNCell", "NASCell", "OutputProjectionWrapper", "PhasedLSTMCell", "RNNCell",
    "ResidualWrapper", "SRUCell", "TimeFreqLSTMCell", "TimeReversedFusedRNN", "UGRNNCell",
    "best_effort_input_batch_size", "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn",
    "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn", "transpose_batch_time",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.rnn", __name__, [])
