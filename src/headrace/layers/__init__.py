"""Layers: the objects behind ``tf.layers``, ``tf.nn.rnn_cell``, contrib and Keras."""
