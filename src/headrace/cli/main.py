"""``headrace``: run a TensorFlow-1 program unmodified, list the ops, say the version.

headrace run [--report] [--executor NAME] script.py [args ...]
headrace run -m package.module [args ...]
headrace check PATH...
headrace coverage --usage FILE
headrace ops [--family NAME] [--json] [--where NAME]
headrace inspect FILE | explain FILE | predict FILE --input x=data.npy | freeze FILE -o frozen.pb
headrace version
headrace trim
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from headrace.cli import model_commands, ops_table, run, symbol_check

__all__ = ["main"]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="headrace",
        description="Runs TensorFlow-1 programs without TensorFlow.",
        allow_abbrev=False,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run.add_arguments(
        commands.add_parser(
            "run",
            help="run a program that says `import tensorflow`, unmodified",
            allow_abbrev=False,
            usage="headrace run [-h] [--report] [--executor NAME] (script.py | -m module) [args "
            "...]",
        )
    )
    ops_table.add_arguments(
        commands.add_parser("ops", help="print the table of ops", allow_abbrev=False)
    )
    model_commands.add_commands(commands)
    symbol_check.add_check_arguments(
        commands.add_parser(
            "check", help="list the names that programs use and Headrace lacks", allow_abbrev=False
        )
    )
    symbol_check.add_coverage_arguments(
        commands.add_parser(
            "coverage", help="share of programs whose every name exists", allow_abbrev=False
        )
    )
    commands.add_parser(
        "version",
        help="print versions, kernel library, instruction set, threads, and what is missing",
    ).set_defaults(function=_version)
    commands.add_parser(
        "trim", help="link identical copies of the kernel library in the environment (110 MB less)"
    ).set_defaults(function=_trim)
    return top


def _trim(options: argparse.Namespace) -> int:
    from headrace.cli.trim import run_trim

    return run_trim(options)


def _version(_: argparse.Namespace) -> int:
    from headrace.cli.machine import machine_rows

    for name, value in machine_rows():
        print(f"{name} {value}" if name == "headrace" else f"{name:<8} {value}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        arguments[0] = "version"
    options = parser().parse_args(arguments)
    try:
        return int(options.function(options))
    except BrokenPipeError:  # the reader of our output has seen enough: `headrace ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
