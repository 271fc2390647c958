"""What users call: datasets, transformations, iterators, options."""
