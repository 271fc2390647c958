"""Random tensors: TensorFlow's Philox streams, with and without state."""
