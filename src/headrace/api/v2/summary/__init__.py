"""TF 2's ``tf.summary``: writers, and summaries that are written at once."""

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

__getattr__ = module_getattr("summary", __name__, modules=LAZY_MODULES, names=LAZY_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
