"""A worker is cordoned and a job is moved away from it, with Kueues that evict and admit."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION, MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import Fleet, until
from tests.runtime.test_recording import hold, offer_to_both

pytestmark = pytest.mark.looptime


async def annotate(fleet: Fleet, worker: str, value: str | None) -> None:
    patch: Json = {"metadata": {"annotations": {CORDON_ANNOTATION: value}}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", worker), patch)


async def copies(fleet: Fleet) -> list[str]:
    """The workers with a Workload copy."""
    return [name for name, server in fleet.workers.items() if (await DirectClient(server).list(WORKLOAD)).items]


def message(workload: Json) -> str:
    return str(workload["status"]["admissionChecks"][0]["message"])


async def test_a_cordon_withdraws_what_waits_and_its_end_offers_it_again() -> None:
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues(), fleet.running():
        await offer_to_both(fleet)
        await annotate(fleet, "worker1", "new racks")

        async def only_the_other() -> bool:
            return await copies(fleet) == ["worker2"]

        await until(only_the_other)
        await until(lambda: told(fleet, "worker1: cordoned: new racks"))
        await hold(fleet, "worker1", on=False)
        await anyio.sleep(30)
        assert not await fleet.running_on()  # it has quota for it, and is not asked
        await annotate(fleet, "worker1", None)
        await until(fleet.running_on)
        assert [*await fleet.running_on()] == ["worker1"]


async def told(fleet: Fleet, words: str) -> bool:
    return words in message(await fleet.workload())


async def test_a_job_that_runs_there_stays_and_is_moved_when_that_is_asked() -> None:
    """From worker1 to worker2, and never on both."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues(), fleet.running():
        await offer_to_both(fleet)
        await hold(fleet, "worker1", on=False)
        await until(fleet.running_on)
        await hold(fleet, "worker2", on=False)
        await annotate(fleet, "worker1", "true")
        await anyio.sleep(60)
        assert [*await fleet.running_on()] == ["worker1"]

        seen: list[list[str]] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch_for_two, fleet, seen)
            patch: Json = {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: "worker1"}}}
            await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(await fleet.workload()), patch)

            async def moved() -> Any:
                return [*await fleet.running_on()] == ["worker2"]

            async def asked_no_more() -> bool:
                return MOVE_FROM_ANNOTATION not in annotations_of(await fleet.workload())

            await until(moved)
            await until(asked_no_more)
            tasks.cancel_scope.cancel()
        assert not [places for places in seen if len(places) > 1]
        assert cluster_name(await fleet.workload()) == "worker2"
        assert await copies(fleet) == ["worker2"]


async def watch_for_two(fleet: Fleet, seen: list[list[str]]) -> None:
    while True:
        seen.append([*await fleet.running_on()])
        await anyio.sleep(0.01)
