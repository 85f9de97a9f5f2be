"""JobSet's own controller and webhooks, on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.operators.cases import JOBSET, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]


async def test_a_jobset_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """A JobSet of two replicated jobs, with three pods."""
    (case,) = operators_cases(JOBSET)
    # JobSet says that it has failed, then deletes the Jobs that still run, and counts what is left of them.
    row = Row(case=case, pods=3, robust={"failurePolicy": {"maxRestarts": 1}}, writes_on=True)
    async with operators_ground(planes, JOBSET, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, JOBSET, [row])
