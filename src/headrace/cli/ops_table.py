"""``headrace ops``: the table of ops, with gradient, traits and executors."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from typing import Any

import headrace.api.v1  # noqa: F401 (defines the ops)
from headrace.core.opdef import ALL_OPS, LOADERS, OpDef

__all__ = ["add_arguments", "rows"]

_FLAGS = (
    "elementwise",
    "view",
    "stateful",
    "random",
    "data_dependent_shape",
    "host_only",
    "blocking",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--family", help="only the ops of one module of headrace.ops, for example reductions"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, one object per op")
    parser.set_defaults(function=_print)


def rows(family: str | None = None) -> list[dict[str, Any]]:
    """One dictionary per op, by name."""
    while LOADERS:  # ops that a program gets when it first uses them
        LOADERS.pop()()
    table = [_row(opdef) for _, opdef in sorted(ALL_OPS.items())]
    return [r for r in table if family is None or r["family"] == family]


def _row(opdef: OpDef) -> dict[str, Any]:
    traits = [f for f in _FLAGS if getattr(opdef.traits, f)]
    traits += [
        f"{what} {list(at)}" for what in ("reads", "writes") if (at := getattr(opdef.traits, what))
    ]
    return {
        "name": opdef.name,
        "family": _family(opdef),
        "gradient": "yes" if callable(opdef.grad) else repr(opdef.grad).lower().replace("_", " "),
        "traits": traits,
        "executors": ["numpy", "reference"],
    }


@functools.cache
def _places() -> dict[int, str]:
    """Which module of headrace.ops holds each definition."""
    modules = {
        n.rpartition(".")[2]: m for n, m in sys.modules.items() if n.startswith("headrace.ops.")
    }
    return {
        id(v): name
        for name, module in modules.items()
        for v in vars(module).values()
        if isinstance(v, OpDef)
    }


def _family(opdef: OpDef) -> str:
    """The module that defines the op; for one made in a loop, the module of its kernel."""
    module = getattr(opdef.kernel, "__module__", "").rpartition(".")[2]
    return _places().get(id(opdef), module)


def _print(options: argparse.Namespace) -> int:
    table = rows(options.family)
    if not table:
        known = sorted({r["family"] for r in rows()})
        print(
            f"headrace: no family named {options.family!r}; there are {', '.join(known)}",
            file=sys.stderr,
        )
        return 1
    if options.json:
        print(json.dumps(table, indent=1))
    elif sys.stdout.isatty():
        _print_rich(table)
    else:
        for r in table:
            print(f"{r['name']:<40} {r['family']:<20} {r['gradient']:<20} {', '.join(r['traits'])}")
    return 0


def _print_rich(table: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("op", "family", "gradient", "traits", "executors", title=f"{len(table)} ops")
    for r in table:
        shown.add_row(
            r["name"], r["family"], r["gradient"], ", ".join(r["traits"]), ", ".join(r["executors"])
        )
    Console().print(shown)
