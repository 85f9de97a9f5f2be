"""The MPI operator, one at a time: it serves its health at port 8080, whatever it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.operators.cases import MPI, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]


async def test_an_mpijob_goes_all_ways_on_the_worker_that_has_the_operator(planes: Planes, tmp_path: Path) -> None:
    """A launcher and a worker."""
    (case,) = operators_cases(MPI)
    row = Row(case=case, pods=2, two_workers=False)
    async with operators_ground(planes, MPI, [case], tmp_path, on=["worker1"]) as ground:
        await all_ways(ground, [row])
        record(ground, MPI, [row])
