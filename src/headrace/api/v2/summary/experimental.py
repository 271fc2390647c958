"""``tf.summary.experimental``: the default step, and what other summaries are made of."""

from headrace.train.summaries.summary_writers import (
    get_step,
    set_step,
    summary_scope,
    write_raw_pb,
)

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]
