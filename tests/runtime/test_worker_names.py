"""Workers with other names for namespaces: jobs run in the image, and stay where they are, whatever is said later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.kinds import NAMESPACE as NAMESPACES
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    CORDON_ANNOTATION,
    NAMESPACE_ON_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
    PREBUILT_WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, clone, uid
from multikueue.core.model.workloads import check, cluster_name, has_quota
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CHECK, local_queue, namespace
from multikueue.testing import job
from tests.runtime.fleet import Fleet, is_active, now, until
from tests.runtime.test_counts import Refused, requests

pytestmark = pytest.mark.looptime

MAPPED = {"default": "mk-default"}


@asynccontextmanager
async def renamed(mapping: object = MAPPED, *there: str, beside: tuple[str, ...] = ()) -> AsyncIterator[Fleet]:
    """A fleet of one worker that says how namespaces are called there, with a queue in each of some of them, and of
    workers without names of their own.
    """
    fleet = await Fleet.connected("worker1", *beside)
    worker = DirectClient(fleet.workers["worker1"])
    for name in there or ("mk-default",):
        await worker.create(NAMESPACES, namespace(name))
        await worker.create(LOCAL_QUEUE, local_queue(name))
    await say(fleet, mapping)
    async with fleet.kueues(RunnerOptions(minimum=40.0, maximum=40.0)):
        yield fleet


async def say(fleet: Fleet, mapping: object) -> None:
    said = mapping if isinstance(mapping, str | None) else json.dumps(mapping)
    patch = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: said}}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), patch)


async def copies(fleet: Fleet) -> list[str]:
    """What of ours is on the worker: kind, namespace and name."""
    listed = [(kind, obj) for kind in (JOB, WORKLOAD) for obj in (await _worker(fleet).list(kind)).items]
    ours = [(kind, ObjectKey.of(obj)) for kind, obj in listed if ORIGIN_LABEL in obj["metadata"].get("labels", {})]
    return [f"{kind.gvk.kind} {key.namespace}" for kind, key in ours]


def _worker(fleet: Fleet) -> DirectClient:
    return DirectClient(fleet.workers["worker1"])


async def _runs(fleet: Fleet) -> bool:
    return bool(await fleet.running_on()) and cluster_name(await fleet.workload()) == "worker1"


async def _is_recorded_on(fleet: Fleet, name: str) -> bool:
    return cluster_name(await fleet.workload()) == name


async def test_a_job_runs_in_the_image_of_its_namespace_and_nothing_is_made_elsewhere() -> None:
    async with renamed() as fleet, fleet.running():
        await fleet.submit()
        await until(lambda: _runs(fleet))
        assert await copies(fleet) == ["Job mk-default", "Workload mk-default"]
        assert json.loads(annotations_of(await fleet.workload())[NAMESPACE_ON_ANNOTATION]) == {"worker1": "mk-default"}
        (job,) = (await _worker(fleet).list(JOB)).items
        assert annotations_of(job)[ORIGIN_NAMESPACE_ANNOTATION] == "default"
        await fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")
        await until(lambda: _is_clean(fleet))


async def test_a_first_offer_into_an_image_costs_one_write_more_and_none_in_vain() -> None:
    """The note of the place goes alone: of two writes of one object that were made together the second is refused."""
    async with renamed() as fleet:
        client = Refused(fleet.manager, user="multikueue")
        client.refused = Counter()
        async with fleet.dispatching(fleet.build(client=client)):
            await anyio.sleep(10)
            before = requests(fleet.manager)
            await fleet.submit()
            await until(lambda: _runs(fleet))
            await until(fleet.ready)
            written = requests(fleet.manager) - before
    assert client.refused[f"patch {WORKLOAD}"] == 0
    assert written[f"patch {WORKLOAD}"] == 4, "the place; offered, recorded, Ready"


async def _is_clean(fleet: Fleet) -> bool:
    return not await copies(fleet)


@pytest.mark.parametrize("later", [{"default": "other"}, "{"])
async def test_what_is_said_later_moves_nothing_that_runs(later: object) -> None:
    """Also not over a restart, and its end comes home."""
    async with renamed(MAPPED, "mk-default", "other") as fleet:
        async with fleet.running():
            await fleet.submit()
            await until(lambda: _runs(fleet))
            before = await fleet.running_on()
            await say(fleet, later)
            await until(is_active(fleet, status="False" if later == "{" else "True"))
        async with fleet.running():
            await until(is_active(fleet, status="False" if later == "{" else "True"))
            assert await fleet.running_on() == before
            await until(lambda: _has_ended(fleet))
        assert fleet.requests("worker1", "create", JOB) == 1


@pytest.mark.parametrize("noted", [None, '{"worker1": "other"}'])
async def test_a_job_whose_place_cannot_be_read_any_more_is_not_sent_back(noted: str | None) -> None:
    """Nor one whose place somebody has changed. Else it would not be found there, and run twice."""
    async with renamed() as fleet, fleet.running():
        await fleet.submit()
        await until(lambda: _runs(fleet))
        before, workload = await fleet.running_on(), await fleet.workload()
        patch = {"metadata": {"annotations": {NAMESPACE_ON_ANNOTATION: noted}}}
        await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), patch)
        await anyio.sleep(30)
        assert await fleet.running_on() == before
        entry = check(await fleet.workload(), CHECK) or {}
        assert (entry.get("state"), fleet.requests("worker1", "create", JOB)) == ("Ready", 1)


async def test_a_job_whose_place_was_removed_is_stopped_there_before_its_quota_is_given_back() -> None:
    """Its copies are of an earlier attempt once it is evicted: they were not found, so it was shown to have stopped."""
    async with renamed() as fleet, fleet.running():
        await fleet.submit()
        await until(lambda: _runs(fleet))
        key, stopped = ObjectKey.of(await fleet.workload()), list[int]()

        def changed(row: ResourceType, old: Json | None, new: Json | None) -> None:
            if row.plural == WORKLOAD.plural and has_quota(old or {}) and not has_quota(new or {}):
                stopped.append(fleet.requests("worker1", "patch", WORKLOAD))

        fleet.manager.registry.cluster.listeners.append(changed)
        patch = {"metadata": {"annotations": {NAMESPACE_ON_ANNOTATION: None}}}
        await fleet.admin.merge_patch(WORKLOAD, key, patch)
        await anyio.sleep(5)
        await evict(fleet.admin, key, clock=now)
        await anyio.sleep(30)
        assert (await _runs(fleet), stopped) == (True, [1])


@pytest.mark.gate
async def test_what_a_lost_worker_kept_where_nothing_says_any_more_is_deleted_once_another_has_the_job() -> None:
    """Its mark is of an earlier attempt by then. Else it would wait there for ever, and keep its quota."""
    async with renamed(beside=("worker2",)) as fleet, fleet.running():
        fleet.workers["worker2"].faults.partition("reset")
        await fleet.submit()
        await until(lambda: _has_workload(fleet))
        await until(lambda: _is_recorded_on(fleet, "worker1"))
        key = ObjectKey.of(await fleet.workload())
        patch = {"metadata": {"annotations": {NAMESPACE_ON_ANNOTATION: None}}}
        await fleet.admin.merge_patch(WORKLOAD, key, patch)
        await anyio.sleep(5)
        fleet.workers["worker1"].faults.partition("reset")
        fleet.workers["worker2"].faults.heal()
        await until(lambda: _is_recorded_on(fleet, "worker2"), within=1200)
        fleet.workers["worker1"].faults.heal()
        await until(lambda: _is_clean(fleet), within=120)


@pytest.mark.parametrize(("mapping", "there"), [(MAPPED, "mk-default"), (None, "default")])
async def test_a_job_copy_alone_of_an_earlier_run_blocks_the_next_one_until_it_is_gone(
    mapping: object, there: str
) -> None:
    """Its Workload was made again, so it names no namespace there, and its Workload copy was lost: nobody saw the job,
    so another worker got the next run at once, and what was left stayed for ever."""
    async with renamed(mapping, beside=("worker2",)) as fleet:
        await fleet.submit()
        await until(lambda: _has_workload(fleet))
        metadata = {
            "name": "job",
            "namespace": there,
            "labels": {ORIGIN_LABEL: "multikueue", PREBUILT_WORKLOAD: (await fleet.workload())["metadata"]["name"]},
            "annotations": {ORIGIN_NAMESPACE_ANNOTATION: "default", ATTEMPT_ANNOTATION: "0123456789abcdef"},
            "finalizers": ["example.com/slow"],
        }
        left = await _worker(fleet).create(JOB, {**job("job"), "metadata": metadata})
        cordon = {"metadata": {"annotations": {CORDON_ANNOTATION: "true"}}}  # an offer would write the namespace
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), cordon)
        async with fleet.dispatching():
            await anyio.sleep(30)
            assert cluster_name(await fleet.workload()) is None
            held = await _worker(fleet).get(JOB, ObjectKey.of(left))
            assert "deletionTimestamp" in held["metadata"]
            await _worker(fleet).merge_patch(JOB, ObjectKey.of(left), {"metadata": {"finalizers": None}})
            await until(lambda: _is_recorded(fleet), within=120)


async def test_a_job_is_stopped_where_neither_its_new_workload_nor_the_mapping_leads() -> None:
    """Kueue has deleted the Workload of a job that was resized, and made another of its name, which notes nothing. The
    mapping had changed: nobody saw the job copy, which ran on beside the next one."""
    async with renamed(MAPPED, "mk-default", "other") as fleet:
        async with fleet.running():
            await fleet.submit(pods=2)
            await until(lambda: _runs(fleet))
        before, former = await fleet.running_on(), await fleet.workload()
        await say(fleet, {"default": "other"})
        key = ObjectKey("default", "job")
        await fleet.admin.merge_patch(JOB, key, {"spec": {"parallelism": 1}})
        await fleet.admin.merge_patch(JOB, key, {"status": {"active": 0, "ready": 0}}, subresource="status")

        async def is_made_anew() -> bool:
            workloads = (await fleet.admin.list(WORKLOAD)).items
            return [ObjectKey.of(workload) for workload in workloads if uid(workload) != uid(former)] == [
                ObjectKey.of(former)
            ]

        await until(is_made_anew)
        async with fleet.running():
            await until(lambda: _runs(fleet))
            assert await fleet.running_on() != before
            assert await copies(fleet) == ["Job other", "Workload other"]


async def test_an_offer_goes_from_where_neither_its_new_workload_nor_the_mapping_leads() -> None:
    """No worker has room for it. Its Workload was deleted and made again, and the mapping had changed: the copy stayed
    in its namespace, perhaps with quota, until the Workload went."""
    async with renamed(MAPPED, "mk-default", "other", beside=("worker2",)) as fleet:

        async def is_offered_in_other() -> bool:
            return await copies(fleet) == ["Workload other"]

        async with fleet.running():
            await fleet.submit(pods=10)
            await until(lambda: copies(fleet))
            assert await copies(fleet) == ["Workload mk-default"]
        former = await fleet.workload()
        await say(fleet, {"default": "other"})
        await fleet.admin.delete(WORKLOAD, ObjectKey.of(former), propagation="Background")
        async with fleet.running():
            await until(is_offered_in_other)
            assert uid(await fleet.workload()) != uid(former)


async def _is_recorded(fleet: Fleet) -> bool:
    return cluster_name(await fleet.workload()) is not None


async def test_a_copy_that_somebody_plants_in_another_namespace_ends_no_job() -> None:
    """It says that it is of an earlier attempt on the worker that has the job: as anybody there can write."""
    async with renamed(None, "evil") as fleet, fleet.running():
        await fleet.submit()
        await until(lambda: _runs(fleet))
        before, planted = await fleet.running_on(), clone((await _worker(fleet).list(WORKLOAD)).items[0])
        planted["metadata"] = {
            "name": planted["metadata"]["name"],
            "namespace": "evil",
            "labels": planted["metadata"]["labels"],
            "annotations": {ORIGIN_NAMESPACE_ANNOTATION: "default", ATTEMPT_ANNOTATION: "0123456789abcdef"},
        }
        del planted["status"]
        await _worker(fleet).create(WORKLOAD, planted)
        await anyio.sleep(30)
        assert await fleet.running_on() == before
        assert fleet.requests("worker1", "create", JOB) == 1


async def _has_ended(fleet: Fleet) -> bool:
    return is_true(await fleet.admin.get(JOB, ObjectKey("default", "job")), "Complete")


@pytest.mark.parametrize("cut_off", [False, True])
@pytest.mark.parametrize(("later", "note"), [({"default": "other"}, '{"worker1": "victim"}'), (None, None)])
async def test_a_slice_comes_where_its_job_is_whatever_notes_and_mappings_say_by_then(
    later: object, note: str | None, cut_off: bool
) -> None:
    """The job ran beside itself, and with the service accounts of a namespace that is somebody else's."""
    async with renamed(MAPPED, "victim", "other", "mk-default") as fleet, fleet.dispatching():
        job = await fleet.elastic()
        await until(lambda: _runs(fleet))
        await say(fleet, later)
        await _forge(fleet, note)
        if cut_off:
            fleet.workers["worker1"].faults.partition("reset")
        await fleet.admin.merge_patch(JOB, job, {"spec": {"parallelism": 2}})
        await anyio.sleep(5)
        await _forge(fleet, note)  # now the slice that comes has one, too
        fleet.workers["worker1"].faults.heal()
        await until(lambda: _has_grown(fleet), 120)
        assert {copy.split()[1] for copy in await copies(fleet)} == {"mk-default"}
        assert fleet.requests("worker1", "create", JOB) == 1


