"""Our check is taken off a queue while a job of it runs: Kueue takes it off the Workload, too, and the job runs on."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, EVENT, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import CHECK, Fleet, until

pytestmark = pytest.mark.looptime

QUEUE = ObjectKey("", "cluster-queue")


async def with_checks(fleet: Fleet, strategy: Json | None) -> None:
    await fleet.admin.merge_patch(CLUSTER_QUEUE, QUEUE, {"spec": {"admissionChecksStrategy": strategy}})
    await anyio.sleep(30)
    checks = (await fleet.workload())["status"].get("admissionChecks") or []
    assert [check["name"] for check in checks] == ([CHECK] if strategy else [])


async def warnings(fleet: Fleet, kind: str) -> list[str]:
    """The notes of warnings about objects of a kind."""
    events = (await fleet.admin.list(EVENT)).items
    return [event["note"] for event in events if event["type"] == "Warning" and event["regarding"]["kind"] == kind]


async def test_a_job_whose_copies_are_gone_is_told_and_runs_again_once_its_queue_has_the_check() -> None:
    """It was followed for ever: its job said that it runs, held its quota, and nothing told that nobody runs it."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(), fleet.dispatching(fleet.build()):
        await fleet.submit()
        await until(fleet.running_on)
        ((name, before),) = (await fleet.running_on()).items()
        await with_checks(fleet, None)
        assert await fleet.running_on() == {name: before}
        assert await warnings(fleet, "Job") == []
        worker = DirectClient(fleet.workers[name])
        for kind in (JOB, WORKLOAD):
            for copy in (await worker.list(kind)).items:
                await worker.delete(kind, ObjectKey.of(copy), propagation="Background")
        await anyio.sleep(60)
        assert await fleet.running_on() == {}
        for about in ("Job", "Workload"):
            (note,) = await warnings(fleet, about)
            assert note.startswith(f'Its copies on worker cluster "{name}" are gone')
        await with_checks(fleet, {"admissionChecks": [{"name": CHECK}]})
        await until(fleet.running_on)
        assert list((await fleet.running_on()).values()) != [before]
