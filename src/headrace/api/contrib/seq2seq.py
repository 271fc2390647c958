"""``tf.contrib.seq2seq``."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.seq2seq.attention_mechanisms import (
    AttentionMechanism,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    hardmax,
    monotonic_attention,
    safe_cumprod,
)
from headrace.layers.seq2seq.attention_wrapper import AttentionWrapper, AttentionWrapperState
from headrace.layers.seq2seq.beam_search import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    gather_tree_from_array,
    tile_batch,
)
from headrace.layers.seq2seq.decoder import (
    BasicDecoder,
    BasicDecoderOutput,
    Decoder,
    dynamic_decode,
)
from headrace.layers.seq2seq.helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
    TrainingHelper,
)
from headrace.layers.seq2seq.sequence_losses import sequence_loss
from headrace.ops.nn.gather_tree import gather_tree

__all__ = [
    "AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention",
    "BahdanauMonotonicAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder",
    "BeamSearchDecoderOutput", "BeamSearchDecoderState", "CustomHelper", "Decoder",
    "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper", "Helper", "InferenceHelper",
    "LuongAttention", "LuongMonotonicAttention", "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "TrainingHelper",
    "dynamic_decode", "gather_tree", "gather_tree_from_array", "hardmax", "monotonic_attention",
    "safe_cumprod", "sequence_loss", "tile_batch",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.seq2seq", __name__, [])
