"""Datasets of files.

TFRecordDataset, TextLineDataset, FixedLengthRecordDataset, for either version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.specs import TensorSpec
from headrace.data.api.dataset import DatasetV2
from headrace.data.api.dataset_v1 import DatasetV1

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.data.api.mapped import Mapped

__all__ = [
    "FixedLengthRecordDatasetV1",
    "FixedLengthRecordDatasetV2",
    "TFRecordDatasetV1",
    "TFRecordDatasetV2",
    "TextLineDatasetV1",
    "TextLineDatasetV2",
]

STRING = TensorSpec((), dtypes.string)
#: Bytes that are read at once.
BUFFER = 256 * 1024


def _file_names(filenames: str | Tensor | Mapped | Sequence[Any]) -> Any:
    """A dataset of names: of one name, of several, or of what is one already."""
    if isinstance(filenames, DatasetV2):
        if filenames.element_spec.dtype is not dtypes.string:
            raise TypeError("`filenames` must be a `tf.data.Dataset` of `tf.string` elements.")
        return filenames
    if hasattr(filenames, "__fspath__"):
        filenames = filenames.__fspath__()
    if isinstance(filenames, (list, tuple)):
        filenames = [n.__fspath__() if hasattr(n, "__fspath__") else n for n in filenames]
    names = convert_to_tensor(filenames, dtypes.string, name="filenames")
    return DatasetV2._base.from_tensor_slices(
        apply_op("Reshape", names, [-1], name="flat_filenames")
    )


def _text(value: Any, default: str) -> Tensor:
    return convert_to_tensor(
        default if value is None else value, dtypes.string, name="compression_type"
    )


def _read(
    base: Any, filenames: str | Tensor | Mapped | Sequence[Any], read: Any, parallel: Any
) -> Any:
    """The variant of ``read(name)`` for every name."""
    names = _file_names(filenames)
    if parallel is None:
        return names.flat_map(lambda name: base(read(name), STRING))
    return names.interleave(
        lambda name: base(read(name), STRING), cycle_length=parallel, num_parallel_calls=parallel
    )


class _Reader:
    """Beside a dataset class: built from the op of one file."""

    _base: Any

    def _init(self, filenames: Tensor, read: Callable[..., Any], parallel: object = None) -> None:
        made = _read(self._base, filenames, read, parallel)
        self._base.__init__(self, made._variant_tensor, STRING)


class _Records(_Reader):
    """Records or lines of files that may be compressed, by the operation ``_op``."""

    _op: str

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: object = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        kind = _text(compression_type, "")
        size = BUFFER if buffer_size is None else buffer_size
        self._init(filenames, lambda f: apply_op(self._op, f, kind, size), num_parallel_reads)


class _TFRecord(_Records):
    _op = "TFRecordDataset"


class _TextLine(_Records):
    _op = "TextLineDataset"


class _FixedLength(_Reader):
    def __init__(
        self,
        filenames: Any,
        record_bytes: object,
        header_bytes: object = None,
        footer_bytes: object = None,
        buffer_size: object = None,
        compression_type: str | None = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        sizes = [header_bytes or 0, record_bytes, footer_bytes or 0]
        size = BUFFER if buffer_size is None else buffer_size
        kind = _text(compression_type, "")
        self._init(
            filenames,
            lambda f: apply_op("FixedLengthRecordDatasetV2", f, *sizes, size, kind),
            num_parallel_reads,
        )


class TFRecordDatasetV2(_TFRecord, DatasetV2):
    """The records of TFRecord files, one string each.

    ``filenames`` is one name, a list or a dataset of names. ``compression_type`` is "", "ZLIB" or
    "GZIP"; ``num_parallel_reads`` reads so many files at once, their records mixed.
    """


class TFRecordDatasetV1(_TFRecord, DatasetV1):
    """The records of TFRecord files, one string each.

    ``filenames`` is one name, a list or a dataset of names. ``compression_type`` is "", "ZLIB" or
    "GZIP"; ``num_parallel_reads`` reads so many files at once, their records mixed.

        tf.data.TFRecordDataset("train.tfrecord").map(parse)
    """


class TextLineDatasetV2(_TextLine, DatasetV2):
    """The lines of text files, without their ends, as strings.

    ``filenames`` is one name, a list or a dataset of names. ``compression_type`` is "", "ZLIB" or
    "GZIP"; ``buffer_size`` bytes are read at a time; ``num_parallel_reads`` reads so many files at
    once, their lines mixed. Leave out a header with ``skip(1)``.
    """


class TextLineDatasetV1(_TextLine, DatasetV1):
    """The lines of text files, without their ends, as strings.

    ``filenames`` is one name, a list or a dataset of names. ``compression_type`` is "", "ZLIB" or
    "GZIP"; ``buffer_size`` bytes are read at a time; ``num_parallel_reads`` reads so many files at
    once, their lines mixed. Leave out a header with ``skip(1)``.
    """


class FixedLengthRecordDatasetV2(_FixedLength, DatasetV2):
    """The records of files in which all have one length.

    Each element is a string of ``record_bytes`` bytes; ``header_bytes`` at the beginning and
    ``footer_bytes`` at the end of each file are left out. ``filenames`` is one name, a list or a
    dataset of names; ``compression_type`` is "", "ZLIB" or "GZIP"; ``num_parallel_reads`` files are
    read at once.
    """


class FixedLengthRecordDatasetV1(_FixedLength, DatasetV1):
    """The records of files in which all have one length.

    Each element is a string of ``record_bytes`` bytes; ``header_bytes`` at the beginning and
    ``footer_bytes`` at the end of each file are left out. ``filenames`` is one name, a list or a
    dataset of names; ``compression_type`` is "", "ZLIB" or "GZIP"; ``num_parallel_reads`` files are
    read at once.
    """
