"""``tf.io``: files, records, and what is in them, with TF 2's signatures."""

# fmt: off

from headrace.api.missing import late as _late
from headrace.api.v2.name_lookup import module_getattr as _module_getattr

_NAMES = _late({
    "headrace.wire.tfrecord": "TFRecordOptions TFRecordWriter",
    "headrace.ops.io.decoding": (
        "decode_compressed decode_raw=decode_raw_v2 parse_tensor serialize_tensor"
    ),
    "headrace.ops.io.decoding_csv": "decode_csv=decode_csv_v2",
    "headrace.ops.io.file_ops": "match_filenames_once matching_files read_file write_file",
    "headrace.ops.image.encode": (
        "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png "
        "encode_jpeg encode_png extract_jpeg_shape is_jpeg"
    ),
    "headrace.ops.io.parsing_features": (
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature "
        "parse_example=parse_example_v2 parse_sequence_example "
        "parse_single_example=parse_single_example_v2 parse_single_sequence_example"
    ),
    "headrace.ops.io.sparse_rows": (
        "deserialize_many_sparse serialize_many_sparse=serialize_many_sparse_v2 "
        "serialize_sparse=serialize_sparse_v2"
    ),
    "headrace.ops.strings.string_encoding": "decode_base64 encode_base64",
    "headrace.wire.graph_files": "write_graph",
})

__all__ = [*_NAMES, "gfile"]  # noqa: F822 (found late)

__getattr__ = _module_getattr(
    "io", __name__, modules={"gfile": "headrace.api.v1.io_gfile"}, names=_NAMES
)


def __dir__() -> list[str]:
    return sorted(__all__)
