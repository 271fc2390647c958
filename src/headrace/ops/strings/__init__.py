"""String tensors and hashes of strings."""
