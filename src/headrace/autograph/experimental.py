"""``tf.autograph.experimental``."""

from headrace.autograph.autograph_api import Feature, do_not_convert, set_loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
