"""Control flow, TensorArrays, assertions, Python functions as ops."""
