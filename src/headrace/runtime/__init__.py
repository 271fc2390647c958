"""What the machine gives a process, and how it is shared: CPU features, cores and quotas, threads
and their turns, memory, interrupts and forks.
"""
