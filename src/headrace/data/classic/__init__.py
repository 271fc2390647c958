"""The data sets that TensorFlow 1's tutorials read: MNIST from its files, small tables from CSV."""
