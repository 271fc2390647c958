"""What runs a dataset: stages, passes over them, and the threads between them."""
