"""Optimizers of TF 1 and TF 2, and their slots."""
