"""The scored dispatcher at work: it asks one worker that has room, holds while none has, and wakes who fits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from unittest.mock import Mock

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.job_annotations import NAMES, TAINTS, TOGETHER, TOLERATIONS
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION, Failures
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import ClusterName, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.runtime.manager import Manager
from multikueue.runtime.scored import queue_room
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.runtime.scored.penalties import PACE
from multikueue.runtime.scored.queue_room import WorkerRooms
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Delay, Match, Refuse, Reset
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, local_queue, namespace
from tests.runtime.fleet import LONG, Fleet, now, until
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
    manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": Profile(), **profiles}))
    async with fleet.kueues(jobs):
        for name in start_with:
            await fleet.submit(name)
        async with fleet.running(manager):
            await anyio.sleep(5)
            yield manager


async def placed(fleet: Fleet) -> dict[str, str]:
    """Where each job is: `-` for those that are held."""
    workloads = (await fleet.admin.list(WORKLOAD)).items
    return {workload["metadata"]["ownerReferences"][0]["name"]: cluster_name(workload) or "-" for workload in workloads}


async def quota(fleet: Fleet, worker: str, cpu: str) -> None:
    """Change what a worker has."""
    client, key = DirectClient(fleet.workers[worker]), ObjectKey("", CLUSTER_QUEUE_NAME)
    groups = (await client.get(CLUSTER_QUEUE, key))["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = cpu
    await client.merge_patch(CLUSTER_QUEUE, key, {"spec": {"resourceGroups": groups}})


async def test_a_burst_fills_all_workers_and_the_rest_is_held_here_until_one_ends() -> None:
    fleet = Fleet.of("w1", "w2", "w3")
    async with scored(fleet, SHORT):
        for number in range(8):
            await fleet.submit(f"j{number}")
        await anyio.sleep(30)
        where = await placed(fleet)
        assert sorted(where.values()) == ["-", "-", "w1", "w1", "w2", "w2", "w3", "w3"]
        held = [workload for workload in (await fleet.admin.list(WORKLOAD)).items if cluster_name(workload) is None]
        assert [nominated(workload) for workload in held] == [(), ()]
        assert all("held since" in workload["status"]["admissionChecks"][0]["message"] for workload in held)
        await anyio.sleep(60)
        where = await placed(fleet)
        assert "-" not in where.values()
        assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 8


async def test_what_is_ours_on_a_worker_is_no_room_of_others() -> None:
    """What waits there is not taken for somebody else's, and who runs there may be preempted for another."""
    fleet = Fleet.of("w1")
    async with scored(fleet) as manager:
        for name in ("a", "b", "c"):
            await fleet.submit(name)
            await anyio.sleep(10)
        rooms = manager._dispatching.figures
        assert isinstance(rooms, WorkerRooms)
        figures = rooms._figures[ClusterName("w1")].facts
        assert figures is not None
        facts = figures[CLUSTER_QUEUE_NAME]
        assert facts.running
        assert facts.others_pending == 0


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


async def test_where_a_worker_opens_the_one_that_came_last_does_not_overtake() -> None:
    """All that are held are planned anew, and the first one takes the room."""
    fleet = Fleet.of("w1")
    async with scored(fleet):
        await quota(fleet, "w1", "500m")
        await taint(fleet, "spot=true:NoDispatch")
        for name in ("z-first", "a-second"):
            await anyio.sleep(5)
            await fleet.submit(name)
        await anyio.sleep(20)
        await taint(fleet, None)
        await anyio.sleep(20)
        assert await placed(fleet) == {"z-first": "w1", "a-second": "-"}


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


async def test_a_job_that_is_there_before_it_is_known_that_figures_are_forbidden_is_offered() -> None:
    """It was held for figures that nobody will ever read: their refusal is the first thing that is known of them."""
    fleet = Fleet.of("w1", "w2")
    for worker in fleet.workers.values():
        worker.faults.add(Refuse(403), on=Match(resource="clusterqueues", user="multikueue"))
    async with scored(fleet, start_with=("a",)):
        await anyio.sleep(20)
        assert "-" not in (await placed(fleet)).values()


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
    manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": Profile()}), hook=hook)
    async with fleet.kueues(LONG), fleet.running(manager):
        for name in ("a", "b", "c", "d", "held"):
            await fleet.submit(name)
        await anyio.sleep(600)
    rejections = [note for note in hook.noted if note[0].startswith("rejected: ")]

    assert set(rejections) == {("rejected: Claimed", "worker1"), ("rejected: Claimed", "worker2")}
    assert len(rejections) <= 4


