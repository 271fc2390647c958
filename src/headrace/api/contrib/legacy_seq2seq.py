"""``tf.contrib.legacy_seq2seq``."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.legacy_seq2seq.list_decoders import (
    attention_decoder,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from headrace.layers.legacy_seq2seq.list_losses import (
    list_sequence_loss as sequence_loss,
)
from headrace.layers.legacy_seq2seq.list_losses import (
    model_with_buckets,
    sequence_loss_by_example,
)
from headrace.layers.legacy_seq2seq.list_models import (
    basic_rnn_seq2seq,
    embedding_attention_seq2seq,
    embedding_rnn_seq2seq,
    embedding_tied_rnn_seq2seq,
    one2many_rnn_seq2seq,
    tied_rnn_seq2seq,
)

__all__ = [
    "attention_decoder", "basic_rnn_seq2seq", "embedding_attention_decoder",
    "embedding_attention_seq2seq", "embedding_rnn_decoder", "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq", "model_with_buckets", "one2many_rnn_seq2seq", "rnn_decoder",
    "sequence_loss", "sequence_loss_by_example", "tied_rnn_seq2seq",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.legacy_seq2seq", __name__, [])
