"""Probability distributions: ``tf.distributions`` and ``tf.contrib.distributions``.

``distribution`` has the base class; families stand in modules of their own; ``divergences`` has
the table of KL divergences, which families fill; ``bijectors`` are invertible functions.
"""
