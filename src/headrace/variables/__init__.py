"""Variables of both TF-1 kinds, scopes, stores, partitioning, initializers."""
