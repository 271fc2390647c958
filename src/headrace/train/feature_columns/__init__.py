"""``tf.feature_column``: how raw features become the inputs of a model."""
