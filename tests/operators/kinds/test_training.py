"""The training operator beside somebody else who is to run its jobs."""

from __future__ import annotations

from pathlib import Path

from multikueue.core.model.names import ObjectKey
from tests.integration.planes import Planes
from tests.kinds.ground import TEMPLATE
from tests.operators.cases import TRAINING, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.starts.training import IGNORING

pytestmark = EVERY_OPERATOR


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
        jobs = [await client.get(resource, ObjectKey("default", name)) for name, resource in own.items()]
        assert [job["metadata"]["name"] for job in jobs if job.get("status")] == []
