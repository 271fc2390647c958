"""Ops of tf.nn and tf.losses.

Activations, convolution, pooling, normalization, cross entropies, embeddings.
"""
