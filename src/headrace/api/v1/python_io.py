"""``tf.python_io``: TFRecord files."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.wire.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("python_io", __name__)
