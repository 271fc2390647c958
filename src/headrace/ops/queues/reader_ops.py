"""The ops of readers. The value of a reader's handle is the :class:`ReaderResource` itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.ops.queues import reader_resource as resource
from headrace.ops.queues.reader_resource import ReaderResource
from headrace.ops.strings.string_ops import object_array

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.kernel_context import Runtime

__all__ = [
    "FIXED_LENGTH_RECORD_READER",
    "IDENTITY_READER",
    "READ",
    "READER_RESET",
    "READ_UP_TO",
    "RECORDS_PRODUCED",
    "RESTORE_STATE",
    "SERIALIZE_STATE",
    "TEXT_LINE_READER",
    "TF_RECORD_READER",
    "UNITS_COMPLETED",
    "WHOLE_FILE_READER",
]

_NAMES = "container: str='', shared_name: str=''"


def _define(
    name: str,
    signature: str,
    kernel: Callable[..., Any],
    shapes: Sequence[Sequence[None]],
    blocking: bool = False,
) -> OpDef:
    return define(
        name,
        signature,
        shape=lambda c: list(shapes),
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
        blocking=blocking,
    )


def _reader(
    name: str,
    attrs: str,
    opener: Callable[[dict[str, Any]], Callable[[bytes], Any]],
    single: bool = False,
) -> OpDef:
    """``attrs``: those before the names and, after a semicolon, those behind them."""

    def kernel(xp: ArrayNamespace, *, node: KernelNode, rt: Runtime) -> ReaderResource:
        shared = node.attrs["shared_name"]
        key = ("reader", f"{node.attrs['container']}/{shared or node.key}")
        return rt.session_resource(
            key, lambda: ReaderResource(shared or node.name, opener(node.attrs), single)
        )

    own, _, after = attrs.partition("; ")
    signature = "-> reader_handle: resource; " + ", ".join(filter(None, (own, _NAMES, after)))
    return _define(name, signature, kernel, [()])


WHOLE_FILE_READER = _reader("WholeFileReaderV2", "", lambda a: resource.whole_file, single=True)
IDENTITY_READER = _reader("IdentityReaderV2", "", lambda a: resource.identity, single=True)
TEXT_LINE_READER = _reader(
    "TextLineReaderV2",
    "skip_header_lines: int=0",
    lambda a: lambda path: resource.text(path, a["skip_header_lines"]),
)
TF_RECORD_READER = _reader(
    "TFRecordReaderV2",
    "; compression_type: str=''",
    lambda a: lambda path: resource.records(path, a["compression_type"]),
)
FIXED_LENGTH_RECORD_READER = _reader(
    "FixedLengthRecordReaderV2",
    "header_bytes: int=0, record_bytes: int, footer_bytes: int=0, hop_bytes: int=0; "
    "encoding: str=''",
    lambda a: (
        lambda path: resource.fixed_length(
            path,
            a["header_bytes"],
            a["record_bytes"],
            a["footer_bytes"],
            a["hop_bytes"],
            a["encoding"],
        )
    ),
)


def _text(value: bytes) -> np.ndarray[Any, Any]:
    out = np.empty((), object)
    out[()] = value
    return out


def _item(handle: Array) -> Any:
    return handle.item() if isinstance(handle, np.ndarray) else handle


def _read(
    xp: ArrayNamespace, reader_handle: ReaderResource, queue_handle: Array
) -> tuple[Any, Any]:
    queue = _item(queue_handle)
    if len(queue.types) != 1 or queue.types[0].name != "string":
        raise errors.InvalidArgumentError(
            None, None, f"Reader expects queue of strings, but '{queue.name}' has {queue.types}"
        )
    key, value = reader_handle.read(queue)
    return _text(key), _text(value)


def _read_up_to(
    xp: ArrayNamespace, reader_handle: ReaderResource, queue_handle: Array, num_records: Array
) -> tuple[Array, Array]:
    found = reader_handle.read_up_to(_item(queue_handle), int(num_records))
    keys, values = zip(*found)
    return object_array(list(keys), len(found)), object_array(list(values), len(found))


def _reset(xp: ArrayNamespace, reader_handle: ReaderResource) -> tuple[()]:
    reader_handle.reset()
    return ()


def _restore(xp: ArrayNamespace, reader_handle: Any, state: Any) -> tuple[()]:
    reader_handle.restore(state.item())
    return ()


_HANDLES = "reader_handle: resource, queue_handle: resource"
READ = _define("ReaderReadV2", f"{_HANDLES} -> key: string, value: string", _read, [(), ()], True)
READ_UP_TO = _define(
    "ReaderReadUpToV2",
    f"{_HANDLES}, num_records: int64 -> keys: string, values: string",
    _read_up_to,
    [(None,), (None,)],
    blocking=True,
)
RECORDS_PRODUCED = _define(
    "ReaderNumRecordsProducedV2",
    "reader_handle: resource -> records_produced: int64",
    lambda xp, reader_handle: np.int64(reader_handle.records_produced),
    [()],
)
UNITS_COMPLETED = _define(
    "ReaderNumWorkUnitsCompletedV2",
    "reader_handle: resource -> units_completed: int64",
    lambda xp, reader_handle: np.int64(reader_handle.units_completed),
    [()],
)
SERIALIZE_STATE = _define(
    "ReaderSerializeStateV2",
    "reader_handle: resource -> state: string",
    lambda xp, reader_handle: _text(reader_handle.state()),
    [()],
)
RESTORE_STATE = _define(
    "ReaderRestoreStateV2", "reader_handle: resource, state: string -> ", _restore, []
)
READER_RESET = _define("ReaderResetV2", "reader_handle: resource -> ", _reset, [])
