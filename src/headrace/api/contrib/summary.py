"""``tf.contrib.summary``: summaries that ops write while a graph runs."""

from headrace.api.missing import module_getattr
from headrace.train.summaries.contrib_summaries import (
    always_record_summaries,
    audio,
    create_db_writer,
    create_summary_file_writer,
    eval_dir,
    generic,
    histogram,
    image,
    never_record_summaries,
    record_summaries_every_n_global_steps,
    scalar,
)
from headrace.train.summaries.summary_writers import (
    SummaryWriter,
    create_file_writer,
    flush,
    graph,
    import_event,
    initialize,
    should_record_summaries,
    summary_writer_initializer_op,
)
from headrace.train.summaries.summary_writers import all_v2_summary_ops as all_summary_ops

__all__ = [
    "SummaryWriter",
    "all_summary_ops",
    "always_record_summaries",
    "audio",
    "create_db_writer",
    "create_file_writer",
    "create_summary_file_writer",
    "eval_dir",
    "flush",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
    "summary_writer_initializer_op",
]

__getattr__ = module_getattr("contrib.summary", __name__)
