"""A MultiKueueCluster that leads to another cluster than before: what the former one runs is lost, and not gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse, Reset
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import cluster, set_up_queues
from tests.runtime.fleet import Fleet, is_active, kubeconfig, now, server, until

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def moved(*refused: int, of: str = "") -> AsyncIterator[Fleet]:
    """A worker that has a job, and whose kubeconfig is replaced by that of another cluster.

    Args:
        refused: how a server answers who asks which cluster it is: once, or always if it may not be asked.
        of: which server; empty: the other cluster's.
    """
    fleet = await Fleet.connected("worker1")
    fleet.workers["other"] = server("other")
    await set_up_queues(DirectClient(fleet.workers["other"]), {"cpu": "4"})
    for status in refused:
        times = 1 if status >= 500 else None
        fleet.workers[of or "other"].faults.add(Refuse(status), on=Match(("get",), "namespaces"), times=times)
    async with fleet.kueues(), fleet.running(fleet.build(300.0)):
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(5)
        await fleet.write_secret("worker1", kubeconfig("other"))
        await anyio.sleep(5)
        await until(is_active(fleet))
        yield fleet


@pytest.mark.parametrize(
    ("refused", "of"),
    [((), ""), ((403,), "other"), ((503,), "other"), ((403,), "worker1")],
    ids=["both say who they are", "the new one may not be asked", "the new one fails once", "the old one kept silent"],
)
async def test_what_runs_there_does_not_run_twice_before_it_is_given_up(refused: tuple[int, ...], of: str) -> None:
    """It was looked for on the new cluster, was not found, and was run there at once."""
    async with moved(*refused, of=of) as fleet:
        await anyio.sleep(280)
        assert [*await fleet.running_on()] == ["worker1"]
        await until(lambda: _runs_on(fleet, "other"), 120)
        await anyio.sleep(60)
        assert fleet.requests("other", "create", JOB) == 1
        assert cluster_name(await fleet.workload()) == "worker1"


@asynccontextmanager
async def readdressed() -> AsyncIterator[Fleet]:
    """A worker that may not be asked who it is, and has a job of 600 s, gets a kubeconfig with another address."""
    fleet = await Fleet.connected("worker1")
    fleet.workers["address2"] = fleet.workers["worker1"]
    fleet.workers["worker1"].faults.add(Refuse(403), on=Match(("get",), "namespaces"))
    async with fleet.kueues(RunnerOptions(minimum=600.0, maximum=600.0)), fleet.running(fleet.build(300.0)):
        await fleet.submit()
        await until(fleet.running_on)
        await fleet.write_secret("worker1", kubeconfig("address2", "worker1-token"))
        yield fleet


async def test_another_address_of_a_cluster_that_may_not_be_asked_for_its_uid_leaves_the_job() -> None:
    async with readdressed() as fleet:
        await until(fleet.finished, 700)
        assert fleet.requests("worker1", "create", JOB) == 1


async def test_nor_does_it_wait_for_what_it_had_there_once_it_is_evicted() -> None:
    async with readdressed() as fleet:
        await anyio.sleep(30)
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await until(lambda: fleet.requests("worker1", "create", JOB) == 2, 120)


async def _runs_on(fleet: Fleet, worker: str) -> bool:
    return worker in await fleet.running_on()


async def test_also_what_is_evicted_meanwhile_is_waited_for() -> None:
    async with moved() as fleet:
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await anyio.sleep(280)
        assert [*await fleet.running_on()] == ["worker1"]
        await until(lambda: _runs_on(fleet, "other"))


async def test_nor_does_a_worker_that_is_removed_and_made_again_end_that_wait() -> None:
    """Nothing of it showed on the new cluster, so it ran there at once, beside what the lost one ran."""
    fleet = await Fleet.connected("worker1")
    fleet.workers["other"] = server("other")
    await set_up_queues(DirectClient(fleet.workers["other"]), {"cpu": "4"})
    async with fleet.kueues(), fleet.running(fleet.build(300.0)):
        await fleet.submit()
        await until(fleet.running_on)
        fleet.workers["worker1"].faults.add(Reset(), on=Match(user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await until(is_active(fleet, status="False"))
        lost_at = anyio.current_time()
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await anyio.sleep(5)
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await fleet.write_secret("worker1", kubeconfig("other"))
        await anyio.sleep(5)
        await fleet.admin.create(MULTIKUEUE_CLUSTER, cluster("worker1"))
        await until(lambda: _runs_on(fleet, "other"), 400)
        assert 270 < anyio.current_time() - lost_at < 310


async def test_a_new_job_goes_to_the_new_cluster_at_once() -> None:
    async with moved() as fleet:
        await fleet.submit("next")
        await until(lambda: _runs_on(fleet, "other"))


async def test_a_kubeconfig_that_is_put_right_again_leaves_the_job_where_it_is() -> None:
    async with moved() as fleet:
        before = await fleet.running_on()
        await fleet.write_secret("worker1", kubeconfig("worker1"))
        await anyio.sleep(600)
        assert await fleet.running_on() == before
        assert cluster_name(await fleet.workload()) == "worker1"


@pytest.mark.parametrize("removed", [False, True])
async def test_what_had_ended_there_before_is_not_waited_for(removed: bool) -> None:
    """Also if the MultiKueueCluster was removed and made again: then nobody knows since when it leads elsewhere."""
    fleet = await Fleet.connected("worker1")
    fleet.workers["other"] = server("other")
    await set_up_queues(DirectClient(fleet.workers["other"]), {"cpu": "4"})
    async with fleet.kueues(), fleet.running():
        await fleet.submit()
        await until(fleet.running_on)
        await _activate(fleet, active=False)
        await anyio.sleep(30)
        assert not await fleet.running_on()
        if removed:
            await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
            await anyio.sleep(30)
        await fleet.write_secret("worker1", kubeconfig("other"))
        if removed:
            await fleet.admin.create(MULTIKUEUE_CLUSTER, cluster("worker1"))
        await anyio.sleep(10)
        await _activate(fleet, active=True)
        await until(lambda: _runs_on(fleet, "other"), 60)


async def _activate(fleet: Fleet, *, active: bool) -> None:
    await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(await fleet.workload()), {"spec": {"active": active}})


async def test_kubeconfigs_of_two_workers_that_are_swapped_and_put_right_again_stop_nothing() -> None:
    """Each showed what the other had, with the other's mark, and removed it at once."""
    fleet = await Fleet.connected("worker1", "worker2", cpu=1)
    async with fleet.kueues(), fleet.dispatching():
        for name in ("one", "two", "three", "four"):
            await fleet.submit(name)
        await until(lambda: _run_on_both(fleet))
        before = await _all_running(fleet)
        for name, other in (("worker1", "worker2"), ("worker2", "worker1")):
            await fleet.write_secret(name, kubeconfig(other))
        await anyio.sleep(200)
        assert await _all_running(fleet) == before
        for name in fleet.workers:
            await fleet.write_secret(name, kubeconfig(name))
        await anyio.sleep(900)
        assert await _all_running(fleet) == before


async def _run_on_both(fleet: Fleet) -> bool:
    return len(await _all_running(fleet)) == 4


async def _all_running(fleet: Fleet) -> dict[str, str]:
    listed = [
        (name, job) for name, worker in fleet.workers.items() for job in (await DirectClient(worker).list(JOB)).items
    ]
    return {job["metadata"]["uid"]: name for name, job in listed if (job.get("status") or {}).get("active")}
