"""``tf.io``: files, records, and what is in them."""

# fmt: off

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
    "headrace.ops.strings.string_ops": "decode_base64 decode_raw encode_base64",
})

__all__ = [*LAZY_NAMES, "gfile"]  # noqa: F822 (found late)

__getattr__ = module_getattr(
    "io", __name__, modules={"gfile": "headrace.api.v1.io_gfile"}, names=LAZY_NAMES
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
