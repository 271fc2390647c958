"""Ops of tf.image: decoding, encoding, resizing, colours, boxes."""
