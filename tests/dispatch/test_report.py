"""The documented tables are those that were measured."""

from __future__ import annotations

import json
from pathlib import Path

from tests.dispatch import family
from tests.dispatch.report import RESULTS, floors, table


def test_the_documented_tables_are_of_the_measured_results() -> None:
    page = (Path(__file__).parents[2] / "docs/dispatch.md").read_text()
    results = json.loads(RESULTS.read_text())

    assert table(results) in page
    assert floors(results) in page
    for part in (family.table, family.aims, family.hung):
        assert part(family.known(family.RESULTS)) in page
