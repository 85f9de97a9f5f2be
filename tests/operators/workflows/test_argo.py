"""Argo's own workflow controller, on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

from tests.integration.planes import Planes
from tests.operators.cases import ARGO, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.recording import record
from tests.operators.walking import all_ways
from tests.operators.workflows.journeys import cancelled, drains, drains_deactivated

pytestmark = EVERY_OPERATOR


_ROBUST = {"templateDefaults": {"retryStrategy": {"limit": "2", "retryPolicy": "Always"}}}


async def test_a_workflow_of_two_tasks_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """The second task needs what the first one has put out."""
    (case,) = operators_cases(ARGO)
    more = (drains, drains_deactivated, cancelled(shutdown="Terminate"))
    row = Row(case=case, pods=1, until_end=2, defaulted=True, tells_of_stops=False, robust=_ROBUST, more=more)
    async with operators_ground(planes, ARGO, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, ARGO, [row])
