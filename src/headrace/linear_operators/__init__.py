"""``tf.linalg.LinearOperator``: matrices that know their structure."""
