"""``tensorflow.python.client.timeline``: step statistics as JSON for ``chrome://tracing``.

metadata = tf.RunMetadata()
sess.run(fetches, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
         run_metadata=metadata)
text = Timeline(metadata.step_stats).generate_chrome_trace_format()
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["AllocationMaximum", "StepStatsAnalysis", "Timeline"]

Event = dict[str, Any]


class AllocationMaximum(NamedTuple):
    """The most memory that an allocator had in use, when, and for which tensors."""

    timestamp: int
    num_bytes: int
    tensors: set[str]


class StepStatsAnalysis(NamedTuple):
    """A trace, and the maximum of each allocator."""

    chrome_trace: _Trace
    allocator_maximums: dict[str, AllocationMaximum]


@dataclass
class _Trace:
    """Events in the order in which they are written."""

    metadata: list[Event] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def process(self, name: str, pid: int) -> None:
        self.metadata.append(
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
        )

    def add(
        self, kind: str, category: str, name: str, pid: int, tid: int, time: int, **more: object
    ) -> None:
        event = {"ph": kind, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": time}
        self.events.append({**event, **more})

    def format_to_string(self, pretty: bool = False) -> str:
        """JSON, in one line unless ``pretty``."""
        trace = {"traceEvents": self.metadata + self.events}
        if pretty:
            return json.dumps(trace, indent=4, separators=(",", ": "))
        return json.dumps(trace, separators=(",", ":"))


@dataclass
class _Output:
    """A tensor of a step: who made it where and when, and when it was last used."""

    number: int
    made: int
    pid: int
    tid: int
    tensors_pid: int
    allocator: str
    bytes: int
    ready: int
    last_use: int


class Timeline:
    """The events of a step. ``graph`` is accepted as in TensorFlow, which does not read it
    either.
    """

    def __init__(self, step_stats: Any, graph: object = None) -> None:
        self._step_stats = step_stats
        self._graph = graph
        self._trace = _Trace()
        self._outputs: dict[str, _Output] = {}
        self._flows = itertools.count()
        self._maximums: dict[str, AllocationMaximum] = {}

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True
    ) -> StepStatsAnalysis:
        """The trace: operations as bars, ``show_dataflow`` adds arrows between them,
        ``show_memory`` tensors and the memory in use.
        """
        devices = self._step_stats.dev_stats
        self._trace.process("Allocators", 0)
        for i, device in enumerate(devices):
            self._trace.process(device.device + " Compute", 2 * i + 1)
            self._trace.process(device.device + " Tensors", 2 * i + 2)
            _assign_lanes(device.node_stats)
        for i, device in enumerate(devices):
            for node in device.node_stats:
                self._note_outputs(node, 2 * i + 1, show_memory)
        for i, device in enumerate(devices):
            of_gpu = "/stream:" in device.device or "/memcpy" in device.device
            for node in device.node_stats:
                self._show_node(node, 2 * i + 1, of_gpu, show_dataflow)
        if show_memory:
            self._show_memory()
        return StepStatsAnalysis(self._trace, self._maximums)

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON; arguments as of :meth:`analyze_step_stats`."""
        found = self.analyze_step_stats(show_dataflow, show_memory)
        return found.chrome_trace.format_to_string(pretty=True)

    def _note_outputs(self, node: Any, pid: int, show_memory: bool) -> None:
        start, end = node.all_start_micros, node.all_start_micros + node.all_end_rel_micros
        for i, output in enumerate(node.output):
            name = f"{node.node_name}:{i}" if i else node.node_name
            memory = output.tensor_description.allocation_description
            number = len(self._outputs)
            self._outputs[name] = _Output(
                number, start, pid, node.thread_id, pid + 1, memory.allocator_name,
                memory.requested_bytes, end, end,
            )  # fmt: skip
            if show_memory:
                where = ("Tensor", name, pid + 1, node.thread_id)
                self._trace.add("N", *where, start, id=number)
                text = str(output.tensor_description).replace('"', "")
                snapshot = {"snapshot": {"tensor_description": text}}
                self._trace.add("O", *where, end - 1, id=number, args=snapshot)

    def _show_node(self, node: Any, pid: int, of_gpu: bool, show_dataflow: bool) -> None:
        name = node.node_name
        inputs: list[str] = []
        if of_gpu:
            name, op = [*name.split(":"), "unknown"][:2]
        elif name == "RecvTensor":
            op = "RecvTensor"
        else:
            op, inputs = _parse_label(node.timeline_label)
        args = {"name": name, "op": op, **{f"input{i}": n for i, n in enumerate(inputs)}}
        start, tid = node.all_start_micros, node.thread_id
        self._trace.add("X", "Op", op, pid, tid, start, dur=node.all_end_rel_micros, args=args)
        for given in inputs:
            self._use(given, start, start + node.all_end_rel_micros, pid, tid, show_dataflow)

    def _use(
        self, name: str, start: int, end: int, pid: int, tid: int, show_dataflow: bool
    ) -> None:
        if name not in self._outputs and "/_" in name:  # a copy to another device
            name = name[: name.rfind("/_")]
        found = self._outputs.get(name)
        if found is None:
            return
        found.last_use = max(found.last_use, end - 1)
        if show_dataflow and (found.pid, found.tid) != (pid, tid):
            flow = next(self._flows)
            self._trace.add("s", "DataFlow", name, found.pid, found.tid, found.ready, id=flow)
            self._trace.add("t", "DataFlow", name, pid, tid, start, id=flow)

    def _show_memory(self) -> None:
        changes: dict[str, list[tuple[int, int, str]]] = {}
        for name, output in self._outputs.items():
            last = output.last_use
            self._trace.add("D", "Tensor", name, output.tensors_pid, 0, last, id=output.number)
            found = changes.setdefault(output.allocator, [])
            found += [(output.made, output.bytes, name), (last, -output.bytes, name)]
        for allocator, found in changes.items():
            self._maximums[allocator] = self._count(allocator, sorted(found))

    def _count(self, allocator: str, changes: list[tuple[int, int, str]]) -> AllocationMaximum:
        most, total, alive = AllocationMaximum(0, 0, set()), 0, set()
        for time, size, name in changes:
            total += size
            if size < 0:
                alive.discard(name)
            else:
                alive.add(name)
            if total > most.num_bytes:
                most = AllocationMaximum(time, total, set(alive))
            self._trace.add("C", "Memory", allocator, 0, 0, time, args={allocator: total})
        return most


def _assign_lanes(nodes: Any) -> None:
    """Thread numbers such that operations of a lane do not overlap."""
    ends = [0]
    for node in nodes:
        start, end = node.all_start_micros, node.all_start_micros + node.all_end_rel_micros
        free = next((i for i, last in enumerate(ends) if start > last), len(ends))
        ends[free:] = [end, *ends[free + 1 :]]
        node.thread_id = free


def _parse_label(label: str) -> tuple[str, list[str]]:
    """The type and the inputs in ``name = Type(input, …)``."""
    match = re.match(r"(.*) = (.*)\((.*)\)", label)
    if match is None:
        return "unknown", []
    return match[2], match[3].split(", ") if match[3] else []