@pytest.mark.parametrize(("first", "later"), [(None, MAPPED), (MAPPED, {"default": "other"})])
async def test_a_slice_comes_where_its_job_is_though_an_operator_maps_anew(first: object, later: object) -> None:
    async with renamed(first, "other", "mk-default") as fleet, fleet.dispatching():
        job = await fleet.elastic()
        await until(lambda: _runs(fleet))
        await say(fleet, later)
        await anyio.sleep(5)
        await fleet.admin.merge_patch(JOB, job, {"spec": {"parallelism": 2}})
        await until(lambda: _has_grown(fleet), 120)
        assert fleet.requests("worker1", "create", JOB) == 1


async def _forge(fleet: Fleet, note: str | None) -> None:
    """Have all slices say that their copies are elsewhere, or nothing."""
    patch = {"metadata": {"annotations": {NAMESPACE_ON_ANNOTATION: note}}}
    for workload in (await fleet.admin.list(WORKLOAD)).items:
        await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), patch)


async def _has_grown(fleet: Fleet) -> bool:
    return any(job["spec"]["parallelism"] == 2 for job in (await _worker(fleet).list(JOB)).items)


async def test_a_worker_whose_names_cannot_be_read_is_not_active_and_gets_nothing() -> None:
    async with renamed("{") as fleet, fleet.running():
        await fleet.submit()
        await until(is_active(fleet, status="False"))
        active = await fleet.active()
        assert active["reason"] == "UnusableNames"
        assert "its annotation multikueue.dev/namespaces cannot be used: it is no JSON" in active["message"]
        assert (await fleet.check())[1] == "NoUsableClusters"
        await say(fleet, MAPPED)
        await until(lambda: _runs(fleet))
        assert await copies(fleet) == ["Job mk-default", "Workload mk-default"]


