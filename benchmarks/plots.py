"""The pictures: bars of each library's speed relative to TensorFlow, and the roofline. Needs
matplotlib.

draw(results, Path("docs/benchmarks"))        # {"models": [Path("docs/benchmarks/models.png"),
...], ...}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.groups import GROUPS, Group
from benchmarks.libraries import LABELS, OWN
from benchmarks.models.spec import Work
from benchmarks.results import Results
from benchmarks.roofline import Machine
from benchmarks.table import Line, make_lines

__all__ = ["draw"]

#: Headrace stands out; relatives have related colours.
COLOURS = {
    OWN: "#c8102e",
    "tf": "#f28e2b",
    "xla": "#ffbe7d",
    "jax": "#7b52ab",
    "torch": "#4e79a7",
    "compile": "#a0cbe8",
    "pytensor": "#59a14f",
    "ort": "#6b6b6b",
    "openvino": "#b5b5b5",
    "numpy": "#4d4d4d",
}
Panel = tuple[str, list[Line]]


def draw(results: Results, directory: Path) -> dict[str, list[Path]]:
    """The pictures by group, of the groups that were measured."""
    import matplotlib

    matplotlib.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, list[Path]] = {}
    for group in GROUPS.values():
        panels = _panels(group, results)
        if panels:
            path = directory / f"{group.name}.png"
            _bars(path, panels, group.libraries())
            pictures[group.name] = [path]
    machine = Machine.of(results, min)
    limited = [
        panel for name in ("models", "inference") for panel in _panels(GROUPS[name], results)
    ]
    if machine is not None and limited:
        path = directory / "roofline.png"
        _roofline(path, limited, machine)
        pictures.setdefault("machine", []).append(path)
    return pictures


def _panels(group: Group, results: Results) -> list[Panel]:
    """One for each kind of row, of the rows that can be compared with TensorFlow."""
    lines = [line for line in make_lines(group, results) if line.row.short and "tf" in line.ratios]
    if group.name != "inference":
        title = {"models": "training step"}.get(group.name, group.title)
        return [(title, lines)] if lines else []
    kinds = {"latency": "inference, batch 1", "throughput": "inference, batch 64"}
    panels = [
        (title, [ln for ln in lines if ln.row.case.endswith(k)]) for k, title in kinds.items()
    ]
    return [panel for panel in panels if panel[1]]


def _bars(path: Path, panels: list[Panel], libraries: list[str]) -> None:
    import matplotlib.pyplot as plt

    lines = [line for _, lines in panels for line in lines]
    shown = [name for name in libraries if name != "tf" and any(name in ln.best for ln in lines)]
    most = max(len(lines) for _, lines in panels)
    size = (max(7.0, 1.2 + most * (0.45 + 0.17 * len(shown))), 0.7 + 2.8 * len(panels))
    figure, all_axes = plt.subplots(len(panels), 1, figsize=size, squeeze=False)
    for axes, (title, lines) in zip(all_axes[:, 0], panels):
        _bar_panel(axes, lines, shown)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    _legend(figure, all_axes[:, 0])
    _save(figure, path)


def _bar_panel(axes: Any, lines: list[Line], shown: list[str]) -> None:
    """Speeds relative to TensorFlow, which is the line at 1: bars go up from it, or down."""
    width = 0.86 / len(shown)
    speeds = [1.0]
    for place, line in enumerate(lines):
        present = [name for name in shown if name in line.best]
        for i, name in enumerate(present):
            speed = line.best["tf"] / line.best[name]
            at = place + (i - (len(present) - 1) / 2) * width
            axes.bar(
                at,
                speed - 1,
                width * 0.92,
                bottom=1,
                color=COLOURS[name],
                label=LABELS[name],
                zorder=3,
            )
            _write_speed(axes, at, speed, name == OWN)
            speeds.append(speed)
    axes.set_yscale("log")
    axes.set_ylim(min(speeds) / 1.45, max(speeds) * 1.45)
    axes.axhline(1, color="#333333", linewidth=0.9, zorder=4)
    axes.set_xticks(range(len(lines)), [line.row.short for line in lines], fontsize=9)
    axes.set_xlim(-0.5, len(lines) - 0.5)
    axes.set_ylabel("speed, TF = 1", fontsize=9)
    _plain_numbers(axes.yaxis)
    _clean(axes)


def _write_speed(axes: Any, at: float, speed: float, own: bool) -> None:
    axes.annotate(
        f"{speed:.0f}" if speed >= 20 else f"{speed:.2g}",
        (at, speed),
        (0, 2 if speed >= 1 else -2),
        textcoords="offset points",
        ha="center",
        va="bottom" if speed >= 1 else "top",
        fontsize=6.5,
        color="#333333",
        fontweight="bold" if own else "normal",
    )


def _roofline(path: Path, panels: list[Panel], machine: Machine) -> None:
    import matplotlib.pyplot as plt

    count = len(panels)
    figure, all_axes = plt.subplots(
        1, count, figsize=(1.4 + 4.1 * count, 4.4), sharey=True, squeeze=False
    )
    for axes, (title, lines) in zip(all_axes[0], panels):
        _roofline_panel(axes, lines, machine)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    reached = [_rate(line, s) for _, lines in panels for line in lines for s in line.best.values()]
    all_axes[0, 0].set_ylim(min(reached) / 4, max([*reached, machine.flops / 1e9]) * 1.6)
    all_axes[0, 0].set_ylabel("GFlop/s reached", fontsize=9)
    _plain_numbers(all_axes[0, 0].yaxis)
    _legend(figure, all_axes[0])
    _save(figure, path)


def _rate(line: Line, seconds: float) -> float:
    return _work(line).flops / seconds / 1e9


def _work(line: Line) -> Work:
    return line.row.work() if line.row.work is not None else Work()


def _roofline_panel(axes: Any, lines: list[Line], machine: Machine) -> None:
    intensities = {line.row.short: _work(line).flops / _work(line).bytes for line in lines}
    low, high = min(intensities.values()) / 2.5, max(intensities.values()) * 2.5
    _draw_roof(axes, machine, low, high)
    for line in lines:
        for name, seconds in sorted(line.best.items(), key=lambda item: item[0] == OWN):
            own = name == OWN
            axes.scatter(
                intensities[line.row.short],
                _rate(line, seconds),
                s=60 if own else 26,
                marker="D" if own else "o",
                color=COLOURS[name],
                edgecolors="white",
                linewidths=0.6,
                label=LABELS[name],
                zorder=4 if own else 3,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("flops a byte that must move", fontsize=9)
    _plain_numbers(axes.xaxis)
    _clean(axes)
    _name_models(axes, lines, intensities)


def _draw_roof(axes: Any, machine: Machine, low: float, high: float) -> None:
    roofs = {"memory": (machine.bytes, "-"), "cache": (machine.cache_bytes, "--")}
    for name, (rate, style) in roofs.items():
        xs = [low, min(max(machine.flops / rate, low), high), high]
        ys = [min(rate * x, machine.flops) / 1e9 for x in xs]
        label = f"{name}, {rate / 1e9:.0f} GB/s"
        axes.plot(xs, ys, style, color="#888888", linewidth=1.2, label=label, zorder=1)
    axes.annotate(
        f"large products, {machine.flops / 1e9:.0f} GFlop/s",
        (high, machine.flops / 1e9),
        (-2, 4),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        color="#666666",
    )


def _name_models(axes: Any, lines: list[Line], intensities: dict[str, float]) -> None:
    """Under the lowest point; models whose points are beside each other share a place."""
    places: list[tuple[float, list[Line]]] = []
    for line in sorted(lines, key=lambda line: intensities[line.row.short]):
        x = intensities[line.row.short]
        if places and x < places[-1][0] * 1.4:
            places[-1][1].append(line)
        else:
            places.append((x, [line]))
    for x, together in places:
        lowest = min(_rate(line, s) for line in together for s in line.best.values())
        axes.annotate(
            "\n".join(line.row.short for line in together),
            (x, lowest),
            (0, -8),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
        )


def _plain_numbers(axis: Any) -> None:
    """0.5, 1, 2, 5, 10 … instead of powers; fewer of them over many decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    steps = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(figure: Any, all_axes: Any) -> None:
    """Each library once, ours first."""
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    labels = sorted(handles, key=_order)
    figure.legend(
        [handles[label] for label in labels],
        labels,
        loc="lower left",
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        bbox_to_anchor=(0.02, 0.98),
        columnspacing=1.2,
        handlelength=1.2,
        handletextpad=0.4,
    )


def _order(label: str) -> int:
    labels = list(LABELS.values())
    return labels.index(label) if label in labels else len(labels)


def _clean(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7, zorder=0)
    axes.tick_params(labelsize=8, length=2)


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, dpi=130, bbox_inches="tight", facecolor="white")
    plt.close(figure)
