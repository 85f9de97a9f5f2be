"""The MPI operator, one at a time: it serves its health at port 8080, whatever it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from tests.integration.planes import Planes
from tests.integration.view import POD
from tests.kinds.ground import TEMPLATE
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


async def test_the_managers_own_operator_leaves_an_mpijob_of_ours_alone(planes: Planes, tmp_path: Path) -> None:
    """It runs somebody's own at the same time."""
    (case,) = operators_cases(MPI)
    async with operators_ground(planes, MPI, [case], tmp_path, on=["manager"]) as ground:
        await ground.submit(case.kind, "ours")
        await ground.manager.client.merge_patch(
            case.kind.resource, ObjectKey("default", "ours"), {"spec": {"runPolicy": {"suspend": False}}}
        )
        own = case.kind.with_suspend(case.kind.example("own", TEMPLATE, queue="none", delegated=False), False)
        own["metadata"]["labels"] = {}
        await ground.manager.client.create(case.kind.resource, own)
        await ground.until(
            lambda: len(ground.running_pods("manager", "own")) == 2, lambda: ground.story(case.kind, "own")
        )
        ours = await ground.manager.client.get(case.kind.resource, ObjectKey("default", "ours"))
        assert dig(ours, "status") in (None, {})
        made = [name for kind, name in ground.manager.last if kind in (POD, *ground.children)]
        assert not [name for name in made if name.startswith("ours")]
