"""What `docs/kinds.md` says was tried: it cannot go stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.marked import replaced
from tests.operators import kinds_table
from tests.operators.table import Operator

OPERATORS = [pytest.param(operator, id=operator.name) for operator in kinds_table.operators()]


def test_the_tables_are_up_to_date() -> None:
    """`python -m tests.operators.kinds_table` writes them."""
    page = kinds_table.PAGE.read_text()
    assert replaced(page, kinds_table.WRITER, kinds_table.tables()) == page


@pytest.mark.parametrize(
    "operator",
    [operator for operator in kinds_table.operators() if not operator.older],
    ids=lambda operator: operator.name,
)
def test_what_was_recorded_is_of_the_version_that_is_built(operator: Operator) -> None:
    """A new version is tried anew: `MULTIKUEUE_RECORD=1 nox -s operators`."""
    made = f"{operator.module} {operator.version}"
    versions = {recording["controller"] for kind in operator.kinds for recording in kinds_table.recordings(kind)}
    assert versions <= {made}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_version_is_the_one_of_its_go_mod(operator: Operator) -> None:
    """What is said to be built is what is built."""
    lines = (Path(__file__).parent / "go" / operator.name / "go.mod").read_text().split("\n")
    assert any(
        line.split("//")[0].split()[-2:] == [operator.module, operator.version] for line in lines if line.strip()
    )
