"""``run_metadata``: what a run did, for ``RunOptions(trace_level=FULL_TRACE)``.

The run is told when each line of the plan's code begins (step_times.py), so that the times are
those of the steps that really run. A fused step has one entry, under the name of its last
operation; its label names them all. Constants and what was kept from earlier runs have none.

    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    sess.run(train, options=options, run_metadata=metadata)
    metadata.step_stats.dev_stats[0].node_stats
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor
from headrace.lower.executable import Executable
from headrace.lower.listing import nodes_of
from headrace.lower.session_state import State
from headrace.session.devices import CPU
from headrace.session.step_times import Span, timed_spans

if TYPE_CHECKING:
    from tensorboard.compat.proto.config_pb2 import RunMetadata, RunOptions

__all__ = ["add_partition_graph", "run_traced", "wants_graphs", "wants_trace"]


def wants_trace(options: RunOptions) -> bool:
    """Whether the options of a run ask for times (SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE)."""
    return bool(getattr(options, "trace_level", 0))


def wants_graphs(options: RunOptions) -> bool:
    """Whether the options of a run ask for the graph that was run."""
    return bool(getattr(options, "output_partition_graphs", False))


def run_traced(
    call: Callable[[], Any], executable: Executable, state: State, run_metadata: RunMetadata
) -> Any:
    """``call()``, which runs ``executable``, with the times of its steps in ``run_metadata``."""
    offset = time.time() - time.perf_counter()
    result, spans = timed_spans(call, executable, state)
    device = run_metadata.step_stats.dev_stats.add()
    device.device = CPU
    for span in spans:
        _add_node(device, span, offset)
    return result


def _add_node(device: Any, span: Span, offset: float) -> None:
    nodes = nodes_of(span.step)
    kinds = " + ".join(dict.fromkeys(n.opdef.name for n in nodes))
    last = nodes[-1].op
    inputs = ", ".join(t._op.name for t in last._inputs)
    elapsed = max(1, round((span.end - span.start) * 1e6))
    stats = device.node_stats.add()
    stats.node_name = last.name
    stats.timeline_label = f"{last.name} = {kinds}({inputs})"
    stats.all_start_micros = round((span.start + offset) * 1e6)
    stats.op_end_rel_micros = stats.all_end_rel_micros = elapsed


def add_partition_graph(
    run_metadata: RunMetadata, elements: Sequence[Any], feeds: Sequence[Tensor]
) -> None:
    """The part of the graph that the run needs, as a GraphDef."""
    roots = [e._op if isinstance(e, Tensor) else getattr(e, "op", e) for e in elements]
    needed = sorted(needed_ops(roots, set(feeds)), key=lambda op: op._id)
    graph = run_metadata.partition_graphs.add()
    for op in needed:
        assert isinstance(op, Operation)
        graph.node.add().CopyFrom(op.node_def)
