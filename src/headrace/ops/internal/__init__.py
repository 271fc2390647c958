"""Ops that only rewriting makes, and helpers of gradient functions."""
