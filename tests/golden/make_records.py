"""TFRecord files by TensorFlow, for Headrace to read, and the other way round.

    python tests/golden/make_records.py write tf1    # with TensorFlow: makes records/tf1.*
    python tests/golden/make_records.py read FOLDER  # compares what test_tfrecord.py wrote

Runs with TensorFlow 1.15 and 2, never imports headrace.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records")
KINDS = {"plain": "", "gzip": "GZIP", "zlib": "ZLIB"}


def records():
    """Empty, short and long ones, and two of equal length."""
    return [b"first", b"", b"x" * 300, b"other", bytes(bytearray(range(256)))]


def example_bytes():
    import tensorflow as tf

    train = tf.train
    feature = {
        "label": train.Feature(int64_list=train.Int64List(value=[3, -1])),
        "weight": train.Feature(float_list=train.FloatList(value=[0.5])),
        "name": train.Feature(bytes_list=train.BytesList(value=[b"a", b"bc"])),
    }
    return train.Example(features=train.Features(feature=feature)).SerializeToString()


def write(prefix):
    import tensorflow as tf

    for kind, compression in KINDS.items():
        path = os.path.join(FOLDER, "%s.%s" % (prefix, kind))
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as f:
            for record in records() + [example_bytes()]:
                f.write(record)


def read(folder):
    import tensorflow as tf

    for kind, compression in KINDS.items():
        path = os.path.join(folder, "headrace." + kind)
        options = tf.io.TFRecordOptions(compression_type=compression)
        found = list(tf.compat.v1.python_io.tf_record_iterator(path, options))
        assert found[:-1] == records(), kind
        want = tf.train.Example.FromString(example_bytes())
        assert tf.train.Example.FromString(found[-1]) == want, kind
    print("read %d files" % len(KINDS))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
