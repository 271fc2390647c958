"""tf.gradients: the registry of gradient functions and the backward pass."""
