"""What holds the daemon to its promises blames it for what it does, and not for what others do."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio
import pytest

from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import ADMISSION_CHECK, JOB, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid, with_value
from multikueue.core.model.workloads import attempt
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs import DURATION_ANNOTATION, RunnerOptions
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.simulation.choosing import Choosing
from tests.simulation.daemon import Daemon
from tests.simulation.foreign import Foreigners
from tests.simulation.holding import IDLE, Holding
from tests.simulation.leaving import COUNTERS, Leaving
from tests.simulation.objects import MARKS, ORIGIN, objects
from tests.simulation.offering import Offering
from tests.simulation.population import template
from tests.simulation.promises import Promises
from tests.simulation.reach import NOTICED, Reach
from tests.simulation.refusing import count_by_hand
from tests.simulation.remapping import READ, Mapping
from tests.simulation.room import Rooms
from tests.simulation.running import Item
from tests.simulation.scene import Scene
from tests.simulation.taking import Taking
from tests.simulation.virtual_time import run_on_virtual_time, wall_clock
from tests.simulation.wishes import Site
from tests.simulation.world import DAEMON, World

T = TypeVar("T")

SPLIT: Final = "worker2"


def test_a_split_worker_that_is_opened_has_room_in_each_flavor_and_no_more() -> None:
    """Its second flavor stays: a CPU is free there beside a job that fills the first one."""

    async def look(world: World, promises: Promises) -> list[list[str]]:
        assert world.choosing is not None
        rooms = Rooms(world, world.choosing, promises.reach, Daemon(world))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Offering(world, world.choosing, rooms, promises).run)
            await anyio.sleep(200.0)
            await world.choosing.open(world)
            offers = [await _offer(world, promises, cpu, number) for number, cpu in enumerate(("2", "1", "1"))]
            tasks.cancel_scope.cancel()
        return offers

    first, second, third = _beside(look)

    assert (first, second) == ([], [])
    assert [said.endswith("needs 1000 and 0 are free there") for said in third] == [True]


@pytest.mark.parametrize(("ended", "blamed"), [(True, False), (False, True)])
def test_a_worker_where_its_job_has_ended_is_recorded_whatever_is_free_there(ended: bool, blamed: bool) -> None:
    """Its Workload copy is gone, and somebody has erased the record (seed 10252): what has ended takes no room."""

    async def look(world: World, promises: Promises) -> list[str]:
        assert world.choosing is not None
        rooms = Rooms(world, world.choosing, promises.reach, Daemon(world))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Offering(world, world.choosing, rooms, promises).run)
            await anyio.sleep(200.0)
            await world.manager.api.create(JOB, _job("3", 0))
            await anyio.sleep(5.0)
            (workload,) = objects(world.manager, WORKLOAD)
            marks = {ATTEMPT_ANNOTATION: MARKS.of(workload, attempt(workload), LEFT)}
            metadata = {"name": "job-0", "namespace": "default", "annotations": marks}
            copy = {**_job("3", 0), "metadata": metadata, "spec": {"template": template("3")}}
            await world.workers[LEFT].api.create(JOB, copy)
            if ended:
                patch = {"status": _complete()}
                await world.workers[LEFT].api.merge_patch(JOB, ObjectKey.of(copy), patch, subresource="status")
            blames = await _nominate(world, promises, workload, LEFT)
            tasks.cancel_scope.cancel()
        return blames

    assert bool(_beside(look)) is blamed


@pytest.mark.parametrize(("user", "blamed"), [("user", False), (DAEMON, True)])
def test_a_worker_without_a_readable_mapping_gets_nothing_from_the_daemon(user: str, blamed: bool) -> None:
    """What an impostor makes there is not the daemon's, whatever its label; what the daemon makes is, unmarked too."""

    async def look(world: World, promises: Promises) -> list[str]:
        Mapping(world, promises.reach, promises).listen()
        world.images[SPLIT] = ("", anyio.current_time())
        await world.manager.api.create(JOB, _job("1", 0))
        await anyio.sleep(2 * READ)
        (workload,) = objects(world.manager, WORKLOAD)
        metadata = {"name": workload["metadata"]["name"], "namespace": "default", "labels": {ORIGIN_LABEL: ORIGIN}}
        copy = {**{name: workload[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}
        await DirectClient(world.workers[SPLIT].registry, user=user).create(WORKLOAD, copy)
        return promises.broken

    assert bool(_beside(look)) is blamed


@pytest.mark.parametrize(("own", "marked", "blamed"), [("", False, 1), (SPLIT, False, 0), (SPLIT, True, 1)])
def test_on_the_manager_itself_only_a_marked_copy_holds_quota_for_us(own: str, marked: bool, blamed: int) -> None:
    async def look(world: World, promises: Promises) -> list[str]:
        world.own = own
        holding = Holding(world, promises.reach, promises)
        await world.manager.api.create(JOB, _job("1", 0))
        await anyio.sleep(5.0)
        (workload,) = objects(world.manager, WORKLOAD)
        annotations = {ATTEMPT_ANNOTATION: MARKS.of(workload, attempt(workload), own)} if marked else {}
        labels = {ORIGIN_LABEL: ORIGIN}
        metadata = {"name": "copy", "namespace": "default", "labels": labels, "annotations": annotations}
        copy = {**{name: workload[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}
        await world.workers[SPLIT].api.create(WORKLOAD, copy)
        await anyio.sleep(5.0)
        holding.check(alive_since=0.0)
        await anyio.sleep(IDLE + 10.0)
        holding.check(alive_since=0.0)
        return [text for text in promises.broken if "does not run" in text]

    assert len(_beside(look)) == blamed


@pytest.mark.parametrize(
    ("lost_for", "is_back", "blamed"), [(900.0, False, False), (100.0, False, True), (900.0, True, True)]
)
def test_what_was_made_while_the_other_worker_was_lost_may_start_once_that_is_back(
    lost_for: float, is_back: bool, blamed: bool
) -> None:
    """A node was dead there (seed 2800): nobody can take a decision back by then."""

    async def look(world: World, promises: Promises) -> list[str]:
        promises.listen()
        link, first, key = world.workers[SPLIT].link, world.workers["worker1"].api, ObjectKey("default", "job-1")
        labels = {ORIGIN_LABEL: ORIGIN, "kueue.x-k8s.io/prebuilt-workload-name": "job-1"}
        copy = with_value(_job("1", 1), ("metadata", "labels"), labels)
        del copy["spec"]["managedBy"]
        copy["metadata"]["annotations"] = {DURATION_ANNOTATION: "2h"}
        await world.workers[SPLIT].api.create(JOB, with_value(copy, ("spec", "suspend"), False))
        link.change(down=True)
        await anyio.sleep(lost_for)
        link.change(down=not is_back)
        await anyio.sleep(NOTICED + 1.0 if is_back else 1.0)
        await first.create(JOB, copy)
        link.change(down=False)
        await anyio.sleep(NOTICED + 1.0)
        await first.merge_patch(JOB, key, {"spec": {"suspend": False}})
        await anyio.sleep(5.0)
        return [text for text in promises.broken if "starts on worker1" in text]


LEFT: Final = "worker1"


@pytest.mark.parametrize(
    ("made", "away", "blamed"),
    [("before", True, False), ("before", False, True), ("after", True, True), ("before", None, True)],
    ids=["left on a lost worker", "within reach", "made after the end", "back since then"],
)
def test_a_copy_on_a_worker_that_is_lost_since_before_the_end_starts_on_its_own(
    made: str, away: bool | None, blamed: bool
) -> None:
    """The job was given up there, and has run and ended elsewhere: nobody can take that copy away."""

    async def look(world: World, promises: Promises) -> list[str]:
        promises.listen()
        worker = world.workers[LEFT]
        await world.manager.api.create(JOB, _job("1", 0))
        await anyio.sleep(5.0)
        (local,), (workload,) = objects(world.manager, JOB), objects(world.manager, WORKLOAD)
        labels = {ORIGIN_LABEL: ORIGIN, PREBUILT_WORKLOAD: workload["metadata"]["name"]}
        metadata = {"name": local["metadata"]["name"], "namespace": "default", "labels": labels}
        copy = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
        copy["spec"] = {"suspend": True, "template": template("1")}
        if made == "before":
            await worker.api.create(JOB, copy)
        worker.link.change(down=away is not False)
        await anyio.sleep(1.0)
        promises.ended[Item(JOB.plural, ObjectKey.of(local)), uid(local)] = anyio.current_time()
        await anyio.sleep(1.0)
        if made == "after":
            await worker.api.create(JOB, copy)
        if away is None:
            worker.link.change(down=False)
        await worker.api.merge_patch(JOB, ObjectKey.of(local), {"spec": {"suspend": False}})
        await anyio.sleep(5.0)
        assert promises.starts == 1
        return [text for text in promises.broken if "after it has ended" in text]

    assert bool(_beside(look)) is blamed


def test_what_somebody_counts_in_several_writes_is_all_his() -> None:
    """The second one counted what has succeeded, and what the first one counted was blamed (seeds 20161, 20564)."""

    async def look(world: World, promises: Promises) -> None:
        reach, taking = promises.reach, Taking(world, promises.reach, promises)
        scene = Scene(world, Daemon(world), promises, taking, reach, Foreigners(world), random.Random(0))
        await world.manager.api.create(JOB, _job("1", 0))
        await anyio.sleep(5.0)
        (local,), (workload,) = objects(world.manager, JOB), objects(world.manager, WORKLOAD)
        labels = {ORIGIN_LABEL: ORIGIN, PREBUILT_WORKLOAD: workload["metadata"]["name"]}
        metadata = {"name": local["metadata"]["name"], "namespace": "default", "labels": labels}
        metadata["annotations"] = {DURATION_ANNOTATION: "2h"}
        copy = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template("1")}}
        await world.workers[LEFT].api.create(JOB, copy)
        await anyio.sleep(5.0)
        for _ in range(6):
            await count_by_hand(scene)
        (local,) = objects(world.manager, JOB)
        assert promises.counted[uid(local)] == {name: dig(local, "status", name) for name in COUNTERS}

    _beside(look)


@pytest.mark.parametrize("stopped", [True, False])
def test_what_ends_while_its_kueue_stops_it_need_not_be_kept(stopped: bool) -> None:
    """It was deleted as one that ran: no watch had shown the end by then (seed 31028). Its end is shown."""

    async def look(world: World, promises: Promises) -> list[str]:
        world.retention = 200.0
        Leaving(world, promises, Taking(world, promises.reach, promises)).listen()
        await world.manager.api.create(JOB, _job("1", 0))
        await anyio.sleep(5.0)
        (local,), (workload,) = objects(world.manager, JOB), objects(world.manager, WORKLOAD)
        key, name = ObjectKey.of(local), workload["metadata"]["name"]
        marks = {ATTEMPT_ANNOTATION: MARKS.of(workload, attempt(workload), LEFT)}
        labels = {ORIGIN_LABEL: ORIGIN, PREBUILT_WORKLOAD: name}
        metadata: Json = {"name": name, "namespace": "default", "labels": labels, "annotations": marks}
        worker = world.workers[LEFT].api
        offered = {field: workload[field] for field in ("apiVersion", "kind", "spec")}
        await worker.create(WORKLOAD, {**offered, "metadata": metadata})
        copy = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": key.name}}
        await worker.create(JOB, {**copy, "spec": {"suspend": True, "template": template("1")}})
        for said in ({"nominatedClusterNames": [LEFT]}, {"clusterName": LEFT, "nominatedClusterNames": None}):
            await world.manager.api.merge_patch(
                WORKLOAD, ObjectKey.of(workload), {"status": said}, subresource="status"
            )
        ready = {"admissionChecks": [{**dig(workload, "status", "admissionChecks")[0], "state": "Ready"}]}
        await world.manager.api.merge_patch(WORKLOAD, ObjectKey.of(workload), {"status": ready}, subresource="status")
        await anyio.sleep(5.0)
        await worker.merge_patch(JOB, key, {"status": _complete()}, subresource="status")
        if stopped:
            await world.manager.api.merge_patch(JOB, key, {"spec": {"suspend": True}})
        await worker.delete(JOB, key, propagation="Background")
        return promises.broken

    assert bool(_beside(look)) is not stopped


def _world() -> World:
    world = World.build(0, (0.0, 0.0), 2, RunnerOptions())
    world.remapped = True
    world.rename([SPLIT])
    world.choose_by(Choosing(0, Profile(), named=False, sites={"worker1": Site(), SPLIT: Site(split=True)}))
    return world


def _beside(look: Callable[[World, Promises], Awaitable[T]]) -> T:
    """What is found in a world without a daemon."""

    async def run() -> T:
        world = _world()
        reach = Reach(world)
        async with anyio.create_task_group() as tasks:
            reach.listen()
            await tasks.start(world.run)
            status = {"status": {"conditions": [_active()]}}
            await world.manager.api.merge_patch(ADMISSION_CHECK, ObjectKey("", CHECK), status, subresource="status")
            seen = await look(world, Promises(world, reach, lost_timeout=900.0))
            tasks.cancel_scope.cancel()
        return seen

    return run_on_virtual_time(run)


async def _offer(world: World, promises: Promises, cpu: str, number: int) -> list[str]:
    """What is said of it once a job is offered to the split worker."""
    await world.manager.api.create(JOB, _job(cpu, number))
    await anyio.sleep(5.0)
    made = next(
        workload
        for workload in objects(world.manager, WORKLOAD)
        if f"job-job-{number}-" in workload["metadata"]["name"]
    )
    return await _nominate(world, promises, made, SPLIT)


async def _nominate(world: World, promises: Promises, workload: Json, worker: str) -> list[str]:
    """What is said of it."""
    before = len(promises.broken)
    patch = {"status": {"nominatedClusterNames": [worker]}}
    await world.manager.api.merge_patch(WORKLOAD, ObjectKey.of(workload), patch, subresource="status")
    return promises.broken[before:]


def _complete() -> Json:
    """The status of a Job that has ended."""
    now = timestamp(wall_clock()())
    conditions = [
        {"type": name, "status": "True", "reason": "Done", "lastTransitionTime": now}
        for name in ("SuccessCriteriaMet", "Complete")
    ]
    return {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}


def _active() -> Json:
    now = timestamp(wall_clock()())
    return {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": now}


def _job(cpu: str, number: int) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME}
    metadata = {"name": f"job-{number}", "namespace": "default", "labels": labels}
    spec = {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue", "template": template(cpu)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
