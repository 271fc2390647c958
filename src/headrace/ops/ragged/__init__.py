"""RaggedTensor and the ops of tf.ragged."""
