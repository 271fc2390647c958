"""Training ops: the update rules of the optimizers."""
