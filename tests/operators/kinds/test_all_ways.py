"""Every kind goes all ways with its own controller, on the manager and both workers unless its row says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.operators.cases import operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.kinds.rows import ROWS, USUAL
from tests.operators.recording import record
from tests.operators.table import Operator
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    ("operator", "row"),
    [
        pytest.param(operator, row, id=row.case.name, marks=[] if operator in USUAL else [pytest.mark.every_operator])
        for operator, row in ROWS
    ],
)
async def test_a_kind_goes_all_ways(operator: Operator, row: Row, planes: Planes, tmp_path: Path) -> None:
    on = None if row.two_workers else ["worker1"]
    async with operators_ground(planes, operator, operators_cases(operator), tmp_path, on=on) as ground:
        await all_ways(ground, [row])
        record(ground, operator, [row])
