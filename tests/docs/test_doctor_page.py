"""The doctor's page: its table is the code's."""

from __future__ import annotations

from pathlib import Path

from multikueued.diagnosis.checks.table import CHECKS
from multikueued.doctor.worker_reader import DEADLINE
from multikueued.reports.clocks import TOLERATED
from multikueued.reports.waiting_jobs import MOST
from tests.docs.doctor_table import written_into

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "doctor.md").read_text()


def test_the_table_is_up_to_date() -> None:
    """`python -m tests.docs.doctor_table` writes it."""
    assert written_into(PAGE) == PAGE
    assert all(f"| `{check.id}` |" in PAGE for check in CHECKS)


def test_its_bounds_are_the_codes() -> None:
    assert f"each for {DEADLINE:.0f} s at most" in PAGE
    assert f"the {MOST} that have waited longest" in PAGE
    assert f"from {TOLERATED.total_seconds():.0f} s on" in PAGE
