"""The training operator and its webhooks, on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.core.model.names import Json, ObjectKey
from tests.integration.planes import Planes
from tests.kinds.cases import Case
from tests.kinds.ground import TEMPLATE
from tests.operators.cases import TRAINING, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.recording import record
from tests.operators.starts.training import IGNORING
from tests.operators.walking import all_ways

pytestmark = EVERY_OPERATOR


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in operators_cases(TRAINING)])
async def test_a_training_job_goes_all_ways(case: Case, planes: Planes, tmp_path: Path) -> None:
    """A worker, and one pod that leads it for all kinds but JAXJob."""
    row = Row(
        case=case,
        pods=1 if case.name == "jaxjob" else 2,
        robust=_restarting(case),
        victim={"training.kubeflow.org/replica-type": "worker"},
        survives="30s",
        writes_on=True,
    )
    async with operators_ground(planes, TRAINING, operators_cases(TRAINING), tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, TRAINING, [row])


async def test_only_jaxjobs_are_run_though_somebody_else_is_to_run_them(planes: Planes, tmp_path: Path) -> None:
    """So a manager's operator is started without them; `starts/training.py` says so of this version."""
    rows = operators_cases(TRAINING)
    async with operators_ground(planes, TRAINING, rows, tmp_path, on=["worker1"]) as ground:
        client = ground.workers["worker1"].client
        for case in rows:
            job = case.kind.with_suspend(case.kind.example(f"{case.name}-other", TEMPLATE, queue="none"), False)
            job["metadata"]["labels"] = {}
            await client.create(case.kind.resource, job)
        await ground.until(lambda: ground.running_pods("worker1", f"{IGNORING}-other"), lambda: "no pod of a JAXJob")
        own = {f"{case.name}-other": case.kind.resource for case in rows if case.name != IGNORING}
        assert [name for name in own if ground.pods("worker1", name)] == []
        found = [await client.get(resource, ObjectKey("default", name)) for name, resource in own.items()]
        assert [job["metadata"]["name"] for job in found if job.get("status")] == []


def _restarting(case: Case) -> Json:
    """Its pods, of which one that was killed is made anew."""
    example = case.kind.example("any", TEMPLATE, queue="any")
    (field,) = case.kind.spec
    return {field: {role: {**pods, "restartPolicy": "ExitCode"} for role, pods in example["spec"][field].items()}}
