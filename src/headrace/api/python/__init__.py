"""Modules that stand behind ``tensorflow.python.…`` where no module of Headrace's own has the
names.
"""