async def test_what_somebody_has_made_there_under_the_name_here_wins_nothing_and_is_left_alone() -> None:
    """The namespace of the manager's name belongs to others on the worker: with our label, or with another's note."""
    async with renamed() as fleet:
        await fleet.submit()
        await until(lambda: _has_workload(fleet))
        forged = clone(await fleet.workload())
        metadata = {"name": forged["metadata"]["name"], "namespace": "default", "labels": {ORIGIN_LABEL: "multikueue"}}
        bare = {"apiVersion": forged["apiVersion"], "kind": "Workload", "metadata": metadata, "spec": forged["spec"]}
        noted = {**metadata, "namespace": "elsewhere", "annotations": {ORIGIN_NAMESPACE_ANNOTATION: "default"}}
        await _worker(fleet).create(NAMESPACES, namespace("elsewhere"))
        made = [await _worker(fleet).create(WORKLOAD, workload) for workload in (bare, {**bare, "metadata": noted})]
        async with fleet.running():
            await until(lambda: _runs(fleet))
            (job,) = (await _worker(fleet).list(JOB)).items
            assert job["metadata"]["namespace"] == "mk-default"
            for copy in made:
                left = await _worker(fleet).get(WORKLOAD, ObjectKey.of(copy))
                assert left["metadata"]["uid"] == copy["metadata"]["uid"]


