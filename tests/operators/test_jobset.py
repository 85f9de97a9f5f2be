"""JobSet's own controller and webhooks, on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.kinds import journeys as common
from tests.operators.cases import JOBSET, operators_cases
from tests.operators.ground import operators_ground

pytestmark = [pytest.mark.operators, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]


async def test_a_jobset_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    rows = operators_cases(JOBSET)
    async with operators_ground(planes, JOBSET, rows, tmp_path) as ground:
        await common.finishes(ground, rows[0])
