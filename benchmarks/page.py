"""Writes what was measured into docs/benchmarks.md and its pictures. The page's own text stays; a
group's part is what lies between its marks, and is left alone when the run did not measure the
group.

    <!-- measured: engine -->
    ...
    <!-- end: engine -->

Tables of another class of CPU than the usual one have parts of their own (``engine, AVX2``).
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.groups import GROUPS, Group
from benchmarks.load import BUSY
from benchmarks.plots import draw
from benchmarks.results import Results
from benchmarks.roofline import Machine
from benchmarks.table import limits_table, make_table, markdown

__all__ = ["about_text", "doubts", "write_page"]

PAGE = "benchmarks.md"
PICTURES = "benchmarks"
#: The class of CPU whose tables have no class in their marks.
USUAL = "AVX-512"


def write_page(docs: Path, results: Results) -> None:
    name = results.about.get("instructions", USUAL)
    # pictures are of one class only
    pictures = draw(results, docs / PICTURES) if name == USUAL else {}
    path = docs / PAGE
    text = path.read_text()
    for group in GROUPS.values():
        if any(results.libraries(case) for case in group.cases()):
            mark = group.name if name == USUAL else f"{group.name}, {name}"
            text = _replaced(text, mark, _part(group, results, pictures.get(group.name, [])))
    path.write_text(text)


def _replaced(text: str, mark: str, part: str) -> str:
    start, end = f"<!-- measured: {mark} -->", f"<!-- end: {mark} -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{PAGE} has no part for {mark}: it needs {start} and {end}")
    return pattern.sub(lambda _: f"{start}\n{part}\n{end}", text)


def _part(group: Group, results: Results, pictures: list[Path]) -> str:
    doubtful = [f"**NOT TO BE QUOTED**: {reason}." for reason in doubts(results)]
    parts = [about_text(group, results), *doubtful]
    parts += [f"![{group.title}]({PICTURES}/{picture.name})" for picture in pictures]
    parts.append(markdown(make_table(group, results)).rstrip())
    machine = Machine.of(results, min)
    limits = limits_table(group, results, machine) if machine is not None else None
    if machine is not None and limits is not None:
        parts.append(
            f"The limit is the work at {machine.flops / 1e9:.0f} GFlop/s, the rate of "
            "large float32 products measured "
            "in the same run; the shares are of that limit:"
        )
        parts.append(markdown(limits).rstrip())
    return "\n\n".join(parts)


def about_text(group: Group, results: Results) -> str:
    names = [n for n in group.libraries() if n in results.versions]
    versions = ", ".join(dict.fromkeys(results.versions[name] for name in names))
    about = "; ".join(results.about.values())
    return f"{versions}; {about}. Best / median (and the peer's best over ours)."


def doubts(results: Results) -> list[str]:
    reasons = ["--quick took one round of tiny sizes"] if results.quick else []
    if results.load > BUSY:
        reasons.append(
            f"other processes kept the machine busy (load {results.load:.1f} beside ours)"
        )
    return reasons