async def _has_workload(fleet: Fleet) -> bool:
    return bool((await fleet.admin.list(WORKLOAD)).items)


async def test_an_offer_that_nobody_took_goes_to_the_namespace_that_is_said_now() -> None:
    """There was no queue: whoever mends the mapping need not look for what was offered by the old one."""
    async with renamed({"default": "nowhere"}, "mk-default") as fleet, fleet.running():
        await _worker(fleet).create(NAMESPACES, namespace("nowhere"))
        await fleet.submit()
        await until(lambda: _is_offered(fleet, "nowhere"))
        await say(fleet, MAPPED)
        await until(lambda: _runs(fleet))
        assert await copies(fleet) == ["Job mk-default", "Workload mk-default"]


async def _is_offered(fleet: Fleet, there: str) -> bool:
    return await copies(fleet) == [f"Workload {there}"]


async def test_copies_whose_workload_is_gone_are_removed_wherever_they_say_they_are() -> None:
    async with renamed() as fleet:
        async with fleet.running():
            await fleet.submit()
            await until(lambda: _runs(fleet))
        await fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")
        await until(lambda: _has_no_workload(fleet))
        await say(fleet, None)
        async with fleet.running():
            await until(lambda: _is_clean(fleet))


async def _has_no_workload(fleet: Fleet) -> bool:
    return not await _has_workload(fleet)
