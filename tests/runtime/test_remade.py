"""A worker that changes or removes what is made there: it is not made again as fast as the servers answer."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import attrs
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import clone
from multikueue.core.model.workloads import check, cluster_name
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient, Subresource
from multikueue.sandbox.apiserver import Delay, DirectClient, Match
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CHECK
from tests.runtime.fleet import Fleet, now, until
from tests.runtime.test_telling import Counts

pytestmark = pytest.mark.looptime


def _unmark(obj: Json) -> None:
    del obj["metadata"]["annotations"][ATTEMPT_ANNOTATION]


def _pause(obj: Json) -> None:
    obj["spec"]["parallelism"] = 0


@asynccontextmanager
async def changing(
    kind: Resource, change: Callable[[Json], None], *names: str, verb: str = "create"
) -> AsyncIterator[Fleet]:
    """A fleet whose first worker has a webhook that changes what is sent there; a job is submitted."""

    def changed(resource: Resource, sent: Json, sent_by: str) -> Json:
        answer: Json = clone(sent)
        if (resource, sent_by) == (kind, verb):
            change(answer)
        return answer

    class Changing(DirectClient):
        async def create(self, resource: Resource, obj: Json) -> Json:
            return await super().create(resource, changed(resource, obj, "create"))

        async def merge_patch(
            self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
        ) -> Json:
            sent = patch if subresource else changed(resource, patch, "patch")
            return await super().merge_patch(resource, key, sent, subresource=subresource)

    @asynccontextmanager
    async def connect(name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
        made = Changing if name == names[0] else DirectClient
        yield made(fleet.workers[name], user="multikueue")

    fleet = await Fleet.connected(*names)
    for server in (fleet.manager, *fleet.workers.values()):
        server.faults.add(Delay(0.01), on=Match(verbs=("create", "delete", "patch", "update")))
    async with fleet.kueues(), fleet.dispatching(fleet.build(connect=connect)):
        await fleet.submit()
        yield fleet


async def test_a_change_that_is_undone_there_is_sent_ever_more_rarely() -> None:
    """A webhook sets another priority, and notes when it did: each of our patches leads to the next."""
    numbers = itertools.count()

    def undo(patch: Json) -> None:
        patch["metadata"].setdefault("annotations", {})["number"] = str(next(numbers))
        patch.setdefault("spec", {})["priority"] = 7

    async with changing(WORKLOAD, undo, "worker1", verb="patch") as fleet:
        await until(fleet.running_on)
        key = ObjectKey.of(await fleet.workload())
        before = fleet.requests("worker1", "patch", WORKLOAD)
        await fleet.admin.merge_patch(WORKLOAD, key, {"spec": {"priority": 3}})
        await anyio.sleep(600)
        assert fleet.requests("worker1", "patch", WORKLOAD) - before < 40
        assert await fleet.running_on()


CHANGES = [(WORKLOAD, _unmark), (JOB, _pause)]
"""One of each; what is a difference is decided by the core, see `core/model/test_drift.py`."""


@pytest.mark.gate
@pytest.mark.parametrize(("kind", "change"), CHANGES)
async def test_what_is_changed_there_is_made_ever_more_rarely(kind: Resource, change: Callable[[Json], None]) -> None:
    async with changing(kind, change, "worker1") as fleet:
        await anyio.sleep(600)
        assert fleet.requests("worker1", "create", WORKLOAD) < 20
        assert fleet.requests("worker1", "delete", WORKLOAD) < 40, "one that meets a change of its copy is sent again"
        message = str((check(await fleet.workload(), CHECK) or {}).get("message"))
        assert "copies there did not last: something there changes, evicts or removes them" in message


@pytest.mark.parametrize(("kind", "change"), CHANGES)
async def test_another_worker_gets_the_job(kind: Resource, change: Callable[[Json], None]) -> None:
    async with changing(kind, change, "worker1", "worker2") as fleet:
        await until(lambda: _runs_on(fleet, "worker2"))


async def _runs_on(fleet: Fleet, worker: str) -> bool:
    return worker in await fleet.running_on() and cluster_name(await fleet.workload()) == worker


@pytest.mark.gate
async def test_what_somebody_there_removes_is_made_ever_more_rarely() -> None:
    async with changing(WORKLOAD, lambda _: None, "worker1") as fleet:
        there = DirectClient(fleet.workers["worker1"])
        for _ in range(1200):
            for workload in (await there.list(WORKLOAD)).items:
                await there.merge_patch(WORKLOAD, ObjectKey.of(workload), {"metadata": {"finalizers": None}})
                await there.delete(WORKLOAD, ObjectKey.of(workload))
            await anyio.sleep(0.1)
        assert fleet.requests("worker1", "create", WORKLOAD) < 15


async def test_a_worker_that_evicts_whatever_it_admits_does_not_keep_the_manager_busy() -> None:
    """Each time the manager evicted the Workload, gave it quota again, and had it offered there."""
    async with changing(WORKLOAD, lambda _: None, "worker1") as fleet:
        await _evict_there(fleet, 60.0)
        assert fleet.requests("worker1", "create", WORKLOAD) < 15


async def test_such_a_worker_leaves_the_job_to_another() -> None:
    async with changing(WORKLOAD, lambda _: None, "worker1", "worker2") as fleet:
        await _evict_there(fleet, 10.0)
        assert await _runs_on(fleet, "worker2")


async def _evict_there(fleet: Fleet, seconds: float) -> None:
    """Evict on worker1 whatever is admitted, for so long."""
    there, end = DirectClient(fleet.workers["worker1"]), anyio.current_time() + seconds
    while anyio.current_time() < end:
        for workload in (await there.list(WORKLOAD)).items:
            if is_true(workload, "Admitted") and not is_true(workload, "Evicted"):
                with suppress(NotFound):
                    await evict(there, ObjectKey.of(workload), clock=now)
        await anyio.sleep(0.01)


async def test_a_status_that_changes_all_the_time_there_is_written_here_once_a_second() -> None:
    """Each change was a write on the manager: whoever may change jobs on a worker decided how many."""
    hook, fleet = Counts(), await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching(attrs.evolve(fleet.build(), hook=hook)):
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(5)
        before, there = _syncs(fleet), DirectClient(fleet.workers["worker1"])
        for number in range(400):
            status = {"status": {"failed": number}}
            await there.merge_patch(JOB, ObjectKey("default", "job"), status, subresource="status")
            await anyio.sleep(0.05)
        assert 17 <= _syncs(fleet) - before <= 33
        assert 0.9 < max(hook.lags[-20:]) <= 1.1, "from the first change that has not been written"
        await anyio.sleep(2)
        assert (await fleet.admin.get(JOB, ObjectKey("default", "job")))["status"]["failed"] == 399


def _syncs(fleet: Fleet) -> int:
    return fleet.manager.requests["multikueue", "patch", str(JOB)]


@pytest.mark.gate
async def test_a_priority_that_changes_all_the_time_there_is_given_back_once_a_second() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching():
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(5)
        key, there = ObjectKey.of(await fleet.workload()), DirectClient(fleet.workers["worker1"])
        before = fleet.requests("worker1", "patch", WORKLOAD)
        for number in range(400):
            await there.merge_patch(WORKLOAD, key, {"spec": {"priority": number + 1}})
            await anyio.sleep(0.05)
        assert 17 <= fleet.requests("worker1", "patch", WORKLOAD) - before <= 60
        await anyio.sleep(2)
        assert (await there.get(WORKLOAD, key))["spec"]["priority"] == 0
        assert await fleet.running_on()
