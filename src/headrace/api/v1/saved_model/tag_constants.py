"""``tf.saved_model.tag_constants``."""

__all__ = ["GPU", "SERVING", "TPU", "TRAINING"]

GPU = "gpu"
SERVING = "serve"
TPU = "tpu"
TRAINING = "train"
