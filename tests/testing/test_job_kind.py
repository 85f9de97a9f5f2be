"""How an author of a job kind tests a row: with `multikueue.testing` and nothing else of ours."""

from __future__ import annotations

import pytest

from multikueue import GVK, Json, ObjectKey, Resource
from multikueue.adapters import JobKind
from multikueue.core.model.kinds import WORKLOAD
from multikueue.testing import NOW, InMemoryCluster, SandboxKind, contains, copy_of, job, job_copy_of, queues, workload

pytestmark = pytest.mark.looptime

RENDER = Resource(GVK("studio.example.com", "v1", "Render"), "renders")
ROW = JobKind(resource=RENDER)
PLAYED = SandboxKind(resource=RENDER, spec={"film": "trailer"})
"""How the sandbox's Kueue and job runner treat the kind."""


def ended(render: Json) -> bool:
    return any(entry["type"] == "Complete" for entry in (render.get("status") or {}).get("conditions") or [])


async def test_a_worker_runs_the_copy_and_the_manager_shows_how_it_ended() -> None:
    manager, worker = (InMemoryCluster(name, kinds=[PLAYED]) for name in ("manager", "worker"))
    (local,) = await manager.put(job("trailer", kind=PLAYED))
    carrier = workload(local, kind=PLAYED, cluster="worker")
    await worker.put(*queues(), copy_of(carrier))
    (copied,) = await worker.put(job_copy_of(ROW, local, carrier))

    assert contains(copied, {"spec": {"film": "trailer", "suspend": True}})
    assert "managedBy" not in copied["spec"]

    async with worker.kueue():
        done = await worker.when(RENDER, ended)
    patch = ROW.status_patch(local, done, NOW)
    assert patch is not None
    await manager.client().merge_patch(RENDER, ObjectKey("default", "trailer"), patch, subresource="status")

    shown = await manager.get(RENDER, "trailer")
    assert shown is not None
    assert shown["status"] == done["status"]


async def test_a_workload_can_be_put_at_any_point_of_its_way() -> None:
    """The API server takes what the builders make, statuses included."""
    cluster = InMemoryCluster(kinds=[PLAYED])
    (render,) = await cluster.put(job("trailer", kind=PLAYED))
    for facts in (
        workload(render, kind=PLAYED, quota=False),
        workload(render, kind=PLAYED, nominated=["worker1", "worker2"]),
        workload(render, kind=PLAYED, cluster="worker1", checks={"multikueue": "Ready"}),
        workload(render, kind=PLAYED, evicted="Preempted"),
        workload(render, kind=PLAYED, cluster="worker1", finished="Succeeded"),
    ):
        (written,) = await cluster.put(facts)
        assert contains(written, {"spec": facts["spec"], "status": facts["status"]})
        name = written["metadata"]["name"]
        key = ObjectKey("default", name)
        await cluster.client().merge_patch(WORKLOAD, key, {"metadata": {"finalizers": None}})
        await cluster.client().delete(WORKLOAD, key)
        await cluster.gone(WORKLOAD, name)
