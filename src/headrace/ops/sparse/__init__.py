"""SparseTensor and the ops of tf.sparse."""
