"""What rules may rely on: dimensions, loop variables, stored shapes."""
