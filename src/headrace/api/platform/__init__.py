"""What programs take from TensorFlow that has nothing to do with graphs: files, flags, logging, tests, messages."""
