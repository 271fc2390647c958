"""The dataset and iterator ops under TensorFlow's names."""
