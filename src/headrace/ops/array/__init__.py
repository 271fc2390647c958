"""Ops that make, reshape, join, cut and index tensors."""
