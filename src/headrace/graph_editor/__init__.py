"""``tf.contrib.graph_editor``: select, reroute and copy parts of a graph that exists."""
