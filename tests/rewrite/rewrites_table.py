"""Write the table of rewrites into docs/rewrites.md.

python -m tests.rewrite.rewrites_table
"""

from __future__ import annotations

from pathlib import Path

from headrace.rewrite.rule_table import RULES

__all__ = ["END", "START", "table"]

DOCS = Path(__file__).parent.parent.parent / "docs" / "rewrites.md"
START = "<!-- rules: made by tests/rewrite/rewrites_table.py -->"
END = "<!-- end of rules -->"


def table() -> str:
    """The rules in order, as Markdown."""
    lines = ["| rule | what it does | bits | example |", "|---|---|---|---|"]
    for rule in RULES:
        bits = "same" if rule.exact else "may change"
        example = rule.example.replace("|", "\\|")
        lines.append(f"| {rule.name} | {rule.does} | {bits} | `{example}` |")
    return "\n".join(lines)


def main() -> None:
    text = DOCS.read_text()
    before, after = text[: text.index(START) + len(START)], text[text.index(END) :]
    DOCS.write_text(f"{before}\n{table()}\n{after}")


if __name__ == "__main__":
    main()
