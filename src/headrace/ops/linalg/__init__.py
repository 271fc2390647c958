"""Matrix products, contractions, decompositions, diagonals, norms."""
