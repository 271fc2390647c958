"""``tf.metrics``: streaming metrics, one module per family."""
