"""``tf.contrib.legacy_seq2seq``: encoders and decoders unrolled over lists of inputs."""
