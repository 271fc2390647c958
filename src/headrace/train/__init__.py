"""Optimizers, learning-rate schedules, moving averages, the global step."""
