"""What programs take from TensorFlow that has nothing to do with graphs.

Files, flags, logging, tests, messages.
"""
