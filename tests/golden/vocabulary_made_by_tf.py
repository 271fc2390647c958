"""Write golden/vocabulary.tf: a VocabularyProcessor that TF 1.15 pickled.

TF 1.15's Python: python vocabulary_made_by_tf.py
"""

import os

import tensorflow as tf

processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
processor.fit(["a cat", "a dog and a cat"])
processor.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocabulary.tf"))
