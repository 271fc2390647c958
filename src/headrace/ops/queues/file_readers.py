"""``tf.TFRecordReader`` and its like: records of files whose names come from a queue.

>>> names = tf.train.string_input_producer(["a.csv", "b.csv"])
>>> key, line = tf.TextLineReader(skip_header_lines=1).read(names)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_many, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import int64, string
from headrace.core.tensor import Operation, Tensor
from headrace.ops.queues import reader_ops
from headrace.ops.queues.queues import QueueBase
from headrace.wire.tfrecord import TFRecordOptions

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.ops.queues.queues import FIFOQueue

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "ReaderBase",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class ReaderBase:
    """What readers share. A *work unit* is what comes out of the queue: the name of a file."""

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        return self._supports_serialize

    @staticmethod
    def _queue_ref(queue: FIFOQueue) -> Tensor:
        return queue.queue_ref if isinstance(queue, QueueBase) else queue

    def read(self, queue: FIFOQueue, name: str | None = None) -> Any:
        """The next record as (key, value), scalar strings."""
        return apply_many(reader_ops.READ, self._reader_ref, self._queue_ref(queue), name=name)

    def read_up_to(
        self, queue: FIFOQueue, num_records: TensorLike, name: str | None = None
    ) -> tuple[Tensor, ...]:
        """Up to ``num_records`` records as (keys, values), vectors of strings."""
        n = convert_to_tensor(num_records, dtype=int64, name="num_records")
        return apply_many(
            reader_ops.READ_UP_TO, self._reader_ref, self._queue_ref(queue), n, name=name
        )

    def num_records_produced(self, name: str | None = None) -> Tensor:
        return apply(reader_ops.RECORDS_PRODUCED, self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        return apply(reader_ops.UNITS_COMPLETED, self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The reader's state as a string; UnimplementedError within a file."""
        return apply(reader_ops.SERIALIZE_STATE, self._reader_ref, name=name)

    def restore_state(self, state: TensorLike, name: str | None = None) -> Operation:
        if isinstance(state, (list, tuple)):
            state = convert_to_tensor(state, string)
            if state._shape != ():
                raise ValueError(
                    f"Shape must be rank 0 but is rank {len(state._shape or ())}: the state of a "
                    "reader is one string"
                )
        return apply_operation(reader_ops.RESTORE_STATE, self._reader_ref, state, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """The op that brings the reader back to its beginning."""
        return apply_operation(reader_ops.READER_RESET, self._reader_ref, name=name)


class WholeFileReader(ReaderBase):
    """The name of a file and all that is in it."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply(reader_ops.WHOLE_FILE_READER, name=name), supports_serialize=True)


class IdentityReader(ReaderBase):
    """What is in the queue, as key and value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply(reader_ops.IDENTITY_READER, name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """The lines of a file, without their ends."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(
            apply(reader_ops.TEXT_LINE_READER, skip_header_lines=skip_header_lines or 0, name=name)
        )


class TFRecordReader(ReaderBase):
    """The records of a TFRecord file."""

    def __init__(self, name: str | None = None, options: object = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(
            apply(reader_ops.TF_RECORD_READER, compression_type=compression, name=name)
        )


class FixedLengthRecordReader(ReaderBase):
    """Reads records of ``record_bytes`` bytes from the files that a queue names.

    Each record begins ``hop_bytes`` (0: ``record_bytes``) after the one before. ``header_bytes`` at
    the beginning and ``footer_bytes`` at the end of a file are left out. ``encoding`` is "", "ZLIB"
    or "GZIP".
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(
            apply(
                reader_ops.FIXED_LENGTH_RECORD_READER,
                record_bytes=record_bytes,
                header_bytes=header_bytes or 0,
                footer_bytes=footer_bytes or 0,
                hop_bytes=hop_bytes or 0,
                encoding=encoding or "",
                name=name,
            )
        )
