"""Sessions that look after training: initialization, hooks, checkpoints, threads."""