async def failures(fleet: Fleet, worker: str = "w1") -> str | None:
    """What a worker carries."""
    return annotations_of(await fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", worker))).get(FAILURES_ANNOTATION)


def writes(fleet: Fleet) -> int:
    """How often MultiKueueClusters were written."""
    return fleet.manager.access.requests["multikueue", "patch", str(MULTIKUEUE_CLUSTER)]


async def fail(fleet: Fleet, *jobs: str, of: str = "default") -> None:
    """Jobs run on the first worker, and their pods do not get ready."""
    for name in jobs:
        await fleet.submit(name, namespace=of)
        await annotate(fleet, JOB, ObjectKey(of, name), NAMES, "w1")
    await fail_on(fleet, "w1", *jobs)


async def fail_on(fleet: Fleet, worker: str, *jobs: str) -> None:
    """Jobs that run on a worker, or are about to, do not get ready there."""
    await until(lambda: _all_placed(fleet, jobs, worker))
    await anyio.sleep(2)
    theirs = DirectClient(fleet.workers[worker], user="kueue")
    for copy in (await theirs.list(WORKLOAD)).items:
        if copy["metadata"]["ownerReferences"][0]["name"] in jobs:
            await evict(theirs, ObjectKey.of(copy), reason="PodsReadyTimeout", message="too slow", clock=now)


async def another_tenant(fleet: Fleet, name: str) -> None:
    """A tenant with a namespace and a LocalQueue on all clusters."""
    for server in (fleet.manager, *fleet.workers.values()):
        await DirectClient(server).create(NAMESPACE, namespace(name))
        await DirectClient(server).create(LOCAL_QUEUE, local_queue(name))


def _all_placed(fleet: Fleet, jobs: Sequence[str], worker: str) -> object:
    async def holds() -> bool:
        where = await placed(fleet)
        return all(where.get(job) == worker for job in jobs)

    return holds()


async def test_a_worker_that_fails_two_tenants_ranks_last_until_a_job_succeeds_there() -> None:
    """It lies on the MultiKueueCluster: the next daemon knows it, too."""
    fleet = Fleet.of("w1", "w2")
    async with fleet.kueues(SHORT):
        await fleet.connect(cpu=4, on_manager=100)
        await another_tenant(fleet, "other")
        async with fleet.running(attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher())):
            await anyio.sleep(5)
            before = writes(fleet)
            await fail(fleet, "a", "b")
            await anyio.sleep(2 * PACE)
            noted = Failures.parse(await failures(fleet))
            assert [owner for owner, _ in noted.owners] == ["default"]
            assert noted.until is None
            await fail(fleet, "c", of="other")
            await anyio.sleep(2 * PACE)
            noted = Failures.parse(await failures(fleet))
            assert noted.until is not None
            assert noted.hours == 1
            assert writes(fleet) - before == 2
        async with fleet.running(attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher())):
            await anyio.sleep(5)
            new = ("d", "e", "f", "g")
            for name in new:
                await fleet.submit(name)
            await until(lambda: _all_placed(fleet, new, "w2"))
            await anyio.sleep(90)  # those that failed ran again, and have finished
            assert await failures(fleet) is None


async def test_jobs_that_fail_everywhere_are_no_penalty_for_everybody() -> None:
    """Two jobs, of two tenants, whose pods get ready nowhere had all workers take one job at a time."""
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        await another_tenant(fleet, "other")
        for name, owner in (("a", "default"), ("c", "other")):
            await fail(fleet, name, of=owner)
            await annotate(fleet, JOB, ObjectKey(owner, name), NAMES, "w2")
            if (await placed(fleet))[name] == "w1":
                await fail_on(fleet, "w1", name)
            await fail_on(fleet, "w2", name)
        await anyio.sleep(2 * PACE)

        assert Failures.parse(await failures(fleet)).until is not None
        assert await failures(fleet, "w2") is None


async def test_a_failure_that_could_not_be_written_is_written_later_and_asked_for_seldom() -> None:
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet, SHORT):
        match = Match(verbs=("patch",), resource="multikueueclusters", user="multikueue")
        refused = fleet.manager.faults.add(Refuse(403), on=match)
        before = writes(fleet)
        await fail(fleet, "a")
        await anyio.sleep(45)
        assert await failures(fleet) is None
        assert writes(fleet) - before <= 15
        fleet.manager.faults.remove(refused)
        await anyio.sleep(10)
        assert await failures(fleet) is not None


async def test_a_worker_with_more_figures_than_are_looked_at_is_asked_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its administrator could make so many queues, and change them so often, that nothing else had a turn."""
    monkeypatch.setattr(queue_room, "FIGURES", 10)
    monkeypatch.setattr(queue_room, "RATE", 2)
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        await quota(fleet, "w2", "0")
        client = DirectClient(fleet.workers["w1"])
        queue = await client.get(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME))
        for number in range(10):
            metadata = {"name": f"more-{number}"}
            await client.create(CLUSTER_QUEUE, {**queue, "metadata": metadata, "status": {}})
        await anyio.sleep(15)
        await fleet.submit()
        await until(lambda: _is_placed(fleet, "job", "w1"))
        looks = Mock(wraps=kueue_objects.figures)
        monkeypatch.setattr(kueue_objects, "figures", looks)
        for cpu in range(100):
            await quota(fleet, "w1", str(cpu))
            await anyio.sleep(0.5)
        assert 1 <= looks.call_count <= 10
        await quota(fleet, "w1", "0")
        await anyio.sleep(30)
        for number in range(10):
            await client.delete(CLUSTER_QUEUE, ObjectKey("", f"more-{number}"))
        await anyio.sleep(30)
        asked = fleet.requests("w1", "create", WORKLOAD)
        await fleet.submit("next")
        await anyio.sleep(30)
        assert fleet.requests("w1", "create", WORKLOAD) == asked, "its figures count again: there is no room"
