"""Types, shapes, the graph, scopes, op definitions and how ops are added."""
