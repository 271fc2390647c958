"""Kernels over NumPy arrays: arrays in, arrays out, no graph."""
