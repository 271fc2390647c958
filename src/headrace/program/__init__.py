"""A Program: the part of a graph that one call needs, immutable."""
