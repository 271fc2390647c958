"""From a rewritten program to something that runs: fusion, lifetimes, packed weights, generated code, bound runs."""
