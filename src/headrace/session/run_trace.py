"""``RunOptions(trace_level=FULL_TRACE)``: what each operation of a run cost.

A traced run computes the operations one by one, without fusion (the ``reference`` executor), and
takes the time of each. So the numbers say which operations are heavy, not how long an ordinary run
takes, in which many of them are one step.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from headrace.executors import options_for
from headrace.executors.reference import make_reference
from headrace.lower.executable import Executable
from headrace.lower.plan import make_plan
from headrace.program.nodes import Node
from headrace.program.snapshot import snapshot

__all__ = ["Trace", "wants_trace"]

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def wants_trace(options: Any, run_metadata: Any) -> bool:
    """Whether a run is asked for step statistics and has a place to put them."""
    return run_metadata is not None and getattr(options, "trace_level", 0) > 0


class Trace:
    """Step statistics of one run, written into ``run_metadata``."""

    def __init__(self, graph: Any, run_metadata: Any) -> None:
        self._graph = graph
        self._metadata = run_metadata
        self._offset = time.time() - time.perf_counter()
        run_metadata.ClearField("step_stats")
        self._nodes = run_metadata.step_stats.dev_stats.add(device=_DEVICE).node_stats

    def executable(self, elements: list[Any], feeds: list[Any]) -> Executable:
        """A plan that runs operations one by one and reports each."""
        program = snapshot(elements, feeds, len(self._graph._ops))
        options = options_for("reference")
        return make_reference(make_plan(program, fusion=False), options, self.observe)

    def observe(self, node: Node, start: float, end: float, outputs: list[Any]) -> None:
        """Add an operation that ran from ``start`` to ``end`` (seconds of perf_counter)."""
        op = node.op
        nanos = int((end - start) * 1e9)
        inputs = ", ".join(t.name.removesuffix(":0") for t in op._inputs)
        stats = self._nodes.add(
            node_name=op.name,
            all_start_micros=int((start + self._offset) * 1e6),
            op_end_rel_micros=nanos // 1000,
            all_end_rel_micros=max(1, nanos // 1000),
            timeline_label=f"{op.name} = {op.type}({inputs})",
        )
        for slot, value in enumerate(outputs):
            array = np.asarray(value)
            if array.dtype == object or slot >= len(op._outputs):
                continue
            output = stats.output.add(slot=slot)
            described = output.tensor_description
            described.dtype = op._outputs[slot].dtype.base_dtype.as_datatype_enum
            for size in array.shape:
                described.shape.dim.add(size=size)
            described.allocation_description.requested_bytes = array.nbytes
            described.allocation_description.allocator_name = "cpu"
