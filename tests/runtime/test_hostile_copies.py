"""Users of a worker put a job and a Workload of somebody else's names there, and our label on: they win nothing.

Their Kueue has admitted both, and the job runs, or has ended. They know whatever can be read on their worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import TypeAlias

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import cluster_name, is_admitted, is_finished, nominated
from multikueue.errors import NotFound
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.runtime.fleet import CHECK, Fleet, is_active, until
from tests.runtime.test_recording import hold
from tests.runtime.test_taking_over import job_as_built_in, workload_as_built_in
from tests.runtime.test_unregistered_kinds import ENDED, JOB_KEY

pytestmark = pytest.mark.looptime


@attrs.define(eq=False)
class Told:
    """What was ever written on the manager."""

    clusters: set[str] = attrs.field(factory=set)
    """Every worker that was recorded."""
    statuses: list[Json] = attrs.field(factory=list)
    """Every status of the job."""

    def changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """To be told of every change on the manager."""
        del old
        if row.plural == "workloads" and new is not None and (name := cluster_name(new)) is not None:
            self.clusters.add(name)
        if row.plural == "jobs" and new is not None and new.get("status"):
            self.statuses.append(new["status"])


@attrs.define(eq=False)
class Attack:
    """A job that waits for worker1, whose queue is held, and somebody on worker2."""

    fleet: Fleet
    told: Told = attrs.field(factory=Told)
    copy: str = ""
    """The UID of the Workload copy on worker1."""

    @property
    def theirs(self) -> DirectClient:
        """What somebody on worker2 uses."""
        return DirectClient(self.fleet.workers["worker2"])

    async def copied(self) -> Json | None:
        """Our Workload copy on worker1."""
        found = (await DirectClient(self.fleet.workers["worker1"]).list(WORKLOAD)).items
        return next(iter(found), None)

    async def strike(self, mark: str = "", *, ended: bool = False) -> None:
        """Job and Workload are made, admitted there, and get our label; with `ended` the job has ended by then."""
        workload = await self.fleet.workload()
        key = ObjectKey.of(workload)
        await self.theirs.create(WORKLOAD, without_label(workload_as_built_in(workload)))

        async def admitted() -> bool:
            return is_admitted(await self.theirs.get(WORKLOAD, key))

        await until(admitted)
        job = job_as_built_in(await self.fleet.admin.get(JOB, JOB_KEY), key.name, form="label")
        await self.theirs.create(JOB, without_label(job))

        async def runs() -> bool:
            return "worker2" in await self.fleet.running_on()

        await until(runs)
        if ended:
            await self.theirs.merge_patch(JOB, JOB_KEY, {"status": ENDED}, subresource="status")
            await anyio.sleep(1)
        ours: Json = {"metadata": {"labels": {ORIGIN_LABEL: "multikueue"}}}
        if mark:
            ours["metadata"]["annotations"] = {ATTEMPT_ANNOTATION: mark}
        await self.theirs.merge_patch(JOB, JOB_KEY, ours)
        await self.theirs.merge_patch(WORKLOAD, key, ours)

    async def repelled(self) -> bool:
        """Whether what they have made is gone."""
        for resource, key in ((JOB, JOB_KEY), (WORKLOAD, ObjectKey.of(await self.fleet.workload()))):
            try:
                await self.theirs.get(resource, key)
            except NotFound:
                continue
            return False
        return True

    async def fails(self) -> None:
        """Nothing was recorded, nothing of theirs was told, and our copy is the same; then worker1 gets the job."""
        await until(self.repelled)
        await anyio.sleep(120)
        assert self.told.clusters == set()
        assert not [status for status in self.told.statuses if status.get("active") or status.get("succeeded")]
        copy = await self.copied()
        assert copy is not None
        assert uid(copy) == self.copy
        await hold(self.fleet, "worker1", on=False)

        async def runs() -> bool:
            return [*await self.fleet.running_on()] == ["worker1"]

        await until(runs)
        await anyio.sleep(30)
        assert self.told.clusters == {"worker1"}
        assert [*await self.fleet.running_on()] == ["worker1"]
        assert (await self.fleet.admin.get(JOB, JOB_KEY))["status"]["active"] == 1


def without_label(obj: Json) -> Json:
    """Without our origin label."""
    del obj["metadata"]["labels"][ORIGIN_LABEL]
    return obj


@asynccontextmanager
async def offered(configured: list[str], build: Callable[[Fleet], Manager]) -> AsyncIterator[Attack]:
    """Both workers are connected; the job is offered to worker1 only, which does not admit it."""
    fleet = Fleet.of("worker1", "worker2")
    attack = Attack(fleet)
    async with fleet.kueues():
        await fleet.connect()
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), {"spec": {"clusters": configured}})
        await hold(fleet, "worker1", on=True)
        fleet.manager.registry.cluster.listeners.append(attack.told.changed)
        async with fleet.running(build(fleet)):
            for name in fleet.workers:
                await until(is_active(fleet, name))
            await fleet.submit()

            async def copied() -> bool:
                copy = await attack.copied()
                attack.copy = uid(copy) if copy is not None else ""
                return bool(attack.copy)

            await until(copied)
            assert nominated(await fleet.workload()) == ("worker1",)
            yield attack


def outside() -> AbstractAsyncContextManager[Attack]:
    """worker2 is connected, and not in the Workload's config."""
    return offered(["worker1"], lambda fleet: fleet.build())


def not_nominated() -> AbstractAsyncContextManager[Attack]:
    """worker2 is in the config, and its round has not come."""
    rounds = Incremental(step=1, round=timedelta(hours=2))
    return offered(["worker1", "worker2"], lambda fleet: attrs.evolve(fleet.build(), dispatcher=rounds))


Place: TypeAlias = Callable[[], AbstractAsyncContextManager[Attack]]
PLACES = pytest.mark.parametrize("place", [outside, not_nominated], ids=["outside the config", "not nominated"])


@PLACES
@pytest.mark.parametrize("ended", [False, True], ids=["runs", "has ended"])
async def test_what_they_make_is_not_taken_for_ours(place: Place, ended: bool) -> None:
    async with place() as attack:
        await attack.strike(ended=ended)
        await attack.fails()


@PLACES
async def test_the_mark_of_another_worker_is_worth_nothing(
    place: Place,
) -> None:
    """They have read it on worker1, where they may read as well."""
    async with place() as attack:
        await attack.strike(mark_of(await attack.copied() or {}))
        await attack.fails()


@PLACES
async def test_once_it_is_recorded_only_that_worker_counts(
    place: Place,
) -> None:
    """It runs on worker1; what has ended elsewhere is not its end."""
    async with place() as attack:
        await hold(attack.fleet, "worker1", on=False)
        await until(attack.fleet.running_on)
        await anyio.sleep(5)
        before = await attack.fleet.running_on()
        await attack.strike(ended=True)
        await until(attack.repelled)
        await anyio.sleep(60)
        assert attack.told.clusters == {"worker1"}
        assert await attack.fleet.running_on() == before
        assert not is_finished(await attack.fleet.workload())
        assert not [status for status in attack.told.statuses if status.get("succeeded")]
