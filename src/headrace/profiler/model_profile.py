"""``tf.profiler.profile``: parameters, floating-point operations and times of a graph, as a report.

The view ``scope`` is the tree of names, ``op`` a list by type. A node is *accounted* if one of its
types (op type, device, ``_trainable_variables``) matches ``account_type_regexes``, and *shown* if
it also passes the limits and name patterns. What is not shown gives its place to the nodes below.

    >>> options = ProfileOptionBuilder.trainable_variables_parameter()
    >>> profile(graph, options=options).total_parameters
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.profiler.flop_counts import float_ops
from headrace.profiler.profile_messages import profile_class
from headrace.profiler.profile_options import ProfileOptionBuilder
from headrace.profiler.profile_text import op_line, report, scope_line, table

if TYPE_CHECKING:
    from headrace.core.graph import Graph
    from headrace.core.tensor import Operation

__all__ = ["Profiler", "profile"]

#: The type that trainable variables have besides their op's.
TRAINABLE = "_trainable_variables"
ROOT = "_TFProfRoot"
STATS = ("parameters", "float_ops", "exec_micros", "cpu_exec_micros", "requested_bytes",
         "run_count", "definition_count")  # fmt: skip
#: What an order is by: the total of a statistic, the largest first.
_ORDERS = {
    "params": "parameters", "float_ops": "float_ops", "micros": "exec_micros",
    "bytes": "requested_bytes", "occurrence": "definition_count",
    "cpu_micros": "cpu_exec_micros",
}  # fmt: skip


#: Limits on figures that are zero here: everything runs on the CPU, and only requests are counted.
_NOT_MEASURED = (
    "min_accelerator_micros", "min_peak_bytes", "min_residual_bytes", "min_output_bytes",
)  # fmt: skip


class Node:
    """A name of the report with its own figures and, after accounting, their totals."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.types: set[str] = set()
        self.shape: tuple[int, ...] | None = None
        self.own: dict[str, int] = dict.fromkeys(STATS, 0)
        self.total: dict[str, int] = dict.fromkeys(STATS, 0)
        self.accounted = False
        self.children: list[Node] = []
        self.parts: list[Node] = []

    def add(self, other: Mapping[str, int]) -> None:
        for key, value in other.items():
            self.total[key] += value

    def reset(self) -> None:
        self.total = dict(self.own) if self.accounted else dict.fromkeys(STATS, 0)


