"""The table of all findings as Markdown: `python -m tests.docs.doctor_table` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from multikueued.diagnosis.checks.table import GROUPS
from multikueued.diagnosis.findings import Check
from tests.docs.marked import replaced

PAGE: Final = Path(__file__).parents[2] / "docs" / "doctor.md"


def reference() -> str:
    """The generated part of the page."""
    lines: list[str] = []
    for title, checks in GROUPS.items():
        lines += [f"### {title}", "", "| id | severity | what it finds | why it matters |", "|---|---|---|---|"]
        lines += [*_rows(checks), ""]
    return "\n".join(lines)


def _rows(checks: Iterable[Check]) -> list[str]:
    return [f"| `{check.id}` | {check.severity} | {check.finds} | {check.row.matters} |" for check in checks]


def written_into(page: str) -> str:
    """The page with its generated part as it should be."""
    return replaced(page, "tests/docs/doctor_table.py", reference().rstrip())


if __name__ == "__main__":
    PAGE.write_text(written_into(PAGE.read_text()))
