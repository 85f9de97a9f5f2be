"""Informers of a whole API server in memory, with faults."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.kube import Informer, InformerStatus
from multikueue.sandbox.apiserver import (
    CutWatch,
    DirectClient,
    Faults,
    Match,
    Registry,
    SilenceWatch,
)
from multikueue.testing import running
from tests.sandbox.apiserver.objects import job

pytestmark = pytest.mark.looptime

WATCHES = Match(verbs=("watch",))


class World:
    """A server, its faults, and an informer of its Jobs."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.client = DirectClient(Registry(), faults=self.faults)
        self.states: list[InformerStatus] = []
        self.informer = Informer(self.client, JOB, on_status=self.states.append, idle=90)

    async def until(self, holds: Callable[[], bool], within: float) -> None:
        """Let time pass until something holds."""
        end = anyio.current_time() + within
        while not holds():
            assert anyio.current_time() < end, self.informer.status
            await anyio.sleep(0.01)

    def has(self, *names: str) -> Callable[[], bool]:
        """Whether the informer has exactly these."""
        return lambda: set(self.informer.keys()) == {ObjectKey("default", name) for name in names}


async def test_watches_that_are_cut_after_each_event_lose_none() -> None:
    world = World()
    world.faults.add(CutWatch(after=1), on=WATCHES)
    async with running(world.informer.run):
        await world.informer.wait_synced()
        for number in range(5):
            await world.client.create(JOB, job(f"a{number}"))
        await world.client.delete(JOB, ObjectKey("default", "a0"), propagation="Background")
        await world.until(world.has("a1", "a2", "a3", "a4"), within=120)
        assert world.informer.status.lists == 1


async def test_a_proxy_that_holds_back_every_watch_delays_the_informer_and_does_not_stop_it() -> None:
    """Lists pass, and each watch is accepted and stays silent."""
    world = World()
    world.faults.add(SilenceWatch(after=0), on=WATCHES)
    async with running(world.informer.run):
        await world.informer.wait_synced()
        for names in ("a", "ab", "abc"):
            await world.client.create(JOB, job(names[-1]))
            await world.until(world.has(*names), within=95)
        assert world.informer.status.failures == 0


async def test_a_quiet_watch_is_kept_by_its_bookmarks() -> None:
    world = World()
    async with running(world.informer.run):
        await world.informer.wait_synced()
        version = world.informer.resource_version
        await world.client.create(JOB, job("a"))
        await anyio.sleep(600)
        assert world.states == [InformerStatus(synced=True, lists=1)]
        assert int(world.informer.resource_version) > int(version)
