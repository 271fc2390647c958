"""Graphs with calls of functions, written by TF 1.15."""
