"""Sequence to sequence: decoders, helpers, attention and beam search of ``tf.contrib.seq2seq``."""
