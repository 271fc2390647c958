"""jax.numpy as the array namespace of kernels that XLA compiles."""
