"""Ops that read and write variables, by reference and by resource handle."""
