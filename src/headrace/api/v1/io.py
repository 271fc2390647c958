"""``tf.io``: files, records, and what is in them."""

# fmt: off

import typing as _typing

from headrace.api.missing import late, module_getattr

LAZY_NAMES = late({
    "headrace.ops.queues.queues": "PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
    "headrace.ops.queues.file_readers": (
        "FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader "
        "WholeFileReader"
    ),
    "headrace.wire.graph_files": "write_graph",
    "headrace.wire.tfrecord": (
        "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator"
    ),
    "headrace.ops.io.decoding": "decode_compressed parse_tensor serialize_tensor",
    "headrace.ops.io.decoding_csv": "decode_csv",
    "headrace.ops.io.file_ops": "match_filenames_once matching_files read_file write_file",
    "headrace.ops.image.encode": (
        "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png "
        "encode_jpeg encode_png extract_jpeg_shape is_jpeg"
    ),
    "headrace.ops.io.parsing_features": (
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example "
        "parse_sequence_example parse_single_example parse_single_sequence_example"
    ),
    "headrace.ops.io.sparse_rows": (
        "deserialize_many_sparse serialize_many_sparse serialize_sparse"
    ),
    "headrace.ops.strings.string_encoding": "decode_base64 encode_base64",
    "headrace.ops.strings.string_numbers": "decode_raw",
})

__all__ = [*LAZY_NAMES, "gfile"]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1 import io_gfile as gfile
    from headrace.ops.image.encode import decode_and_crop_jpeg as decode_and_crop_jpeg
    from headrace.ops.image.encode import decode_bmp as decode_bmp
    from headrace.ops.image.encode import decode_gif as decode_gif
    from headrace.ops.image.encode import decode_image as decode_image
    from headrace.ops.image.encode import decode_jpeg as decode_jpeg
    from headrace.ops.image.encode import decode_png as decode_png
    from headrace.ops.image.encode import encode_jpeg as encode_jpeg
    from headrace.ops.image.encode import encode_png as encode_png
    from headrace.ops.image.encode import extract_jpeg_shape as extract_jpeg_shape
    from headrace.ops.image.encode import is_jpeg as is_jpeg
    from headrace.ops.io.decoding import decode_compressed as decode_compressed
    from headrace.ops.io.decoding import parse_tensor as parse_tensor
    from headrace.ops.io.decoding import serialize_tensor as serialize_tensor
    from headrace.ops.io.decoding_csv import decode_csv as decode_csv
    from headrace.ops.io.file_ops import match_filenames_once as match_filenames_once
    from headrace.ops.io.file_ops import matching_files as matching_files
    from headrace.ops.io.file_ops import read_file as read_file
    from headrace.ops.io.file_ops import write_file as write_file
    from headrace.ops.io.parsing_features import FixedLenFeature as FixedLenFeature
    from headrace.ops.io.parsing_features import FixedLenSequenceFeature as FixedLenSequenceFeature
    from headrace.ops.io.parsing_features import SparseFeature as SparseFeature
    from headrace.ops.io.parsing_features import VarLenFeature as VarLenFeature
    from headrace.ops.io.parsing_features import parse_example as parse_example
    from headrace.ops.io.parsing_features import parse_sequence_example as parse_sequence_example
    from headrace.ops.io.parsing_features import parse_single_example as parse_single_example
    from headrace.ops.io.parsing_features import (
        parse_single_sequence_example as parse_single_sequence_example,
    )
    from headrace.ops.io.sparse_rows import deserialize_many_sparse as deserialize_many_sparse
    from headrace.ops.io.sparse_rows import serialize_many_sparse as serialize_many_sparse
    from headrace.ops.io.sparse_rows import serialize_sparse as serialize_sparse
    from headrace.ops.queues.file_readers import FixedLengthRecordReader as FixedLengthRecordReader
    from headrace.ops.queues.file_readers import IdentityReader as IdentityReader
    from headrace.ops.queues.file_readers import ReaderBase as ReaderBase
    from headrace.ops.queues.file_readers import TextLineReader as TextLineReader
    from headrace.ops.queues.file_readers import TFRecordReader as TFRecordReader
    from headrace.ops.queues.file_readers import WholeFileReader as WholeFileReader
    from headrace.ops.queues.queues import PaddingFIFOQueue as PaddingFIFOQueue
    from headrace.ops.queues.queues import PriorityQueue as PriorityQueue
    from headrace.ops.queues.queues import QueueBase as QueueBase
    from headrace.ops.queues.queues import RandomShuffleQueue as RandomShuffleQueue
    from headrace.ops.strings.string_encoding import decode_base64 as decode_base64
    from headrace.ops.strings.string_encoding import encode_base64 as encode_base64
    from headrace.ops.strings.string_numbers import decode_raw as decode_raw
    from headrace.wire.graph_files import write_graph as write_graph
    from headrace.wire.tfrecord import TFRecordCompressionType as TFRecordCompressionType
    from headrace.wire.tfrecord import TFRecordOptions as TFRecordOptions
    from headrace.wire.tfrecord import TFRecordWriter as TFRecordWriter
    from headrace.wire.tfrecord import tf_record_iterator as tf_record_iterator

    __all__ += ["gfile"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "io", __name__, modules={"gfile": "headrace.api.v1.io_gfile"}, names=LAZY_NAMES
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
