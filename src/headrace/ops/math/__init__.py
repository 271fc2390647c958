"""Element-wise functions, comparisons, reductions, segments, transforms; Python's operators."""
