"""``headrace check PATH…`` and ``headrace coverage``.

Which names programs use and Headrace lacks, before running anything.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from headrace.api import facades
from headrace.api.missing import explain, known_symbols, names_of
from headrace.dropin.source_scan import Use, choose_api, symbols

__all__ = ["add_check_arguments", "add_coverage_arguments", "have", "tested", "why_missing"]


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a program, or a folder of them")
    parser.set_defaults(function=_check)


def add_coverage_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--usage",
        required=True,
        metavar="FILE",
        help="one line per program: the names that it uses",
    )
    parser.add_argument("--most", type=int, default=20, help="how many missing names to list")
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        metavar="PREFIX",
        help="leave programs out that use names below these, for example tf.keras tf.estimator",
    )
    parser.add_argument(
        "--tested",
        action="store_true",
        help="count a name only if a test compares it with TensorFlow 1.15 (api/tested.txt)",
    )
    parser.set_defaults(function=_coverage)


@cache
def tested(symbol: str) -> bool:
    """Whether a test compares ``tf.<symbol>`` with TensorFlow 1.15, under this or another name.

    Flags that a program defines itself count where ``tf.app.flags.FLAGS`` does.
    """
    names, objects = _tested_objects()
    if not have(symbol):
        return False
    if symbol in names:
        return True
    found = _found(symbol)
    if found is None:
        return _is_own_flag(symbol) and "app.flags.FLAGS" in names
    return id(found) in objects


@cache
def _tested_objects() -> tuple[frozenset[str], dict[int, object]]:
    """Names of tested.txt, and the objects that they mean (but numbers and texts, which many
    names share).
    """
    from importlib import resources

    text = resources.files("headrace.api").joinpath("tested.txt").read_text(encoding="utf-8")
    names = frozenset(names_of(text))
    found = [_found(name) for name in names]
    objects = {id(f): f for f in found if f is not None and not isinstance(f, _SHARED)}
    return names, objects


_SHARED = (bool, int, float, str, bytes, tuple)


@cache
def _found(symbol: str) -> object | None:
    """What ``tf.<symbol>`` is, None if it is not there."""
    if not symbol:
        return facades.facade("", "tensorflow")
    namespace, _, name = symbol.rpartition(".")
    owner = _found(namespace)
    if owner is None:
        return None
    try:
        found: object = getattr(owner, name)
    except AttributeError:
        if not (isinstance(owner, ModuleType) and facades.exists(symbol)):
            return None
        found = facades.facade(symbol, "tensorflow")
    return found


@cache
def have(symbol: str) -> bool:
    """Whether ``tf.<symbol>`` exists; looks it up as a program would, so lazy names count."""
    return (
        _resolves(facades.facade("", "tensorflow"), symbol)
        or facades.exists(symbol)
        or _is_own_flag(symbol)
    )


def _is_own_flag(symbol: str) -> bool:
    """``tf.app.flags.batch_size``: a flag that the program defines, no name of TensorFlow's."""
    head, _, name = symbol.rpartition(".")
    return head in ("app.flags", "flags") and symbol not in known_symbols() and name.islower()


def _resolves(root: object, symbol: str) -> bool:
    found, parts = root, symbol.split(".")
    for i, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            below = ".".join(parts[: i + 1])
            if not (isinstance(found, ModuleType) and facades.exists(below)):
                return _may_be_instance(found)
            found = facades.facade(below, "tensorflow")
    return True


def _may_be_instance(found: object) -> bool:
    """``tf.flags.FLAGS.batch_size`` and attributes of other objects are decided by the program."""
    return not isinstance(found, (ModuleType, type)) and not inspect.isroutine(found)


@cache
def _have_in_v2(symbol: str) -> bool:
    """Whether the API that eager programs get has ``tf.<symbol>``."""
    return _resolves(importlib.import_module("headrace.api.v2"), symbol)


def _is_set_by_program(symbol: str) -> bool:
    """``tf.summary.scalar.call_count``: an attribute of a public function, which TensorFlow's
    functions do not have. Tests put mock objects in their place.
    """
    function, _, _ = symbol.rpartition(".")
    return (
        symbol not in known_symbols()
        and function in known_symbols()
        and inspect.isroutine(_found(function))
    )


def why_missing(symbol: str) -> str:
    """What to say about a name that is not there: what it is, and the nearest thing."""
    namespace, _, name = symbol.rpartition(".")
    while namespace and not have(namespace):
        namespace, _, name = namespace.rpartition(".")
    available = dir(facades.facade(namespace, "tensorflow")) if facades.exists(namespace) else []
    return explain(namespace, name, available)


def _python_files(given: list[str]) -> Iterator[Path]:
    for text in given:
        path = Path(text)
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                folders[:] = sorted(f for f in folders if not f.startswith("."))
                yield from (Path(folder, f) for f in sorted(files) if f.endswith(".py"))
        else:
            yield path


def _check(options: argparse.Namespace) -> int:
    missing = unread = files = 0
    for path in _python_files(options.paths):
        files += 1
        try:
            uses = symbols(path)
        except OSError as e:
            print(f"headrace: cannot read {path}: {e.strerror}", file=sys.stderr)
            return 2
        except SyntaxError as e:
            print(f"{path}:{e.lineno}: not Python 3: {e.msg}")
            unread += 1
            continue
        lacking = _lacking(path, uses)
        for use in lacking:
            print(f"{use.file}:{use.line}: {why_missing(use.symbol)}")
        missing += len(lacking)
    print(
        f"{files} files, {missing} uses of missing names"
        + (f", {unread} not Python 3" if unread else "")
    )
    return 1 if missing or unread else 0


def _lacking(path: Path, uses: list[Use]) -> list[Use]:
    """What is missing under the API that the file would be run with.

    A file that is eager by itself may also be a part of a graph program, so names of both APIs
    are allowed in it.
    """
    lacking = [u for u in uses if not have(u.symbol) and not _is_set_by_program(u.symbol)]
    if lacking and choose_api(path).api == "v2":
        lacking = [u for u in lacking if not _have_in_v2(u.symbol)]
    return lacking


def _coverage(options: argparse.Namespace) -> int:
    try:
        text = Path(options.usage).read_text(encoding="utf-8")
    except OSError as e:
        print(f"headrace: cannot read {options.usage}: {e.strerror}", file=sys.stderr)
        return 2
    counts = tested if options.tested else have
    verb = "covered by compared names" if options.tested else "covered"
    covered = total = left_out = 0
    blockers: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for line in text.splitlines():
        names = line.split()
        if not names:
            continue
        if any(n == p or n.startswith(p + ".") for n in names for p in options.without):
            left_out += 1
            continue
        total += 1
        lacking = [n for n in names if not counts(n.removeprefix("tf."))]
        covered += not lacking
        blockers.update(lacking)
        if len(lacking) == 1:
            alone.update(lacking)
    share = 100 * covered / total if total else 0.0
    print(
        f"{covered} of {total} programs {verb}: {share:.1f} %"
        + (f" ({left_out} left out)" if left_out else "")
    )
    for name, count in blockers.most_common(options.most):
        print(
            f"  {count:5} programs lack {name}"
            + (f", {alone[name]} only that" if alone[name] else "")
        )
    return 0
