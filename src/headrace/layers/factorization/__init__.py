"""``tf.contrib.factorization``: k-means, weighted alternating least squares, Gaussian mixtures."""
