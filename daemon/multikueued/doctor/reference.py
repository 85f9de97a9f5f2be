"""The table of all findings as Markdown: `python -m multikueued.doctor.reference docs/doctor.md` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from multikueued.doctor.checks.table import GROUPS
from multikueued.doctor.findings import Check

BEGIN: Final = "<!-- written by multikueued/doctor/reference.py -->"
END: Final = "<!-- end -->"


def reference() -> str:
    """The generated part of the page."""
    lines: list[str] = []
    for title, checks in GROUPS.items():
        lines += [f"### {title}", "", "| id | severity | what it finds | why it matters |", "|---|---|---|---|"]
        lines += [*_rows(checks), ""]
    return "\n".join(lines)


def _rows(checks: Iterable[Check]) -> list[str]:
    return [f"| `{one.id}` | {one.severity} | {one.finds} | {one.why} |" for one in checks]


def written_into(page: str) -> str:
    """The page with its generated part as it should be."""
    head, rest = page.split(BEGIN, 1)
    _, tail = rest.split(END, 1)
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(written_into(file.read_text()))
