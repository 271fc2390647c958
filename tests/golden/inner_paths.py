"""Names below ``tensorflow.…`` that programs import, for cases that run on both engines."""

import importlib

#: Dotted names that cases asked for, without ``tensorflow.``: see recording.py.
ASKED = set()


def inner(tf, path, name):
    """``name`` of the module ``tensorflow.<path>``, of TensorFlow or of Headrace."""
    ASKED.add("%s.%s" % (path, name))
    if tf.__name__.startswith("headrace"):
        from headrace.api import facades

        return getattr(facades.facade(path, "tensorflow"), name)
    return getattr(importlib.import_module("tensorflow." + path), name)
