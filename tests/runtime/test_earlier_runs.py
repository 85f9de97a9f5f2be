"""A run that ends keeps its job from running anywhere, until the worker's API server has nothing of it any more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, uid
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient, WatchEvent
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.kueue import evict
from tests.runtime.fleet import Fleet, now, until

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
    """The job copies on all workers, by UID, and what was made there while another one was."""

    there: set[str] = attrs.field(factory=set)
    made: list[str] = attrs.field(factory=list)
    """The workers on which job copies were made, in order."""
    beside: list[str] = attrs.field(factory=list)
    """The kinds of what was made while a job copy was ending."""
    ending: set[str] = attrs.field(factory=set)

    @classmethod
    def on(cls, fleet: Fleet) -> Copies:
        """Look at these workers from now on."""
        found = cls()
        for name, worker in fleet.workers.items():
            worker.registry.cluster.listeners.append(partial(found._changed, name))
        return found

    def _changed(self, worker: str, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural not in ("jobs", "workloads"):
            return
        if old is None and self.ending:
            self.beside.append(row.plural)
        if row.plural != "jobs":
            return
        if old is None:
            self.made.append(worker)
        one = uid(new or old or {})
        (self.ending.add if new is not None and is_terminating(new) else self.ending.discard)(one)


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
