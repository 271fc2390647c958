"""Files that the documentation names exist."""

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
