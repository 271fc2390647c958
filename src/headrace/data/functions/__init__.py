"""Users' functions in pipelines: traced, called directly, or vectorized over batches."""
