"""Parsing, decoding, files and printing."""
