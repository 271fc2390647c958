"""Eager execution: operations computed at once, variables with values, tapes, functions."""
