"""The scored dispatcher at work: it asks one worker that has room, holds while none has, and wakes who fits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored.profile import PROFILE_ANNOTATION, Profile
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME
from tests.runtime.fleet import LONG, Fleet, until

pytestmark = pytest.mark.looptime

SHORT = RunnerOptions(minimum=60, maximum=60)


@asynccontextmanager
async def scored(fleet: Fleet, jobs: RunnerOptions = LONG, **profiles: Profile) -> AsyncIterator[None]:
    """Run a fleet whose manager uses the dispatcher; workers have room for two jobs each."""
    await fleet.connect(cpu=1, on_manager=100)
    manager = attrs.evolve(fleet.build(), dispatcher=Scored({"default": Profile(), **profiles}))
    async with fleet.kueues(jobs), fleet.running(manager):
        await anyio.sleep(5)
        yield


async def placed(fleet: Fleet) -> dict[str, str]:
    """Where each job is: `-` for those that are held."""
    found = (await fleet.admin.list(WORKLOAD)).items
    return {one["metadata"]["ownerReferences"][0]["name"]: cluster_name(one) or "-" for one in found}


async def quota(fleet: Fleet, worker: str, cpu: str) -> None:
    """Change what a worker has."""
    client, key = DirectClient(fleet.workers[worker]), ObjectKey("", CLUSTER_QUEUE_NAME)
    groups = (await client.get(CLUSTER_QUEUE, key))["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = cpu
    await client.merge_patch(CLUSTER_QUEUE, key, {"spec": {"resourceGroups": groups}})


async def test_only_the_worker_with_room_is_asked() -> None:
    fleet = Fleet.of("w1", "w2", "w3")
    async with scored(fleet):
        await quota(fleet, "w1", "0")
        await quota(fleet, "w3", "0")
        await anyio.sleep(5)
        await fleet.submit()
        await until(lambda: _is_placed(fleet, "job", "w2"))
        asked = {name: fleet.requests(name, "create", WORKLOAD) for name in fleet.workers}
        assert asked == {"w1": 0, "w2": 1, "w3": 0}


async def test_a_burst_fills_all_workers_and_the_rest_is_held_here_until_one_ends() -> None:
    fleet = Fleet.of("w1", "w2", "w3")
    async with scored(fleet, SHORT):
        for number in range(8):
            await fleet.submit(f"j{number}")
        await anyio.sleep(30)
        where = await placed(fleet)
        assert sorted(where.values()) == ["-", "-", "w1", "w1", "w2", "w2", "w3", "w3"]
        held = [one for one in (await fleet.admin.list(WORKLOAD)).items if cluster_name(one) is None]
        assert [nominated(one) for one in held] == [(), ()]
        assert all("held since" in one["status"]["admissionChecks"][0]["message"] for one in held)
        await anyio.sleep(60)
        where = await placed(fleet)
        assert "-" not in where.values()
        assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 8


async def test_who_waits_longest_gets_what_becomes_free_and_nobody_else_is_asked() -> None:
    fleet = Fleet.of("w1")
    async with scored(fleet):
        for name in ("a", "b", "c", "d"):
            await fleet.submit(name)
            await anyio.sleep(3)
        assert await placed(fleet) == {"a": "w1", "b": "w1", "c": "-", "d": "-"}
        await quota(fleet, "w1", "1500m")
        await until(lambda: _is_placed(fleet, "c", "w1"))
        await anyio.sleep(30)
        assert (await placed(fleet))["d"] == "-"


async def test_a_jobs_annotation_narrows_and_a_config_names_its_profile() -> None:
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        await fleet.submit("there")
        await fleet.admin.merge_patch(JOB, ObjectKey("default", "there"), {})
        config = {"metadata": {"annotations": {PROFILE_ANNOTATION: "unknown"}}}
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), config)
        await anyio.sleep(5)
        await fleet.submit("held")
        await anyio.sleep(30)
        assert (await placed(fleet))["held"] == "-"


def _is_placed(fleet: Fleet, job: str, worker: str) -> object:
    async def holds() -> bool:
        return (await placed(fleet)).get(job) == worker

    return holds()


def _annotated(job: Json, **annotations: str) -> Json:
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}
