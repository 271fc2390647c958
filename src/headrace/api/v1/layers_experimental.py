"""``tf.layers.experimental``."""

from headrace.layers.base import keras_style_scope, set_keras_style

__all__ = ["keras_style_scope", "set_keras_style"]
