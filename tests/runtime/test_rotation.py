"""New credentials for a worker: nothing that runs there is dropped, and nothing looks gone meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.runtime.cluster_pool import LINGER, Cluster
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers.informers import WorkerInformers
from multikueue.runtime.workers.pool import WorkerCluster
from multikueue.sandbox.apiserver import Delay, DirectClient, Match, Refuse, SilenceWatch
from multikueue.sandbox.setting_up import set_up_queues
from tests.core.door import Unserved
from tests.runtime.fleet import Fleet, is_active, kubeconfig, server, until

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def a_running_job(history: int = 0) -> AsyncIterator[tuple[Fleet, Manager]]:
    """One worker with a job on it, and so many writes before that."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching() as manager:
        for number in range(history):
            patch = {"metadata": {"labels": {"example.com/number": str(number)}}}
            await DirectClient(fleet.workers["worker1"]).merge_patch(NAMESPACE, ObjectKey("", "default"), patch)
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(10)
        yield fleet, manager


def worker(manager: Manager) -> WorkerCluster:
    cluster = manager.workers.get("worker1")
    assert cluster is not None
    return cluster


def cluster(manager: Manager) -> Cluster[WorkerInformers]:
    cluster = manager.workers.clusters.get("worker1")
    assert cluster is not None
    return cluster


def knows_jobs(manager: Manager) -> bool:
    """Whether the worker's Workloads and jobs have been read."""
    informers = worker(manager).known
    return informers is not None and informers.have_read(JOB.gvk)


async def stays_usable(manager: Manager, seconds: float) -> None:
    """Look every few milliseconds whether the worker is reachable and known."""
    until_then = anyio.current_time() + seconds
    while anyio.current_time() < until_then:
        assert worker(manager).connection.connected
        assert knows_jobs(manager)
        await anyio.sleep(0.01)


async def test_a_rotation_is_not_noticed_by_what_runs() -> None:
    """The new token is used once everything was read with it; the old one may be revoked then."""
    async with a_running_job() as (fleet, manager):
        jobs, workload, active = await fleet.running_on(), await fleet.workload(), await fleet.active()
        slow = fleet.workers["worker1"].faults.add(Delay(2), on=Match(verbs=("list",)))
        await fleet.rotate("worker1", "new")
        await stays_usable(manager, 10)
        assert slow.hits >= 2
        fleet.revoke("worker1", "worker1-token")
        await stays_usable(manager, 60)
        assert await fleet.running_on() == jobs
        assert await fleet.workload() == workload
        assert await fleet.active() == active
        assert len(await fleet.events()) == 1


async def test_what_was_written_meanwhile_is_not_written_again() -> None:
    """The new caches are read before a write that only the old ones have seen, and their watch lags behind."""
    async with a_running_job() as (fleet, manager):
        new = "multikueue:new"
        fleet.workers["worker1"].faults.add(SilenceWatch(), on=Match(resource="workloads", user=new))
        fleet.workers["worker1"].faults.add(Delay(5), on=Match(verbs=("list",), resource="jobs", user=new))
        await fleet.rotate("worker1", "new")
        await anyio.sleep(2)
        await fleet.submit("second")
        await stays_usable(manager, 30)
        usable = worker(manager).usable
        assert usable is not None
        assert len(usable.workloads.informer) == 1
        assert fleet.requests("worker1", "create", WORKLOAD) == 2
        assert fleet.requests("worker1", "create", JOB) == 2


async def test_what_was_removed_meanwhile_does_not_come_back() -> None:
    """A copy that only the new caches still show is not what is there."""
    async with a_running_job() as (fleet, manager):
        new, key = "multikueue:new", ObjectKey.of(await fleet.workload())
        fleet.workers["worker1"].faults.add(SilenceWatch(), on=Match(resource="workloads", user=new))
        fleet.workers["worker1"].faults.add(Delay(5), on=Match(verbs=("list",), resource="jobs", user=new))
        await fleet.rotate("worker1", "new")
        await anyio.sleep(2)
        await fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")
        await until(lambda: len(cluster(manager).caches) == 1)
        informers = worker(manager).usable
        assert informers is not None
        assert key in informers.workloads.informer
        assert informers.workloads.get(key) is None


