"""The scored dispatcher at work: it asks one worker that has room, holds while none has, and wakes who fits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored.job_annotations import NAMES, TAINTS, TOGETHER, TOLERATIONS
from multikueue.core.dispatchers.scored.profile import PROFILE_ANNOTATION, Profile
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.names import ClusterName, ObjectKey, Resource
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Delay, Match, Refuse, Reset
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, local_queue
from tests.runtime.fleet import LONG, Fleet, until
from tests.runtime.test_telling import Counts

pytestmark = pytest.mark.looptime

SHORT = RunnerOptions(minimum=60, maximum=60)


@asynccontextmanager
async def scored(
    fleet: Fleet, jobs: RunnerOptions = LONG, *, start_with: Sequence[str] = (), **profiles: Profile
) -> AsyncIterator[Manager]:
    """Run a fleet whose manager uses the dispatcher; workers have room for two jobs each. Jobs to start with are there
    before it."""
    await fleet.connect(cpu=1, on_manager=100)
    manager = attrs.evolve(fleet.build(), dispatcher=Scored({"default": Profile(), **profiles}))
    async with fleet.kueues(jobs):
        for name in start_with:
            await fleet.submit(name)
        async with fleet.running(manager):
            await anyio.sleep(5)
            yield manager


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


async def test_what_is_ours_on_a_worker_is_no_room_of_others() -> None:
    """What waits there is not taken for somebody else's, and who runs there may be preempted for another."""
    fleet = Fleet.of("w1")
    async with scored(fleet) as manager:
        for name in ("a", "b", "c"):
            await fleet.submit(name)
            await anyio.sleep(10)
        assert manager._rooms is not None
        facts = manager._rooms._facts[ClusterName("w1")][CLUSTER_QUEUE_NAME]
        assert facts.running
        assert facts.others_pending == 0


async def test_a_jobs_annotation_narrows() -> None:
    fleet = Fleet.of("w1", "w2", "w3")
    async with scored(fleet):
        for worker in fleet.workers:
            name = f"to-{worker}"
            await fleet.submit(name)
            await annotate(fleet, JOB, ObjectKey("default", name), NAMES, worker)
        await anyio.sleep(30)
        assert await placed(fleet) == {f"to-{worker}": worker for worker in fleet.workers}


async def test_while_a_config_names_a_profile_that_does_not_exist_its_check_is_not_active() -> None:
    fleet = Fleet.of("w1")
    async with scored(fleet):
        config = ObjectKey("", CHECK)
        await annotate(fleet, MULTIKUEUE_CONFIG, config, PROFILE_ANNOTATION, "unknown")
        await anyio.sleep(5)
        assert await fleet.check() == (
            "False",
            "BadConfig",
            'Cannot load the AdmissionChecks parameters: there is no dispatch profile "unknown": '
            'MultiKueueConfig "multikueue" names it',
        )
        await fleet.submit("held")
        await anyio.sleep(30)
        assert await placed(fleet) == {"held": "-"}
        await annotate(fleet, MULTIKUEUE_CONFIG, config, PROFILE_ANNOTATION, None)
        await until(lambda: _is_placed(fleet, "held", "w1"))


async def stop_policy(fleet: Fleet, policy: str) -> None:
    """Let the first worker's queue admit nothing, or go on."""
    patch = {"spec": {"stopPolicy": policy}}
    await DirectClient(fleet.workers["w1"]).merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)


async def no_local_queue(fleet: Fleet) -> None:
    """Take the first worker's LocalQueue away."""
    await DirectClient(fleet.workers["w1"]).delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))


async def a_local_queue(fleet: Fleet) -> None:
    """Make it again."""
    await DirectClient(fleet.workers["w1"]).create(LOCAL_QUEUE, local_queue())


async def annotate(fleet: Fleet, resource: Resource, key: ObjectKey, name: str, value: str | None) -> None:
    """Set or remove an annotation on the manager."""
    await fleet.admin.merge_patch(resource, key, {"metadata": {"annotations": {name: value}}})


async def taint(fleet: Fleet, value: str | None) -> None:
    """Taint the first worker, or take the taint off."""
    await annotate(fleet, MULTIKUEUE_CLUSTER, ObjectKey("", "w1"), TAINTS, value)


