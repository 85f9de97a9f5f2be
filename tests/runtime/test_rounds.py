"""Dispatchers at work: rounds on the clock, across restarts and evictions, and names that somebody else writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.dispatcher import Dispatcher, External
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import Delay, DirectClient, Match
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.kueue import SmallKueue
from multikueue.testing.waiting import background
from tests.runtime.fleet import Fleet, now, until

pytestmark = pytest.mark.looptime

WORKERS = ("w1", "w2", "w3", "w4", "w5")
STEPS = Incremental(step=2, round=timedelta(seconds=300))


@attrs.define(eq=False)
class Waiting:
    """A fleet whose workers admit nothing, a job that waits, and when it was nominated where."""

    fleet: Fleet = attrs.field(factory=lambda: Fleet.of(*WORKERS))
    nominations: list[tuple[float, str]] = attrs.field(factory=list)
    begun: float | None = None

    @asynccontextmanager
    async def set_up(self) -> AsyncIterator[None]:
        """Run Kueue on the manager meanwhile, and submit a job."""
        await self.fleet.connect()
        self.fleet.manager.registry.cluster.listeners.append(self._changed)
        async with background() as tasks:
            await tasks.start(SmallKueue(DirectClient(self.fleet.manager, user="kueue"), clock=now, events=False).run)
            await self.fleet.submit()
            yield

    def manager(self, dispatcher: Dispatcher) -> Manager:
        """A daemon's worth of library."""
        return attrs.evolve(self.fleet.build(), dispatcher=dispatcher)

    def _changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural == "workloads" and new is not None:
            before, after = nominated(old or {}), nominated(new)
            if before != after:
                seconds = anyio.current_time()
                self.begun = seconds if self.begun is None else self.begun
                self.nominations.append((round(seconds - self.begun, 1), " ".join(after)))

    def copies(self) -> set[str]:
        """The workers that have a copy."""
        key = ("kueue.x-k8s.io", "workloads")
        return {
            name for name, worker in self.fleet.workers.items() if worker.registry.cluster.store.bucket(key).objects
        }

    async def name(self, *names: str) -> None:
        """Write nominations as a person would: by a merge patch, under a field manager of their own."""
        key = ObjectKey.of(await self.fleet.workload())
        patch = {"status": {"nominatedClusterNames": list(names)}}
        await self.fleet.admin.merge_patch(WORKLOAD, key, patch, subresource="status")


async def test_rounds_follow_each_other_after_exactly_their_length() -> None:
    """Each asks the next of the config; when all are asked nothing more is written."""
    waiting = Waiting()
    async with waiting.set_up(), waiting.fleet.running(waiting.manager(STEPS)):
        await anyio.sleep(2000)
        assert waiting.nominations == [(0.0, "w1 w2"), (300.0, "w1 w2 w3 w4"), (600.0, "w1 w2 w3 w4 w5")]
        assert waiting.copies() == set(WORKERS)
        version = (await waiting.fleet.workload())["metadata"]["resourceVersion"]
        await anyio.sleep(2000)
        assert (await waiting.fleet.workload())["metadata"]["resourceVersion"] == version


async def test_a_restart_neither_shortens_nor_prolongs_a_round() -> None:
    """Kueue's own asks the next at once. Here the round is on the object, and whoever answers first gains nothing."""
    waiting = Waiting()
    async with waiting.set_up():
        async with waiting.fleet.running(waiting.manager(STEPS)):
            await until(lambda: waiting.nominations)
            await anyio.sleep(120)
        await anyio.sleep(60)
        for name in ("w1", "w2"):
            waiting.fleet.workers[name].faults.add(Delay(5.0), on=Match(verbs=("list",), user="multikueue"))
        async with waiting.fleet.running(waiting.manager(STEPS)):
            await anyio.sleep(200)
            assert waiting.nominations == [(0.0, "w1 w2"), (300.0, "w1 w2 w3 w4")]
        await anyio.sleep(1000)
        async with waiting.fleet.running(waiting.manager(STEPS)):
            await anyio.sleep(60)
    assert [names for _, names in waiting.nominations[2:]] == ["w1 w2 w3 w4 w5"]


async def test_a_job_runs_though_its_names_are_another_field_managers() -> None:
    """Kueue cannot clear such names and fails for ever: `clusterName` and they exclude each other."""
    waiting = Waiting(Fleet.of("w1", "w2"))
    async with waiting.set_up(), waiting.fleet.running(waiting.manager(External())):
        await anyio.sleep(1)
        await waiting.name("w2")
        async with background() as tasks:
            await tasks.start(
                SmallKueue(DirectClient(waiting.fleet.workers["w2"], user="kueue"), clock=now, events=False).run
            )

            async def is_assigned() -> bool:
                return cluster_name(await waiting.fleet.workload()) == "w2"

            await until(is_assigned)
        assert nominated(await waiting.fleet.workload()) == ()


async def test_one_that_does_not_get_to_answer_holds_the_round_up_for_a_minute_at_most() -> None:
    """It is connected, and hangs when it is asked for its jobs: nothing about the Workload changes when it gives up."""
    waiting = Waiting(Fleet.of("w1", "w2"))
    hangs = Match(verbs=("list",), resource="jobs", user="multikueue")
    waiting.fleet.workers["w1"].faults.add(Delay(40.0), on=hangs)
    async with waiting.set_up():
        await anyio.sleep(5)
        began = anyio.current_time()
        async with waiting.fleet.running(waiting.manager(attrs.evolve(STEPS, step=1))):
            await until(lambda: waiting.nominations, within=61)
        assert waiting.nominations[0][1] == "w2"
        assert anyio.current_time() - began > 20
