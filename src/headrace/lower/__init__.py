"""From a rewritten program to something that runs.

Fusion, lifetimes, packed weights, generated code, bound runs.
"""
