"""Ops of tf.nn and tf.losses: activations, convolution, pooling, normalization, cross entropies, embeddings."""
