"""``tf.contrib.tensor_forest``: random forests that grow from a stream of batches."""
