"""Files that the documentation and the comments of the sources name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/adr/*.md")])
#: Pages that name files of other repositories.
_NOT_OURS = {
    "docs/programs.md",
    "docs/more_programs.md",
    "docs/tftests.md",
    "docs/third_programs.md",
    "docs/fifth_programs.md",
    "docs/fourth_programs.md",
}
_FILE = re.compile(r"(?<![\w/.])((?:\.\./)*(?:[a-z_]\w*/)+\w+\.(?:py|md|txt|png))\b")
#: Where a path may begin.
_BASES = ("", "src", "src/headrace", "docs", "benchmarks")


@pytest.mark.parametrize("page", _PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    if str(page.relative_to(ROOT)) in _NOT_OURS:
        return
    named = set(_FILE.findall(page.read_text(encoding="utf-8")))
    bases = [page.parent, *(ROOT / base for base in _BASES)]
    missing = [name for name in named if not any((base / name).exists() for base in bases)]
    assert not missing, f"{page.name} names files that do not exist: {', '.join(sorted(missing))}"


#: Names of files that are examples.
_EXAMPLES = {"script.py", "f.py", "file.py", "_pb2.py", "program.py"}
_MODULE = re.compile(r"(?<![\w./{*-])([a-z_][\w/]*\.py)\b")


def test_sources_name_files_that_exist() -> None:
    """``update_rules.py`` in a docstring is the end of a path of the tree."""
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "tools", "examples")]
    paths = {f"/{p.relative_to(ROOT)}" for folder in folders for p in folder.rglob("*.py")}
    known = {path[at:] for path in paths for at in range(len(path)) if path[at] == "/"}
    missing = [
        f"{source.relative_to(ROOT)}:{number}: {name}"
        for source in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1)
        for name in _MODULE.findall(line)
        if f"/{name}" not in known and name not in _EXAMPLES
    ]
    assert not missing, "\n".join(missing)
