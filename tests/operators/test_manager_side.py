"""The real controllers on the manager, beside ours: what `managedBy` gives to us they leave alone, whatever it says.

The journeys have most of them there as well, with jobs that Kueue starts there once a worker has them; here nobody
suspends them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.writers import status_controllers
from tests.integration.planes import Planes
from tests.integration.view import POD
from tests.kinds.cases import Case, cases
from tests.kinds.ground import TEMPLATE
from tests.operators.cases import operators_cases
from tests.operators.ground import OperatorsGround, operators_ground
from tests.operators.table import DEFAULT, JOBSET, Operator

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]


async def _submitted(ground: OperatorsGround, case: Case) -> None:
    """Two jobs of no queue that may run: one is ours, one is somebody's own."""
    for name, delegated in ((f"{case.name}-ours", True), (f"{case.name}-own", False)):
        job = case.kind.example(name, TEMPLATE, queue="none", delegated=delegated)
        job["metadata"]["labels"] = {}
        await ground.manager.client.create(case.kind.resource, case.kind.with_suspend(job, False))


async def _left_alone(ground: OperatorsGround, case: Case) -> None:
    """Once somebody's own job runs and has a status: of ours there is no pod, no other object, and no status."""
    ours, own = f"{case.name}-ours", f"{case.name}-own"
    await ground.until(lambda: ground.running_pods("manager", own), lambda: ground.story(case.kind, own))
    await ground.until(
        lambda: dig(ground.manager.get(case.kind.resource, own), "status"), lambda: ground.story(case.kind, own)
    )
    job = await ground.manager.client.get(case.kind.resource, ObjectKey("default", ours))
    assert dig(job, *(case.adapter.delegation.path or ())) == "kueue.x-k8s.io/multikueue"
    assert dig(job, "status") in (None, {})
    assert status_controllers(job) == ()
    assert case.adapter.acted_on(job) == ""
    of_ours = [(kind, name) for kind, name in ground.manager.last if name.startswith(ours)]
    assert [entry for entry in of_ours if entry[0] in {POD, *ground.children} - {case.kind.resource}] == []
    shown = await ground.manager.client.get(case.kind.resource, ObjectKey("default", own))
    assert status_controllers(shown) != ()
    assert '" has written its status although' in case.adapter.acted_on(shown)
    listed = (await ground.manager.client.list(case.kind.resource, namespace="default")).items
    (job,) = (obj for obj in listed if obj["metadata"]["name"] == own)
    assert status_controllers(job) == status_controllers(shown), "a daemon that starts later only lists it"


@pytest.mark.parametrize("operator", DEFAULT, ids=lambda operator: operator.name)
async def test_the_managers_own_controller_leaves_what_is_ours_alone(
    operator: Operator, planes: Planes, tmp_path: Path
) -> None:
    """It runs somebody's own at the same time, and writes their status: by that one that ignored the field is known.

    With JobSet go plain Jobs, which kube-controller-manager runs.
    """
    rows = operators_cases(operator)
    async with operators_ground(planes, operator, rows, tmp_path, on=["manager"]) as ground:
        seen = [*rows, *(case for case in cases() if case.name == "job" and operator is JOBSET)]
        for case in seen:
            await _submitted(ground, case)
        for case in seen:
            await _left_alone(ground, case)
