"""A VocabularyProcessor that TF 1.15 saved."""

from pathlib import Path

import headrace as tf

FILE = Path(__file__).parent.parent / "golden" / "vocabulary.tf"


def test_restore_what_tensorflow_pickled():
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(str(FILE))
    rows = list(processor.transform(["dog a and x"]))
    assert [list(r) for r in rows] == [[3, 1, 4, 0]]
    assert list(processor.reverse(rows)) == ["dog a and <UNK>"]
