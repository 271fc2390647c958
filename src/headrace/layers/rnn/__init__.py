"""Recurrent networks.

Cells (one step), wrappers around cells, and the loops that run them over a sequence.
"""
