"""The ``tf.*`` namespaces.

``v1`` is TensorFlow 1.15's; ``platform`` has the parts that are not about graphs (files, flags,
logging).
"""
