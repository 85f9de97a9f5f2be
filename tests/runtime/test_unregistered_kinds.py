"""Settings that change while jobs run: a kind that is taken out, a worker that is removed. What runs is not taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import check, check_state, cluster_name
from multikueue.runtime.caches.unregistered_kinds import with_running_kinds
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.runtime.fleet import CHECK, Fleet, is_active, now, until

pytestmark = pytest.mark.looptime

JOB_KEY = ObjectKey("default", "job")


@asynccontextmanager
async def one_job_runs() -> AsyncIterator[Fleet]:
    """A job runs on worker1, its check is Ready, and no manager runs."""
    fleet = Fleet.of("worker1")
    async with fleet.kueues():
        async with fleet.running():
            await fleet.connect()
            await until(is_active(fleet))
            await fleet.submit()

            async def ready() -> bool:
                workloads = (await fleet.admin.list(WORKLOAD)).items
                return (
                    bool(workloads) and check_state(workloads[0], CHECK) == "Ready" and bool(await fleet.running_on())
                )

            await until(ready)
        yield fleet


async def manager_without_jobs(fleet: Fleet, *, draining: bool) -> Manager:
    """A manager whose settings do not name the kind of the job."""
    manager = fleet.build()
    adapters = AdapterRegistry([])
    if draining:
        adapters = (await with_running_kinds(adapters, fleet.admin)).adapters
    return Manager(manager.client, adapters, manager.settings, fleet.client, clock=now)


ENDED: Json = {
    "active": 0,
    "ready": 0,
    "succeeded": 1,
    "completionTime": "2026-01-01T01:00:00Z",
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ],
}
"""The status of a Job that has ended well."""


async def end_job(fleet: Fleet) -> None:
    """Let the job on the worker end well."""
    worker = DirectClient(fleet.workers["worker1"])
    await worker.merge_patch(JOB, JOB_KEY, {"status": ENDED}, subresource="status")


BOTH = pytest.mark.parametrize("draining", [True, False], ids=["with an adapter", "without an adapter"])


@BOTH
async def test_a_job_of_a_kind_that_left_the_settings_runs_on_and_ends(draining: bool) -> None:
    async with one_job_runs() as fleet:
        before = await fleet.running_on()
        async with fleet.running(await manager_without_jobs(fleet, draining=draining)):
            await anyio.sleep(120)
            assert await fleet.running_on() == before
            our_check = check(await fleet.workload(), CHECK) or {}
            assert 'add "batch/job" to integrations.frameworks' in our_check["message"]
            await end_job(fleet)
            await until(fleet.finished)


@BOTH
@pytest.mark.parametrize("how", ["evicted", "deleted"])
async def test_a_job_of_a_kind_that_left_the_settings_is_stopped_from_the_manager(draining: bool, how: str) -> None:
    async with one_job_runs() as fleet, fleet.running(await manager_without_jobs(fleet, draining=draining)):
        await anyio.sleep(30)
        if how == "evicted":
            await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        else:
            await fleet.admin.delete(JOB, JOB_KEY, propagation="Background")
        await until(fleet.idle, within=120)


async def test_the_settings_that_are_missing_are_counted_by_kind() -> None:
    async with one_job_runs() as fleet:
        adapters = await with_running_kinds(AdapterRegistry([]), fleet.admin)
        assert {str(gvk): count for gvk, count in adapters.waiting.items()} == {"batch/v1, Kind=Job": 1}
        assert [(str(kind.resource), kind.traits.draining) for kind in adapters.adapters] == [("jobs.batch", True)]
        same = AdapterRegistry(BUILTIN)
        assert (await with_running_kinds(same, fleet.admin)).adapters is same


async def test_a_manager_without_kueue_has_nothing_that_runs() -> None:
    """The daemon starts, and waits for its definitions."""
    bare = DirectClient(ApiServer("manager", clock=now))
    adapters = await with_running_kinds(AdapterRegistry(BUILTIN), bare)
    assert (adapters.waiting, adapters.before.take()) == ({}, None)


async def test_what_no_worker_may_run_keeps_no_kind() -> None:
    """It waits, or has ended."""
    async with one_job_runs() as fleet:
        async with fleet.running():
            await end_job(fleet)
            await until(fleet.finished)
        await fleet.submit("waits")
        await until(lambda: _has_workloads(fleet, 2))
        adapters = await with_running_kinds(AdapterRegistry([]), fleet.admin)
        assert (adapters.waiting, list(adapters.adapters)) == ({}, [])


async def _has_workloads(fleet: Fleet, count: int) -> bool:
    return len((await fleet.admin.list(WORKLOAD)).items) == count


async def test_what_an_eviction_stops_on_a_worker_is_followed_though_no_worker_is_recorded_any_more() -> None:
    """A start without the kind must not reject it: its job still runs, and its pods are to be stopped."""
    async with one_job_runs() as fleet:
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        assert cluster_name(await fleet.workload()) is None
        adapters = await with_running_kinds(AdapterRegistry([]), fleet.admin)
        assert adapters.waiting == {JOB.gvk: 1}
        assert await fleet.running_on()


async def test_a_kind_that_the_manager_does_not_serve_is_followed_while_a_worker_runs_jobs_of_it() -> None:
    """Its definition may be gone for a moment; what runs is never taken, and nothing of it is rejected."""
    unserved = AdapterRegistry([attrs.evolve(kind, unserved=True) for kind in BUILTIN])
    async with one_job_runs() as fleet:
        adapters = await with_running_kinds(unserved, fleet.admin)
        assert (adapters.waiting, unserved.followed) == ({JOB.gvk: 1}, ())
        (adapter,) = adapters.adapters.followed
        assert not adapter.traits.draining
    assert (await with_running_kinds(unserved, Fleet.of("worker1").admin)).adapters is unserved


async def test_a_removed_worker_is_kept_with_its_credentials_until_its_jobs_have_ended() -> None:
    async with one_job_runs() as fleet:
        before = await fleet.running_on()
        with capture_logs() as logs:
            async with fleet.running() as manager:
                await until(is_active(fleet))
                await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
                await fleet.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker1-secret"))
                await fleet.submit("later")
                await anyio.sleep(3600)
                assert await fleet.running_on() == before
                assert {job["metadata"]["name"] for job in (await fleet.admin.list(JOB)).items} == {"job", "later"}
                assert sorted(map(str, map(cluster_name, (await fleet.admin.list(WORKLOAD)).items))) == [
                    "None",
                    "worker1",
                ]
                await end_job(fleet)
                await until(lambda: manager.workers.get("worker1") is None, within=60)
        kept = [line for line in logs if line["event"] == "a removed worker still runs jobs and is kept until they end"]
        assert [(line["cluster"], line["jobs"]) for line in kept] == [("worker1", 1)]


async def test_a_removed_worker_is_kept_until_what_an_eviction_stops_is_gone() -> None:
    """The eviction erases `clusterName` at once, and the job there is still to be stopped."""
    async with one_job_runs() as fleet, fleet.running() as manager:
        await until(is_active(fleet))
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await anyio.sleep(10)
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await until(fleet.idle, within=120)
        await until(lambda: manager.workers.get("worker1") is None, within=120)
        assert (await DirectClient(fleet.workers["worker1"]).list(WORKLOAD)).items == []


async def test_a_removed_worker_is_kept_while_it_does_not_let_what_was_evicted_be_stopped() -> None:
    """Nothing on the manager names it any more."""
    async with one_job_runs() as fleet, fleet.running() as manager:
        await until(is_active(fleet))
        refused = fleet.workers["worker1"].faults.add(Refuse(500), on=Match(verbs=("delete",)))
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await anyio.sleep(10)
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await anyio.sleep(120)
        assert manager.workers.get("worker1") is not None
        fleet.workers["worker1"].faults.remove(refused)
        await until(lambda: manager.workers.get("worker1") is None, within=300)
        assert (await DirectClient(fleet.workers["worker1"]).list(JOB)).items == []