def _graph_nodes(graph: Graph, op_log: Any, run_meta: object) -> list[Node]:
    trainable = {v.op.name for v in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    logged = {e.name: e for e in op_log.log_entries} if op_log is not None else {}
    times = _times(run_meta)
    found = []
    for op in graph.get_operations():
        node = Node(op.name)
        node.types = {op.type, *([op.device] if op.device else ())}
        if op.name in trainable:
            node.types.add(TRAINABLE)
        node.shape = _variable_shape(op)
        node.own["definition_count"] = 1
        node.own["parameters"] = _parameters(node.shape)
        node.own["float_ops"] = float_ops(op)
        entry = logged.get(op.name)
        if entry is not None:
            node.types.update(entry.types)
            node.own["float_ops"] = entry.float_ops or node.own["float_ops"]
        for key, value in times.get(op.name, {}).items():
            node.own[key] += value
        found.append(node)
    return found


def _times(run_meta: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for device in run_meta.step_stats.dev_stats if run_meta is not None else ():
        for stats in device.node_stats:
            entry = found[stats.node_name.partition(":")[0]]
            entry["exec_micros"] += stats.all_end_rel_micros
            entry["cpu_exec_micros"] += stats.all_end_rel_micros
            entry["run_count"] += 1
    return found


def _variable_shape(op: Operation) -> tuple[int, ...] | None:
    """The shape that the operation has as an attribute: variables and placeholders."""
    if "shape" not in op._attrs or not isinstance(op._attrs["shape"], (tuple, list)):
        return None
    return tuple(op._attrs["shape"])


def _parameters(shape: tuple[int, ...] | None) -> int:
    if shape is None or any(d is None or d < 0 for d in shape):
        return 0
    count = 1
    for d in shape:
        count *= d
    return count


class _View:
    """What the options ask for."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def matches(self, key: str, texts: Iterable[str]) -> bool:
        patterns = self.options.get(key, [])
        return any(re.fullmatch(p, text) for p in patterns for text in texts)

    def accounts(self, node: Node) -> bool:
        if list(self.options.get("account_type_regexes", [])) == [".*"]:
            return True
        return self.matches("account_type_regexes", node.types)

    def shows(self, node: Node, depth: int) -> bool:
        get = self.options.get
        if (
            node.total["requested_bytes"] < get("min_bytes", 0)
            or node.total["exec_micros"] < get("min_micros", 0)
            or node.total["cpu_exec_micros"] < get("min_cpu_micros", 0)
            or node.own["parameters"] < get("min_params", 0)
            or node.own["float_ops"] < get("min_float_ops", 0)
            or node.total["definition_count"] < get("min_occurrence", 0)
            or any(get(limit, 0) > 0 for limit in _NOT_MEASURED)
            or depth > get("max_depth", 100)
        ):
            return False
        shown = self.matches("show_name_regexes", [node.name])
        return shown and not self.matches("hide_name_regexes", [node.name])

    def starts(self, root: Node) -> list[Node]:
        """The uppermost nodes that ``start_name_regexes`` match."""
        if list(self.options.get("start_name_regexes", [".*"])) in ([".*"], []):
            return root.children
        found, pending = [], list(root.children)
        while pending:
            node = pending.pop()
            if self.matches("start_name_regexes", [node.name]):
                found.append(node)
            else:
                pending.extend(node.children)
        return found

    def trims(self, node: Node) -> bool:
        return self.matches("trim_name_regexes", [node.name])

    def ordered(self, nodes: Sequence[Node]) -> list[Node]:
        by = _ORDERS.get(self.options.get("order_by", "name"))
        by_name = sorted(nodes, key=lambda n: n.name)
        return by_name if by is None else sorted(by_name, key=lambda n: -n.total[by])

    @property
    def displayed_only(self) -> bool:
        return bool(self.options.get("account_displayed_op_only", False))


def _scope_tree(nodes: Iterable[Node]) -> Node:
    by_name = {node.name: node for node in nodes}
    root = Node(ROOT)
    for name in list(by_name):
        while True:
            parent, _, _ = name.rpartition("/")
            known = not parent or parent in by_name
            above = root if not parent else by_name.setdefault(parent, Node(parent))
            if by_name[name] not in above.children:
                above.children.append(by_name[name])
            if known:
                break
            name = parent
    return root


def _walk(root: Node) -> list[Node]:
    """All nodes, parents before children."""
    found = [root]
    for node in found:
        found.extend(node.children)
    return found


def _account(root: Node, view: _View) -> None:
    nodes = _walk(root)
    for node in nodes:
        node.accounted = node is not root and view.accounts(node)
        node.reset()
    for node in reversed(nodes):
        for child in node.children:
            node.add(child.total)


def _show_scope(root: Node, view: _View) -> list[str]:
    """Keep the shown nodes only, with totals, and give their lines."""
    root.children = view.starts(root)
    for node in reversed(_walk(root)):
        kept: list[Node] = []
        for child in node.children:
            if view.trims(child):
                continue
            here = view.shows(child, child.name.count("/") + 1)
            if here and (child.accounted or child.children):
                kept.append(child)
            else:
                kept.extend(child.children)
        node.children = kept
    nodes = _walk(root)
    if view.displayed_only:
        for node in nodes:
            node.reset()
        for node in reversed(nodes):
            for child in node.children:
                node.add(child.total)
    for node in nodes:
        node.children = view.ordered(node.children)
    lines: list[str] = []
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        lines.append(scope_line(node, depth, view.options["select"]))
        pending.extend((child, depth + 1) for child in reversed(node.children))
    return lines


def _fill(message: Any, node: Node) -> None:
    message.name = node.name
    fields = message.DESCRIPTOR.fields_by_name
    for key in STATS:
        own = node.own[key] if node.accounted else 0
        if own and key in fields:
            setattr(message, key, own)
        if node.total[key] and f"total_{key}" in fields:
            setattr(message, f"total_{key}", node.total[key])


def _scope_message(root: Node) -> Any:
    message = profile_class("GraphNodeProto")()
    pending = [(root, message)]
    while pending:
        node, place = pending.pop()
        _fill(place, node)
        pending.extend((child, place.children.add()) for child in node.children)
    return message


def _by_type(graph: Graph, nodes: Sequence[Node], view: _View) -> list[Node]:
    kinds: dict[str, Node] = {}
    for op, node in zip(graph.get_operations(), nodes, strict=True):
        node.accounted = view.accounts(node)
        if not node.accounted:
            continue
        node.reset()
        kind = kinds.setdefault(op.type, Node(op.type))
        kind.accounted = True
        kind.parts.append(node)
        for key, value in node.own.items():
            kind.own[key] += value
    for kind in kinds.values():
        kind.reset()
    return view.ordered(list(kinds.values()))


def _chain(nodes: Sequence[Node]) -> None:
    """Each total becomes that of the node and all that follow."""
    for node in nodes:
        node.reset()
    for before, after in zip(reversed(nodes[:-1]), reversed(nodes[1:]), strict=True):
        before.add(after.total)


def _show_ops(root: Node, kinds: list[Node], view: _View) -> list[str]:
    _chain(kinds)
    patterns = list(view.options.get("start_name_regexes", [".*"]))
    if patterns not in ([".*"], []):
        names = [view.matches("start_name_regexes", [kind.name]) for kind in kinds]
        kinds = kinds[names.index(True) :] if True in names else []
    for depth, kind in enumerate(kinds):
        if view.trims(kind):
            kinds = kinds[:depth]
            break
    shown = [
        kind
        for depth, kind in enumerate(kinds)
        if depth <= view.options.get("max_depth", 100) and view.shows(kind, depth)
    ]
    total = kinds[0].total if kinds else root.total
    if view.displayed_only:
        _chain(shown)
        total = shown[0].total if shown else dict.fromkeys(STATS, 0)
    root.total, root.children = dict(total), shown
    return [op_line(kind, root, view.options["select"]) for kind in shown]


def _op_message(root: Node) -> Any:
    message = profile_class("MultiGraphNodeProto")()
    _fill(message, root)
    place = message
    for kind in root.children:
        place = place.children.add()
        _fill(place, kind)
        for part in sorted(kind.parts, key=lambda n: n.name):
            _fill(place.graph_nodes.add(), part)
    return message


def _written(text: str, output: str) -> None:
    kind, _, rest = output.partition(":")
    if kind == "stdout":
        sys.stdout.write(text)
    elif kind == "file":
        Path(rest.removeprefix("outfile=")).write_text(text, encoding="utf-8")
    elif kind != "none":
        raise errors.InvalidArgumentError(
            None,
            None,
            f"profile output {output!r} is not in Headrace: use stdout, file or none. For a "
            "timeline see tf.python.client.timeline.",
        )


def profile(
    graph: Graph | None = None,
    run_meta: object = None,
    op_log: object = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | None = None,
) -> Any:
    """A profile of a graph, printed as ``options["output"]`` says, and returned as a message.

    ``run_meta``: a RunMetadata of a traced run, for times. ``op_log``: an OpLogProto with further
    types and counts. ``cmd``: ``"scope"`` or ``"op"``.
    """
    graph = get_default_graph() if graph is None else graph
    options = ProfileOptionBuilder().build() if options is None else dict(options)
    if cmd not in _COMMANDS:
        known = cmd in ("graph", "code")
        reason = f"the view {cmd!r} is not in Headrace: use 'scope' or 'op'"
        raise errors.InvalidArgumentError(None, None, reason if known else f"unknown cmd: {cmd}\n")
    view, nodes = _View(options), _graph_nodes(graph, op_log, run_meta)
    lines, message = _COMMANDS[cmd](graph, nodes, view)
    output = options.get("output", "stdout")
    text = report if output.startswith("stdout") else table
    _written(text(cmd, options, lines), output)
    return message


def _scope_command(graph: Graph, nodes: list[Node], view: _View) -> tuple[list[str], Any]:
    root = _scope_tree(nodes)
    _account(root, view)
    lines = _show_scope(root, view)
    return lines, _scope_message(root)


def _op_command(graph: Graph, nodes: list[Node], view: _View) -> tuple[list[str], Any]:
    root = Node(ROOT)
    lines = _show_ops(root, _by_type(graph, nodes, view), view)
    return lines, _op_message(root)


_COMMANDS: dict[str, Callable[..., tuple[list[str], Any]]] = {
    "scope": _scope_command,
    "op": _op_command,
}


class Profiler:
    """Profiles of several traced steps of one graph.

    ``add_step`` keeps a step's RunMetadata; the ``profile_…`` methods report on the step of
    ``options["step"]`` (-1: all steps together).
    """

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._op_log = op_log
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: object) -> None:
        """Keep the trace of a step."""
        self._steps[step] = run_meta

    def profile_name_scope(self, options: Mapping[str, Any]) -> Any:
        """The view ``scope``."""
        return self._profile("scope", options)

    def profile_operations(self, options: Mapping[str, Any]) -> Any:
        """The view ``op``."""
        return self._profile("op", options)

    def _profile(self, cmd: str, options: Mapping[str, Any]) -> Any:
        wanted = options.get("step", -1)
        chosen = [m for step, m in self._steps.items() if wanted in (-1, step)]
        joined: Any = None
        for meta in chosen:
            if joined is None:
                joined = type(meta)()
            joined.step_stats.MergeFrom(meta.step_stats)
        return profile(self._graph, joined, self._op_log, cmd, options)
