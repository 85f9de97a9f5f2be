"""A run that ends keeps its job from running anywhere, until the worker's API server has nothing of it any more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, Literal

import anyio
import attrs
import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.eviction import ADMISSION_CHECK
from multikueue.core.model.kinds import EVENT, JOB, POD
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, uid
from multikueue.core.model.workloads import evictions
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient, WatchEvent
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from tests.core.door import NAME_TAKEN
from tests.runtime.fleet import LONG, Fleet, now, until

pytestmark = pytest.mark.looptime

OF_JOB: Final = ObjectKey("default", "job")
LAG: Final = 20.0
"""Seconds by which a worker's watches are late."""
GRACE: Final = 15.0
"""Seconds for which a run ends: nothing of that is seen in time."""


class LateClient(DirectClient):
    """The changes that its watches show are `LAG` seconds old."""

    async def watch(self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Any) -> None:
        waiting, timers = deque[WatchEvent](), list[asyncio.TimerHandle]()

        def late(event: WatchEvent) -> None:
            waiting.append(event)
            timers.append(asyncio.get_running_loop().call_later(LAG, lambda: on_event(waiting.popleft())))

        try:
            await super().watch(resource, late, **options)
        finally:
            for timer in timers:
                timer.cancel()


@attrs.define(eq=False)
class Copies:
    """The job copies that were made on all workers, and what else was while one of them was ending."""

    made: list[str] = attrs.field(factory=list)
    """The workers on which job copies were made, in order."""
    beside: list[str] = attrs.field(factory=list)
    """The kinds of what was made while a job copy was ending."""
    ending: set[str] = attrs.field(factory=set)
    gone: list[float] = attrs.field(factory=list)
    """When job copies were gone, on the loop's clock."""

    @classmethod
    def on(cls, fleet: Fleet) -> Copies:
        """Look at these workers from now on."""
        watched = cls()
        for name, worker in fleet.workers.items():
            worker.registry.cluster.listeners.append(partial(watched._changed, name))
        return watched

    def _changed(self, worker: str, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural not in ("jobs", "workloads"):
            return
        if old is None and self.ending:
            self.beside.append(row.plural)
        if row.plural != "jobs":
            return
        if old is None:
            self.made.append(worker)
        if new is None:
            self.gone.append(anyio.current_time())
        object_uid = uid(new or old or {})
        (self.ending.add if new is not None and is_terminating(new) else self.ending.discard)(object_uid)


async def slow_to_end(fleet: Fleet, worker: str, *, on: bool = True) -> None:
    """Have a finalizer hold a worker's job, or not any more."""
    patch = {"metadata": {"finalizers": ["example.com/slow"] if on else None}}
    await DirectClient(fleet.workers[worker]).merge_patch(JOB, OF_JOB, patch)


async def test_nobody_is_offered_a_job_that_ends_though_no_watch_shows_it_in_time() -> None:
    """An accepted DELETE is no removal: its answer tells that the job has still to end, and a watch does much later."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)

    def connect(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            yield LateClient(fleet.workers[name], user="multikueue")

        return opened()

    async with fleet.kueues(), fleet.dispatching(fleet.build(connect=connect)):
        await fleet.submit()
        await until(fleet.running_on)
        await until(fleet.ready)
        await anyio.sleep(2 * LAG)
        (first,) = seen.made
        await slow_to_end(fleet, first)
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await until(lambda: seen.ending)
        await anyio.sleep(GRACE)
        await slow_to_end(fleet, first, on=False)
        assert not seen.ending
        assert seen.beside == []
        await until(fleet.running_on, within=4 * LAG)
        assert len(seen.made) == 2
        assert seen.beside == []


async def _placed(fleet: Fleet, seen: Copies) -> str:
    """Submit a job and wait until it runs; return its worker."""
    await fleet.submit()
    await until(fleet.running_on)
    await until(fleet.ready)
    (worker,) = seen.made
    return worker


async def _delete_there(fleet: Fleet, worker: str, propagation: Literal["Background", "Foreground"]) -> None:
    """Somebody deletes a worker's job."""
    await DirectClient(fleet.workers[worker]).delete(JOB, OF_JOB, propagation=propagation)


async def _runs_again_in_time(seen: Copies, within: float = 20) -> None:
    """The next run begins after the default grace period of pods, and soon after that."""
    await anyio.sleep(30)
    assert len(seen.made) == 1
    await until(lambda: len(seen.made) == 2, within=within)


async def _submit_again(fleet: Fleet, seen: Copies) -> str:
    """A job runs, is deleted while a finalizer holds its copy, and is submitted once more; return its worker."""
    first = await _placed(fleet, seen)
    await slow_to_end(fleet, first)
    await fleet.admin.delete(JOB, OF_JOB, propagation="Background")
    await until(lambda: seen.ending)
    await fleet.submit()
    return first


async def test_a_job_of_the_same_name_runs_elsewhere_while_the_earlier_one_is_ending() -> None:
    """It is another run, and its name is taken on that worker only."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(), fleet.dispatching():
        first = await _submit_again(fleet, seen)
        await until(fleet.running_on)
        (second,) = await fleet.running_on()
        assert second != first
        assert seen.ending


async def test_a_job_of_the_same_name_runs_where_the_earlier_one_was_once_that_is_gone() -> None:
    """There is no other worker: it waits, and is told for what."""
    fleet = await Fleet.connected("worker1")
    seen = Copies.on(fleet)
    async with fleet.kueues(), fleet.dispatching():
        await _submit_again(fleet, seen)
        await anyio.sleep(2 * GRACE)
        assert len(seen.made) == 1
        (check,) = (await fleet.workload())["status"]["admissionChecks"]
        assert NAME_TAKEN.why in check["message"]
        await slow_to_end(fleet, "worker1", on=False)
        await until(fleet.running_on, within=5)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_copy_that_somebody_deletes_there_runs_again_after_its_pods_have_ended(
    propagation: Literal["Background", "Foreground"],
) -> None:
    """In the background the copy is gone at once, and its pods have their grace period: 30 s, as they do not say."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(LONG), fleet.dispatching():
        first = await _placed(fleet, seen)
        await anyio.sleep(5)
        await _delete_there(fleet, first, propagation)
        await until(lambda: seen.gone)
        await anyio.sleep(30)
        assert len(seen.made) == (1 if propagation == "Background" else 2)
        await until(lambda: len(seen.made) == 2, within=20)


async def test_a_copy_that_went_while_nobody_looked_may_have_left_pods() -> None:
    """A daemon that starts does not know when: it waits from its start."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(LONG):
        async with fleet.dispatching():
            first = await _placed(fleet, seen)
        await _delete_there(fleet, first, "Background")
        async with fleet.dispatching():
            await _runs_again_in_time(seen)


async def test_so_may_one_that_went_before_its_worker_could_be_reached() -> None:
    """It counted from the start, and the next run began while the pods had 8 s to go."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(LONG):
        async with fleet.dispatching():
            first = await _placed(fleet, seen)
        fleet.workers[first].faults.add(Refuse(503), on=Match(user="multikueue"))
        async with fleet.dispatching():
            await anyio.sleep(120)
            await _delete_there(fleet, first, "Background")
            fleet.workers[first].faults.clear()
            await _runs_again_in_time(seen, within=60)


async def test_so_may_one_that_went_between_two_kubeconfigs_of_its_worker() -> None:
    """Its token had ended; the informers of the next kubeconfig had never seen it."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(LONG), fleet.dispatching():
        first = await _placed(fleet, seen)
        fleet.revoke(first, f"{first}-token")
        await anyio.sleep(3)
        await _delete_there(fleet, first, "Background")
        await fleet.rotate(first, "another")
        await _runs_again_in_time(seen)


async def test_what_was_sent_back_for_a_leftover_is_later_sent_back_at_once() -> None:
    """Kueue keeps the time that was named then, and would wait as long for each later one, as v0.19.2 does."""
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)

    async def sent_back() -> bool:
        return any(
            entry["reason"] == ADMISSION_CHECK
            for entry in (await fleet.workload())["status"].get("schedulingStats", {}).get("evictions", ())
        )

    async with fleet.kueues(LONG), fleet.dispatching():
        first = await _placed(fleet, seen)
        await slow_to_end(fleet, first)
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await until(sent_back, within=2000)
        await slow_to_end(fleet, first, on=False)
        await until(fleet.running_on, within=2000)
        await anyio.sleep(5)
        (place,) = await fleet.running_on()
        before = evictions(workload := await fleet.workload())
        await evict(DirectClient(fleet.workers[place]), ObjectKey.of(workload), clock=now)

        async def evicted() -> bool:
            return evictions(await fleet.workload()) > before

        await until(evicted, within=5)


OF_PODS: Final = "batch.kubernetes.io/job-name"
TRAP: Final = RunnerOptions(minimum=1e6, maximum=1e6, trap=25.0, blocking=False)
"""The jobs' pods take 25 s to end, and their controller does not let them keep their job."""


def _with_pods_by_label(fleet: Fleet) -> Manager:
    rows = [attrs.evolve(row, pods_label=OF_PODS) if row.resource == JOB else row for row in BUILTIN]
    return attrs.evolve(fleet.build(), adapters=AdapterRegistry(rows))


async def _evicted(fleet: Fleet, seen: Copies) -> str:
    """A job has run, and is evicted until its job copy is gone; return its worker."""
    first = await _placed(fleet, seen)
    await anyio.sleep(1)
    await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
    await until(lambda: seen.gone)
    return first


async def test_a_kind_whose_job_does_not_wait_for_its_pods_runs_again_after_they_have_ended() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    async with fleet.kueues(TRAP), fleet.dispatching(_with_pods_by_label(fleet)):
        first = await _evicted(fleet, seen)

        async def ended() -> bool:
            return not (await DirectClient(fleet.workers[first]).list(POD)).items

        assert not await ended()
        while not await ended():
            assert len(seen.made) == 1
            await anyio.sleep(0.5)
        assert anyio.current_time() - seen.gone[0] > 10
        await until(fleet.running_on, within=60)  # looks for pods are further apart each time


async def test_where_pods_may_not_be_listed_that_is_told_and_they_are_not_waited_for() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    seen = Copies.on(fleet)
    for worker in fleet.workers.values():
        worker.faults.add(Refuse(403), on=Match(verbs=("list",), resource="pods", user="multikueue"))
    async with fleet.kueues(TRAP), fleet.dispatching(_with_pods_by_label(fleet)):
        first = await _evicted(fleet, seen)
        await until(lambda: len(seen.made) == 2, within=10)
        assert (await DirectClient(fleet.workers[first]).list(POD)).items
        await anyio.sleep(5)
        notes = [event["note"] for event in (await fleet.admin.list(EVENT)).items]
        assert any("does not show whether pods of an earlier attempt still end" in note for note in notes)
