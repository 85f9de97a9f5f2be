"""The trainer and its webhooks with JobSet's manager, all of them on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

from tests.integration.planes import Planes
from tests.operators.cases import TRAINER, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.recording import record
from tests.operators.starts.trainer import AGAIN
from tests.operators.walking import all_ways

pytestmark = EVERY_OPERATOR


async def test_a_trainjob_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """Two nodes; the JobSet that the trainer makes of it is never a copy of its own."""
    (case,) = operators_cases(TRAINER)
    row = Row(case=case, pods=2, robust={"runtimeRef": {"name": AGAIN}})
    async with operators_ground(planes, TRAINER, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, TRAINER, [row])