async def test_a_token_that_is_refused_shows_and_the_job_waits_for_a_better_one() -> None:
    """The configuration that is wanted does not work: that must be seen, and the job is not given up for it."""
    async with a_running_job() as (fleet, manager):
        jobs = await fleet.running_on()
        await fleet.rotate("worker1", "wrong", valid=False)
        await stays_usable(manager, 1)
        await until(is_active(fleet, status="False"))
        assert knows_jobs(manager)
        assert worker(manager).usable is None
        await anyio.sleep(120)
        await fleet.rotate("worker1", "right")
        assert await until(is_active(fleet)) < 6
        assert await fleet.running_on() == jobs
        assert dig(await fleet.workload(), "status", "clusterName") == "worker1"


async def test_a_token_that_was_revoked_first_is_replaced_at_once() -> None:
    async with a_running_job() as (fleet, _):
        fleet.revoke("worker1", "worker1-token")
        await until(is_active(fleet, status="False"))
        await anyio.sleep(100)
        await fleet.rotate("worker1", "new")
        assert await until(is_active(fleet)) < 1


def known(manager: Manager, key: ObjectKey) -> Json | None:
    """The copy of a Workload, as far as we know."""
    informers = worker(manager).known
    return informers.workloads.get(key) if informers is not None else None


async def test_a_worker_that_was_built_anew_behind_its_address_gets_the_job_again() -> None:
    """It has new credentials and nothing else: what the old one had is not taken for what is there."""
    async with a_running_job(history=100) as (fleet, manager):
        key = ObjectKey.of(await fleet.workload())
        before = known(manager, key)
        fleet.revoke("worker1", "worker1-token")
        await until(is_active(fleet, status="False"))
        rebuilt = fleet.workers["worker1"] = server("worker1")
        await set_up_queues(DirectClient(rebuilt), {"cpu": "4"})
        assert rebuilt.tokens is not None
        rebuilt.tokens["new"] = "multikueue:new"
        await fleet.write_secret("worker1", kubeconfig("worker1", "new"))
        await until(lambda: worker(manager).connection.connected)
        assert known(manager, key) != before

        async def offered() -> bool:
            return len((await DirectClient(rebuilt).list(WORKLOAD)).items) == 1

        await until(offered, within=10)


async def test_a_kind_that_is_lost_stays_so_while_credentials_rotate() -> None:
    """Tokens that are renewed every ten minutes would let its jobs wait for ever."""
    async with a_running_job() as (fleet, manager):
        fleet.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("list", "watch"), resource="jobs"))
        fleet.workers["worker1"].faults.connections.drop()
        for number in range(3):
            await anyio.sleep(240)
            await fleet.rotate("worker1", f"token-{number}")
            await anyio.sleep(60)
        informers = worker(manager).known
        assert informers is not None
        kind = informers.kind(JOB.gvk)
        assert isinstance(kind, Unserved)
        assert kind.failing_for.total_seconds() > 850


async def test_a_secret_that_is_broken_for_a_while_costs_nothing_but_the_connection() -> None:
    async with a_running_job() as (fleet, manager):
        jobs = await fleet.running_on()
        await fleet.write_secret("worker1", {})
        await until(is_active(fleet, status="False"))
        assert (await fleet.active())["reason"] == "InsecureKubeConfig"
        assert not worker(manager).connection.connected
        assert knows_jobs(manager)
        await anyio.sleep(300)
        await fleet.write_secret("worker1", kubeconfig("worker1"))
        assert await until(is_active(fleet)) < 1
        assert await fleet.running_on() == jobs


async def test_a_call_under_way_ends_with_the_old_token() -> None:
    """The old client watches nothing any more, but is closed only once nothing can be under way."""
    async with a_running_job() as (fleet, manager):
        old = worker(manager).known
        await fleet.rotate("worker1", "new")
        await anyio.sleep(1)
        await fleet.submit("second")
        await anyio.sleep(LINGER - 2)
        new = worker(manager).known
        assert old is not None
        assert new is not None
        assert (len(old.workloads.informer), len(new.workloads.informer)) == (1, 2)
        assert fleet.closed == []
        await anyio.sleep(2)
        assert fleet.closed == ["worker1-token"]
        await stays_usable(manager, 1)
