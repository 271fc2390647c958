"""The pictures: bars of each library's speed relative to TensorFlow, and the roofline. Needs matplotlib.

draw(results, Path("docs/benchmarks"))        # {"models": [Path("docs/benchmarks/models.png"), ...], ...}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.groups import GROUPS, Group
from benchmarks.libraries import LABELS, OWN
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

    shown = [
        name for name in libraries if any(name in ln.best for _, lines in panels for ln in lines)
    ]
    most = max(len(lines) for _, lines in panels)
    size = (max(7.0, 1.2 + most * (0.5 + 0.17 * len(shown))), 0.9 + 3.0 * len(panels))
    figure, all_axes = plt.subplots(len(panels), 1, figsize=size, squeeze=False)
    for axes, (title, lines) in zip(all_axes[:, 0], panels):
        _bar_panel(axes, lines, shown)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    _legend(figure, all_axes[0, 0])
    _save(figure, path)


def _bar_panel(axes: Any, lines: list[Line], shown: list[str]) -> None:
    """Speeds relative to TensorFlow; a logarithmic axis when they are far apart."""
    width = 0.86 / len(shown)
    speeds: list[float] = []
    for i, name in enumerate(shown):
        at = [
            (place, line.best["tf"] / line.best[name])
            for place, line in enumerate(lines)
            if name in line.best
        ]
        offset = (i - (len(shown) - 1) / 2) * width
        places = [place + offset for place, _ in at]
        heights = [speed for _, speed in at]
        speeds += heights
        axes.bar(places, heights, width * 0.92, color=COLOURS[name], label=LABELS[name], zorder=3)
        for place, height in zip(places, heights):
            text = f"{height:.0f}" if height >= 20 else f"{height:.2g}"
            axes.annotate(
                text,
                (place, height),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=6.5,
                color="#333333",
                fontweight="bold" if name == OWN else "normal",
            )
    if max(speeds) / min(speeds) > 12:
        axes.set_yscale("log")
        axes.set_ylim(min(speeds) * 0.7, max(speeds) * 1.6)
    else:
        axes.set_ylim(0, max(speeds) * 1.12)
    axes.axhline(1, color="#333333", linewidth=0.8, linestyle="--", zorder=4)
    axes.set_xticks(range(len(lines)), [line.row.short for line in lines], fontsize=9)
    axes.set_xlim(-0.5, len(lines) - 0.5)
    axes.set_ylabel("speed, TF = 1", fontsize=9)
    _clean(axes)


def _roofline(path: Path, panels: list[Panel], machine: Machine) -> None:
    import matplotlib.pyplot as plt

    count = len(panels)
    figure, all_axes = plt.subplots(
        1, count, figsize=(1.4 + 4.1 * count, 4.6), sharey=True, squeeze=False
    )
    for axes, (title, lines) in zip(all_axes[0], panels):
        _roofline_panel(axes, lines, machine)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    all_axes[0, 0].set_ylabel("GFlop/s reached", fontsize=9)
    handles: dict[str, Any] = {}
    for axes in all_axes[0]:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="upper center",
        ncols=len(handles),
        frameon=False,
        fontsize=8,
        bbox_to_anchor=(0.5, 1.05),
        columnspacing=1.2,
        handletextpad=0.3,
    )
    _save(figure, path)


def _roofline_panel(axes: Any, lines: list[Line], machine: Machine) -> None:
    works = [line.row.work() for line in lines if line.row.work is not None]
    intensities = [work.flops / work.bytes for work in works]
    low, high = min(intensities) / 2.5, max(intensities) * 2.5
    for rate, style, name in (
        (machine.bytes, "-", "memory"),
        (machine.cache_bytes, "--", "cache"),
    ):
        ridge = machine.flops / rate
        xs = [low, min(max(ridge, low), high), high]
        ys = [min(rate * x, machine.flops) / 1e9 for x in xs]
        axes.plot(xs, ys, color="#888888", linewidth=1.2, linestyle=style, zorder=1)
        if low < ridge:
            axes.annotate(
                f"{name}, {rate / 1e9:.0f} GB/s",
                (xs[0], ys[0]),
                (3, 4),
                textcoords="offset points",
                fontsize=7,
                color="#666666",
            )
    axes.annotate(
        f"large products, {machine.flops / 1e9:.0f} GFlop/s",
        (high, machine.flops / 1e9),
        (-2, 4),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        color="#666666",
    )
    for line, work, x in zip(lines, works, intensities):
        for name, seconds in sorted(line.best.items(), key=lambda item: item[0] == OWN):
            own = name == OWN
            axes.scatter(
                x,
                work.flops / seconds / 1e9,
                s=60 if own else 26,
                marker="D" if own else "o",
                color=COLOURS[name],
                edgecolors="white",
                linewidths=0.6,
                label=LABELS[name],
                zorder=4 if own else 3,
            )
    _name_models(axes, lines, works, intensities)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("flops a byte that must move", fontsize=9)
    _clean(axes)


def _name_models(axes: Any, lines: list[Line], works: list[Any], intensities: list[float]) -> None:
    """Under the lowest point of each; models with the same intensity share a name."""
    named: dict[float, tuple[list[str], float]] = {}
    for line, work, x in zip(lines, works, intensities):
        lowest = min(work.flops / seconds / 1e9 for seconds in line.best.values())
        key = round(x, 3)
        names, lower = named.get(key, ([], lowest))
        named[key] = ([*names, line.row.short], min(lower, lowest))
    for x, (names, lowest) in named.items():
        axes.annotate(
            ",\n".join(names),
            (x, lowest),
            (0, -8),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
        )
    axes.set_ymargin(0.18)


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower left",
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        bbox_to_anchor=(0.02, 1.0),
        columnspacing=1.2,
        handlelength=1.0,
        handletextpad=0.4,
    )


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
