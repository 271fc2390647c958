"""The text of a profile, as TensorFlow's profiler writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.profiler.model_profile import Node


__all__ = ["op_line", "report", "scope_line", "table"]

#: Options in the order of the report, with what stands for a missing one.
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("max_depth", 100), ("min_bytes", 0), ("min_peak_bytes", 0), ("min_residual_bytes", 0),
    ("min_output_bytes", 0), ("min_micros", 0), ("min_accelerator_micros", 0),
    ("min_cpu_micros", 0), ("min_params", 0), ("min_float_ops", 0), ("min_occurrence", 0),
    ("step", -1), ("order_by", "name"), ("account_type_regexes", []), ("start_name_regexes", []),
    ("trim_name_regexes", []), ("show_name_regexes", []), ("hide_name_regexes", []),
    ("account_displayed_op_only", False), ("select", []), ("output", "stdout"),
)  # fmt: skip
_DOCS = {
    "scope": "The nodes in the model graph are organized by their names, which is hierarchical "
    "like filesystem.",
    "op": "The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to "
    "the same type are aggregated together.",
    "bytes": "requested bytes: The memory requested by the operation, accumulatively.",
    "float_ops": "flops: Number of float operations. Note: Please read the implementation for the "
    "math behind it.",
    "micros": "total execution time: Sum of accelerator execution time and cpu execution time.\n"
    "cpu execution time: The time from the start to the end of the operation. It's the sum of "
    "actual cpu run time plus the time that it spends waiting if part of computation is launched "
    "asynchronously.\naccelerator execution time: Time spent executing on the accelerator. This "
    "is normally measured by the actual hardware library.",
    "occurrence": "occurrence: The number of times it occurs",
    "params": "param: Number of parameters (in the Variable).",
}
#: Columns in the order of the report.
_LEGENDS = {
    "bytes": "requested bytes",
    "micros": "total execution time | accelerator execution time | cpu execution time",
    "params": "# parameters",
    "float_ops": "# float_ops",
    "occurrence": "op occurrence (run|defined)",
}


def report(view: str, options: Mapping[str, Any], lines: Iterable[str]) -> str:
    """The whole text: options, what the columns mean, the lines."""
    settings = "".join(f"-{name:<27}{_value(options, name, d)}\n" for name, d in _OPTIONS)
    return (
        f"Parsing Inputs...\n\n=========================Options=============================\n"
        f"{settings}\n==================Model Analysis Report======================\n"
        f"{table(view, options, lines)}"
        "\n======================End of Report==========================\n"
    )


def table(view: str, options: Mapping[str, Any], lines: Iterable[str]) -> str:
    """What the columns mean, and the lines: all that is written to a file."""
    selected = sorted(options["select"])
    docs = "\n".join([f"{view}: {_DOCS[view]}", *(_DOCS[s] for s in selected if s in _DOCS)])
    legend = " | ".join(["node name", *(_LEGENDS[s] for s in _LEGENDS if s in selected)])
    body = "\n".join(lines)
    return f"\nDoc:\n{docs}\n\nProfile:\n{legend}\n{body}\n"


def _value(options: Mapping[str, Any], name: str, default: object) -> str:
    value = options.get(name, default)
    if name == "output":
        kind, _, rest = value.partition(":")
        return f"{kind}:{rest}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set)):
        return ",".join(sorted(value) if name == "select" else value)
    return str(value)


def _number(n: int) -> str:
    for size, mark in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.2f}{mark}"
    return str(n)


def _time(micros: int) -> str:
    for size, mark in ((10**6, "sec"), (10**3, "ms")):
        if micros >= size:
            return f"{micros / size:.2f}{mark}"
    return f"{micros}us"


def _memory(count: int) -> str:
    for size, mark in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if count >= size:
            return f"{count / size:.2f}{mark}"
    return f"{count}B"


def scope_line(node: Node, depth: int, select: Iterable[str]) -> str:
    """``  net/w (10x4, 40/40 params)``."""
    selected, parts = set(select), []

    def pair(key: str, text: Callable[..., Any]) -> str:
        own = text(node.own[key]) if node.accounted else "--"
        return f"{own}/{text(node.total[key])}"

    if "bytes" in selected:
        parts.append(pair("requested_bytes", _memory))
    if "micros" in selected:
        none = "0us/0us" if node.accounted else "--/0us"
        parts += [pair("exec_micros", _time), none, pair("cpu_exec_micros", _time)]
    if "params" in selected:
        if node.accounted and node.shape:
            parts.append("x".join("-1" if d is None else str(d) for d in node.shape))
        parts.append(f"{pair('parameters', _number)} params")
    if "float_ops" in selected:
        parts.append(f"{pair('float_ops', _number)} flops")
    if "occurrence" in selected:
        parts.append(f"{node.total['run_count']}|{node.total['definition_count']}")
    return f"{'  ' * depth}{node.name} ({', '.join(parts)})"


def _shared(text: str, node: Node, root: Node, key: str) -> str:
    all_of_it, after = root.total[key], node.total[key]
    total = 100 * after / all_of_it if after and all_of_it else 0.0
    own = 100 * node.own[key] / all_of_it if after and all_of_it else 0.0
    return f"{text} ({total:.2f}%, {own:.2f}%)".rjust(30)


def op_line(node: Node, root: Node, select: Iterable[str]) -> str:
    """``MatMul    768 float_ops (100.00%, 84.67%)``: of this and what follows, of this alone."""
    selected, own, parts = set(select), node.own, []
    if "bytes" in selected:
        parts.append(_shared(_memory(own["requested_bytes"]), node, root, "requested_bytes"))
    if "micros" in selected:
        parts.append(_shared(_time(own["exec_micros"]), node, root, "exec_micros"))
        parts.append("0us (0.00%, 0.00%)".rjust(30))
        parts.append(_shared(_time(own["cpu_exec_micros"]), node, root, "cpu_exec_micros"))
    if "params" in selected:
        parts.append(_shared(f"{_number(own['parameters'])} params", node, root, "parameters"))
    if "float_ops" in selected:
        parts.append(_shared(f"{_number(own['float_ops'])} float_ops", node, root, "float_ops"))
    if "occurrence" in selected:
        parts.append(f"{own['run_count']}|{own['definition_count']}".rjust(10))
    return f"{node.name:<25}{', '.join(parts)}"
