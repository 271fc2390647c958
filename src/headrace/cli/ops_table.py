"""``headrace ops``: the table of ops, with gradient, traits and executors."""

from __future__ import annotations

import argparse
import difflib
import functools
import inspect
import json
import sys
from typing import Any

import headrace.api.v1
from headrace.core.opdef import ALL_OPS, LOADERS, OpDef

__all__ = ["add_arguments", "rows", "where"]

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
        "--family", help="only the ops of one package of headrace.ops, for example nn"
    )
    parser.add_argument(
        "--where",
        metavar="NAME",
        help="file and line of an op (MatMul) or of a function (tf.one_hot)",
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
    """The module that holds each definition, by the definition's id."""
    return {
        id(value): name
        for name, module in list(sys.modules.items())
        if name.startswith(("headrace.ops.", "headrace.data.ops."))
        for value in list(vars(module).values())
        if isinstance(value, OpDef)
    }


def _module(opdef: OpDef) -> str:
    """The module that defines the op; for one made in a loop, the module of its kernel."""
    return _places().get(id(opdef), getattr(opdef.kernel, "__module__", ""))


def _family(opdef: OpDef) -> str:
    """The package of the defining module: ``nn`` for headrace.ops.nn.conv_ops."""
    parts = _module(opdef).split(".")
    return parts[2] if parts[:2] == ["headrace", "ops"] and len(parts) > 3 else parts[1]


def where(opdef: OpDef) -> tuple[str, int]:
    """File and line of the definition; for an op made in a loop over a table, of its kernel."""
    module = sys.modules[_module(opdef)]
    source, first = inspect.getsourcelines(module)
    for number, line in enumerate(source, first or 1):
        if f'"{opdef.name}"' in line:
            return str(module.__file__), number
    code = getattr(inspect.unwrap(opdef.kernel), "__code__", None)
    if code is not None:
        return code.co_filename, code.co_firstlineno
    return str(module.__file__), 1


def _print_where(name: str) -> int:
    rows()
    opdef = ALL_OPS.get(name)
    if opdef is None:
        function = _function_named(name)
        if function is not None:
            function = inspect.unwrap(function)
            print(f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}")
            return 0
        near = difflib.get_close_matches(name, ALL_OPS, n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        print(f"headrace: no op named {name!r}{hint}", file=sys.stderr)
        return 1
    print("{}:{}".format(*where(opdef)))
    return 0


def _function_named(name: str) -> Any:
    """The function or class behind ``tf.nn.conv2d`` or ``one_hot``; None if there is none."""
    found = headrace.api.v1
    for part in name.removeprefix("tf.").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found if inspect.isfunction(found) or inspect.isclass(found) else None


def _print(options: argparse.Namespace) -> int:
    if options.where:
        return _print_where(options.where)
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
