"""The documented table is the one that was measured."""

from __future__ import annotations

import json
from pathlib import Path

from tests.dispatch.report import RESULTS, table


def test_the_documented_table_is_of_the_measured_results() -> None:
    page = Path(__file__).parents[2] / "docs/dispatch.md"

    assert table(json.loads(RESULTS.read_text())) in page.read_text()