OBSTACLES: dict[str, tuple[Callable[[Fleet], Awaitable[object]], Callable[[Fleet], Awaitable[object]]]] = {
    "a quota that is too small": (lambda fleet: quota(fleet, "w1", "0"), lambda fleet: quota(fleet, "w1", "1")),
    "no LocalQueue": (no_local_queue, a_local_queue),
    "a stopped queue": (lambda fleet: stop_policy(fleet, "Hold"), lambda fleet: stop_policy(fleet, "None")),
    "a taint": (lambda fleet: taint(fleet, "spot=true:NoDispatch"), lambda fleet: taint(fleet, None)),
    "a taint that the job tolerates now": (
        lambda fleet: taint(fleet, "spot=true:NoDispatch"),
        lambda fleet: annotate(fleet, JOB, ObjectKey("default", "job"), TOLERATIONS, "spot=true"),
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
async def test_what_was_in_the_way_and_is_no_more_is_noticed(name: str) -> None:
    fleet = Fleet.of("w1")
    put, take_away = OBSTACLES[name]
    async with scored(fleet):
        await put(fleet)
        await anyio.sleep(5)
        await fleet.submit()
        await anyio.sleep(20)
        assert await placed(fleet) == {"job": "-"}
        await take_away(fleet)
        await until(lambda: _is_placed(fleet, "job", "w1"))


async def test_a_job_that_waits_for_another_follows_it() -> None:
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        for worker in fleet.workers:
            await quota(fleet, worker, "0")
        for name in ("train", "beside"):
            await fleet.submit(name)
        await annotate(fleet, JOB, ObjectKey("default", "beside"), TOGETHER, "job/train")
        await anyio.sleep(20)
        assert await placed(fleet) == {"train": "-", "beside": "-"}
        for worker in fleet.workers:
            await quota(fleet, worker, "1")
        await anyio.sleep(20)
        where = await placed(fleet)
        assert where["train"] in fleet.workers
        assert where["beside"] == where["train"]


async def test_nobody_is_asked_before_the_figures_are_read() -> None:
    """After a restart all that is held would be raced, everywhere at once."""
    fleet = Fleet.of("w1", "w2", "w3")
    for worker in fleet.workers.values():
        worker.faults.add(Delay(5.0), on=Match(verbs=("list",), resource="clusterqueues", user="multikueue"))
    async with scored(fleet, start_with=("a", "b")):
        await anyio.sleep(30)
        assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 2
        assert "-" not in (await placed(fleet)).values()


async def test_what_is_told_of_a_hold_is_what_the_figures_say() -> None:
    fleet = Fleet.of("w1")
    fleet.workers["w1"].faults.add(Delay(5.0), on=Match(verbs=("list",), resource="clusterqueues", user="multikueue"))
    async with scored(fleet, start_with=("a", "b", "c")):
        await anyio.sleep(30)
        (held,) = (one for one in (await fleet.admin.list(WORKLOAD)).items if cluster_name(one) is None)
        assert "w1: its room goes to jobs that are ahead" in held["status"]["admissionChecks"][0]["message"]


async def test_an_offer_that_could_not_be_written_stays_where_its_copy_is() -> None:
    """Another one becomes better meanwhile: what the first has admitted would be in vain."""
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        conflict = Match(verbs=("patch",), resource="workloads", subresource="status", user="multikueue")
        refused = fleet.manager.faults.add(Refuse(409), on=conflict)
        await fleet.submit()
        await anyio.sleep(2)
        (first,) = (name for name in fleet.workers if fleet.requests(name, "create", WORKLOAD))
        await quota(fleet, "w1" if first == "w2" else "w2", "9")
        await anyio.sleep(5)
        fleet.manager.faults.remove(refused)
        await anyio.sleep(30)
        assert "-" not in (await placed(fleet)).values()
        assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 1


async def test_figures_that_cannot_be_read_any_more_are_not_waited_for() -> None:
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        for worker in fleet.workers:
            await quota(fleet, worker, "0")
        await anyio.sleep(5)
        await fleet.submit()
        await anyio.sleep(20)
        for server in fleet.workers.values():
            server.faults.add(Reset(), on=Match(resource="clusterqueues", user="multikueue"))
            server.faults.connections.drop()
        for worker in fleet.workers:
            await quota(fleet, worker, "1")
        await anyio.sleep(80)
        assert await placed(fleet) == {"job": "-"}
        await anyio.sleep(60)
        assert await placed(fleet) != {"job": "-"}


async def test_each_in_turn_is_offered_to_see_whether_the_worker_preempts_for_it() -> None:
    """Nothing says that it does: what runs there is not ours."""
    fleet = Fleet.of("w1")
    async with scored(fleet):
        version, kind = WORKLOAD_PRIORITY_CLASS.gvk.api_version, WORKLOAD_PRIORITY_CLASS.gvk.kind
        low = {"apiVersion": version, "kind": kind, "metadata": {"name": "low"}, "value": -10}
        theirs, key = DirectClient(fleet.workers["w1"]), ObjectKey("", CLUSTER_QUEUE_NAME)
        await theirs.merge_patch(CLUSTER_QUEUE, key, {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}})
        await theirs.create(WORKLOAD_PRIORITY_CLASS, low)
        for name in ("theirs-1", "theirs-2"):
            await fleet.submit(name, worker="w1", priority="low")
        await anyio.sleep(10)
        for name in ("a", "b"):
            await fleet.submit(name)
        await anyio.sleep(120)
        assert await placed(fleet) == {"a": "w1", "b": "w1"}


def _is_placed(fleet: Fleet, job: str, worker: str) -> object:
    async def holds() -> bool:
        return (await placed(fleet)).get(job) == worker

    return holds()


async def test_why_workers_are_not_offered_a_job_is_counted_when_it_is_told() -> None:
    """Once for each text, not with each look."""
    fleet, hook = Fleet.of("worker1", "worker2"), Counts()
    await fleet.connect(cpu=1, on_manager=100)
    manager = attrs.evolve(fleet.build(), dispatcher=Scored({"default": Profile()}), hook=hook)
    async with fleet.kueues(LONG), fleet.running(manager):
        for name in ("a", "b", "c", "d", "held"):
            await fleet.submit(name)
        await anyio.sleep(600)
    told = [one for one in hook.noted if one[0].startswith("rejected: ")]

    assert set(told) == {("rejected: Claimed", "worker1"), ("rejected: Claimed", "worker2")}
    assert len(told) <= 4
