"""Headrace runs TensorFlow-1 style programs on NumPy, without TensorFlow."""
