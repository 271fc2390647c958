"""What runs cost: TensorFlow's step statistics as a trace for Chrome's viewer."""
