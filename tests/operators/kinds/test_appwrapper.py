"""The AppWrapper controller, on the manager and on both workers; without its webhook, which checks rights of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.operators.cases import APPWRAPPER, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]


async def test_an_appwrapper_with_a_job_inside_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """One Job of one pod."""
    (case,) = operators_cases(APPWRAPPER)
    row = Row(case=case, pods=1)
    async with operators_ground(planes, APPWRAPPER, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, APPWRAPPER, [row])
