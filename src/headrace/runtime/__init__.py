"""What the machine gives a process: CPU features, cores and quotas."""
