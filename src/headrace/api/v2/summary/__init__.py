"""TF 2's ``tf.summary``: writers, and summaries that are written at once."""

import typing as _typing

from headrace.api.missing import late
from headrace.api.v2.name_lookup import module_getattr

LAZY_MODULES = {"experimental": "headrace.api.v2.summary.experimental"}
LAZY_NAMES = late(
    {
        "headrace.train.summaries.plugin_summaries": "audio histogram image scalar text",
        "headrace.train.summaries.summary_writers": (
            "SummaryWriter create_file_writer=create_file_writer_v2 create_noop_writer flush "
            "graph=graph_v2 record_if should_record_summaries=should_record_summaries_v2 "
            "trace_export trace_off trace_on write"
        ),
    }
)

__all__ = [*LAZY_MODULES, *LAZY_NAMES]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v2.summary import experimental as experimental
    from headrace.train.summaries.plugin_summaries import audio as audio
    from headrace.train.summaries.plugin_summaries import histogram as histogram
    from headrace.train.summaries.plugin_summaries import image as image
    from headrace.train.summaries.plugin_summaries import scalar as scalar
    from headrace.train.summaries.plugin_summaries import text as text
    from headrace.train.summaries.summary_writers import SummaryWriter as SummaryWriter
    from headrace.train.summaries.summary_writers import create_file_writer_v2 as create_file_writer
    from headrace.train.summaries.summary_writers import create_noop_writer as create_noop_writer
    from headrace.train.summaries.summary_writers import flush as flush
    from headrace.train.summaries.summary_writers import graph_v2 as graph
    from headrace.train.summaries.summary_writers import record_if as record_if
    from headrace.train.summaries.summary_writers import (
        should_record_summaries_v2 as should_record_summaries,
    )
    from headrace.train.summaries.summary_writers import trace_export as trace_export
    from headrace.train.summaries.summary_writers import trace_off as trace_off
    from headrace.train.summaries.summary_writers import trace_on as trace_on
    from headrace.train.summaries.summary_writers import write as write

    __all__ += ["create_file_writer", "graph", "should_record_summaries"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("summary", __name__, modules=LAZY_MODULES, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
