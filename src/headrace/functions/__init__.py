"""tf.function: tracing, signatures, concrete functions, their gradients."""
