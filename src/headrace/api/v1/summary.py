"""``tf.summary`` of TF 1: summary ops and event files."""

import typing as _typing

from headrace.api.missing import late, module_getattr
from headrace.train.summaries.event_files import FileWriter, FileWriterCache
from headrace.train.summaries.summary_functions import (
    audio,
    get_summary_description,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)

MESSAGES = {
    "Event": "event_pb2",
    "SessionLog": "event_pb2",
    "Summary": "summary_pb2",
    "SummaryDescription": "summary_pb2",
    "TaggedRunMetadata": "event_pb2",
}

__all__ = [
    "FileWriter",
    "FileWriterCache",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]

LAZY_NAMES = late({"headrace.train.summaries.summary_writers": "all_v2_summary_ops initialize"})

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from typing import Any as _Any

    from headrace.train.summaries.summary_writers import all_v2_summary_ops as all_v2_summary_ops
    from headrace.train.summaries.summary_writers import initialize as initialize

    Event: _Any
    SessionLog: _Any
    Summary: _Any
    SummaryDescription: _Any
    TaggedRunMetadata: _Any
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("summary", __name__, messages=MESSAGES, names=LAZY_NAMES)
