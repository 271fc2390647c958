"""Optimizers of TF 1 and TF 2, and their slots.

A new one is a class here (``standard.py``, ``standard_v2.py``; ``rule_optimizer.py`` has what they
share) and the rule of its update in ``ops/training/update_rules.py``.
"""
