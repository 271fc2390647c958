"""Files in TensorFlow's formats, read and written without TensorFlow. Each module is imported where it is used."""
