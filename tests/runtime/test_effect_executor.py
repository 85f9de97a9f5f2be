"""Effects as requests: in their order, up to the first that fails."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Final, Literal
from unittest import mock

import anyio
import pytest

from multikueue.core.model.copies import bare_metadata
from multikueue.core.model.kinds import JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import (
    FOREGROUND_FINALIZER,
    FROM_ANNOTATION,
    JOB_UID_LABEL,
    WORKLOAD_FINALIZER,
    ToldFinding,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, finalizers_of, is_terminating, resource_version
from multikueue.core.model.objects import uid as uid_of
from multikueue.core.model.workloads import attempt
from multikueue.errors import (
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    ServerFault,
    Unreachable,
)
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.create_conflicts import REFUSAL_BACKOFF, CreateConflicts
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.origin import Origin
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse, Reset
from tests.core.door import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CountAdmitted,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    LookForPods,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Refusal,
)
from tests.runtime.executing import KEY, W1, W2, FakeTarget, Fleet, a_job, a_workload

OF_JOB: Final = ObjectKey("default", "job")


async def test_a_copy_that_was_created_is_counted() -> None:
    """The metric says how much is offered to whom; what failed was not offered."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Refuse(500))
    with pytest.raises(ServerFault):
        await fleet.executor.execute(a_workload(), (CreateWorkload(W1, a_workload()),))
    await fleet.executor.execute(a_workload(), (CreateWorkload(W2, a_workload()),))

    assert await fleet.clusters[W2].client.get(WORKLOAD, KEY)
    assert fleet.dispatched_to == [W2]


async def test_copies_say_where_they_come_from_whatever_the_job_says() -> None:
    """The namespace is read for each of them: one that was made again has another UID. What a tenant wrote is gone."""
    fleet = Fleet()
    manager = mock.create_autospec(DirectClient, instance=True)
    manager.get.side_effect = [{"metadata": {"uid": "first"}}, {"metadata": {"uid": "second"}}]
    fleet.executor.origin = Origin("prod-eu", manager)
    forged = {**a_job(), "metadata": {**a_job()["metadata"], "annotations": {FROM_ANNOTATION: "b/team/uid"}}}
    assert FROM_ANNOTATION not in bare_metadata(forged, {}, {})["annotations"]

    await fleet.executor.execute(a_workload(), (CreateWorkload(W1, a_workload()),))
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, forged),))

    made = [
        await fleet.clusters[W1].client.get(*named) for named in ((WORKLOAD, KEY), (JOB, ObjectKey("default", "job")))
    ]
    said = [annotations_of(copy)[FROM_ANNOTATION] for copy in made]
    assert said == ["prod-eu/default/first", "prod-eu/default/second"]
    assert manager.get.await_args_list == [mock.call(NAMESPACE, ObjectKey("", "default"))] * 2


async def test_a_copy_is_not_made_while_its_namespace_cannot_be_read() -> None:
    """And it is known that nothing was sent."""
    fleet = Fleet()
    before = fleet.memory.creation(W1, KEY, attempt(a_workload()))
    fleet.executor.origin = Origin("prod-eu", fleet.clusters[MANAGER].client)
    fleet.clusters[MANAGER].client.faults.add(Refuse(500))
    with pytest.raises(ServerFault):
        await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))
    assert fleet.memory.creation(W1, KEY, attempt(a_workload())) == before


async def test_what_a_worker_leaves_out_of_a_copy_is_learned_and_told() -> None:
    """A user learns that the pods are placed otherwise. How the worker preempts is not the user's business."""
    fleet, stored = Fleet(), list[tuple[Json, Json]]()
    fleet.clusters[W1] = older = FakeTarget.build(W1, (0, 15))
    older.stored = lambda *both: stored.append(both)
    made = a_workload()
    made["spec"] |= {"preemptionGates": [{"name": "gate"}]}
    constraints = [{"topology": "rack", "size": 4}]
    made["spec"]["podSets"][0]["topologyRequest"] = {"podsetSliceRequiredTopologyConstraints": constraints}
    for cluster in (W1, W2):
        await fleet.executor.execute(a_workload(), (CreateWorkload(cluster, made),))

    ((sent, kept),) = stored
    assert sent == made
    assert "preemptionGates" not in kept["spec"]
    assert fleet.events.statistics().waiting == 1


async def test_what_follows_a_failed_write_on_a_cluster_is_not_done() -> None:
    """Nobody is told of an admission that was not written."""
    fleet = Fleet()
    stale = {**a_workload(resourceVersion="1"), "status": {}}
    await fleet.clusters[MANAGER].client.create(WORKLOAD, a_workload())
    effects = (
        ApplyStatus(MANAGER, stale, "kueue-admission"),
        AnnounceWorkload("Normal", "admitted"),
        CountAdmitted("q", W1),
    )
    with pytest.raises(Conflict):
        await fleet.executor.execute(a_workload(), effects)

    assert fleet.events.statistics().waiting == 0
    assert fleet.admitted_on == []


async def test_a_question_that_fails_holds_up_no_deletion() -> None:
    """A webhook refuses the status of a copy whose job is to go."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = await client.create(WORKLOAD, a_workload())
    stale = {**a_workload(resourceVersion="1"), "status": {}}
    asked = ApplyStatus(W1, stale, "kueue-admission", optional=True)
    with pytest.raises(Conflict):
        await fleet.executor.execute(a_workload(), (asked, DeleteWorkload(W1, KEY, uid_of(made))))

    assert (await client.list(WORKLOAD)).items == []


async def test_a_note_that_is_refused_holds_up_nothing() -> None:
    """A policy of the manager takes no annotation of ours: the Workload is sent back all the same."""
    fleet = Fleet()
    client = fleet.clusters[MANAGER].client
    made = await client.create(WORKLOAD, a_workload())
    client.faults.add(Refuse(403), on=Match(verbs=("patch",), subresource=""))
    noting = PatchWorkload(MANAGER, KEY, {"metadata": {"uid": uid_of(made), "annotations": {"a": "b"}}}, optional=True)
    with pytest.raises(ApiError):
        await fleet.executor.execute(made, (noting, AnnounceWorkload("Normal", "sent back")))

    assert fleet.events.statistics().waiting == 1


@pytest.mark.parametrize(
    ("fault", "deleted"),
    [
        *((None, (False, False)), (Refuse(403), (True, True)), (Refuse(409), (False, True))),
        *((Reset(), (True, True)), (Refuse(500), (True, True))),
    ],
    ids=["stopped", "forbidden", "conflict", "no answer", "fault"],
)
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
async def test_what_is_asked_to_stop_is_deleted_at_once_only_if_the_request_is_refused(
    fault: Refuse | Reset | None, deleted: tuple[bool, bool], again: bool
) -> None:
    """Its kind's controller ends its pods in its own way. What has nothing to do with that request goes at once. A
    request that met a newer version of the copy is made again with that, once: it may change all the time."""
    fleet, uid = await _with_job()
    client = fleet.clusters[W1].client
    other = a_job()
    other["metadata"]["name"] = "other"
    slice_before = await client.create(JOB, other)
    await client.create(WORKLOAD, a_workload())
    asked = ApplyStatus(W1, {**a_workload(), "status": {}}, "kueue-admission", optional=True)
    effects = (
        asked,
        DeleteJob(W1, JOB, OF_JOB, uid, unless_stopped=True),
        DeleteJob(W1, JOB, ObjectKey.of(slice_before), uid_of(slice_before)),
    )
    if fault is not None:
        client.faults.add(fault, on=Match(verbs=("patch",)))
    with pytest.raises(ApiError) if fault is not None else nullcontext():
        await fleet.executor.execute(a_workload(), effects, again=again)
    seen = [is_terminating(await client.get(JOB, key)) for key in (OF_JOB, ObjectKey.of(slice_before))]
    assert seen == [deleted[again], True]


async def test_a_written_object_is_known_before_the_watch_shows_it() -> None:
    """Otherwise the next decision would ask for the same copy again."""
    fleet = Fleet()
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert fleet.clusters[W1].jobs[JOB.gvk].get(ObjectKey("default", "job")) is not None


@pytest.mark.parametrize("followed", [True, False])
async def test_a_deleted_object_is_gone_before_the_watch_shows_it(followed: bool) -> None:
    """Otherwise the next decision would ask for it again. A kind that nobody follows can be deleted as well."""
    fleet, uid = await _with_job()
    cache = fleet.clusters[W1].jobs[JOB.gvk]
    if not followed:
        fleet.clusters[W1].jobs = {}
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid, "Background"),))
    assert (cache.get(OF_JOB) is None) is followed


async def test_an_accepted_deletion_is_no_removal() -> None:
    """What is deleted in the foreground has still to end, be it seconds before a watch says so: its pods run."""
    fleet, uid = await _with_job()
    cache = fleet.clusters[W1].jobs[JOB.gvk]
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid),))
    left = cache.get(OF_JOB)
    assert left is not None
    assert is_terminating(left)
    assert finalizers_of(left) == [FOREGROUND_FINALIZER]
    assert uid_of(left) == uid


async def test_a_second_deletion_in_the_foreground_mends_one_in_the_background() -> None:
    """An older daemon began it, and a finalizer holds the job: its pods ran on."""
    fleet, uid = await _with_job(finalizers=["example.com/slow"])
    steps: list[tuple[Literal["Foreground", "Background"], list[str]]] = [
        ("Background", []),
        ("Foreground", [FOREGROUND_FINALIZER]),
    ]
    for propagation, added in steps:
        await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid, propagation),))
        left = fleet.clusters[W1].jobs[JOB.gvk].get(OF_JOB)
        assert finalizers_of(left or {}) == ["example.com/slow", *added]


async def _with_job(**metadata: object) -> tuple[Fleet, str]:
    """A worker that has a job, and its UID."""
    fleet, made = Fleet(), a_job()
    made["metadata"] |= metadata
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, made),))
    return fleet, uid_of(await fleet.clusters[W1].client.get(JOB, OF_JOB))


@pytest.mark.parametrize(("name", "gone"), [("job", True), ("", False)])
async def test_a_kind_that_is_not_served_does_not_count_as_a_deleted_object(name: str, gone: bool) -> None:
    fleet, uid = await _with_job()
    error = NotFound("no", status=404)
    error.name = name
    with (
        mock.patch.object(DirectClient, "delete", side_effect=error),
        mock.patch.object(MutationCache, "removed") as removed,
    ):
        await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid),))
    removed.assert_called_once_with(OF_JOB, uid, is_certain=gone)


async def test_only_the_object_that_was_seen_is_deleted() -> None:
    """An object that took the name since is somebody else's, or a newer copy."""
    fleet, uid = await _with_job()
    client = fleet.clusters[W1].client
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, "another", "Background"),))
    assert await client.get(JOB, OF_JOB)

    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid, "Background"),) * 2)
    with pytest.raises(NotFound):
        await client.get(JOB, OF_JOB)


async def test_a_job_that_has_changed_since_it_was_looked_at_stays_where_that_counts() -> None:
    """Whoever gives a finished job more time, or runs it again, does so at this moment."""
    fleet, uid = await _with_job()
    client = fleet.clusters[W1].client
    version = resource_version(await client.get(JOB, OF_JOB))
    await client.merge_patch(JOB, OF_JOB, {"metadata": {"labels": {"keep": "it"}}})
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid, "Background", version=version),))
    version = resource_version(await client.get(JOB, OF_JOB))
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, OF_JOB, uid, "Background", version=version),))
    with pytest.raises(NotFound):
        await client.get(JOB, OF_JOB)


async def test_a_deletion_is_told_once_it_is_accepted_and_not_where_it_met_a_change() -> None:
    fleet, uid = await _with_job()
    client = fleet.clusters[W1].client
    seen = resource_version(await client.get(JOB, OF_JOB))
    await client.merge_patch(JOB, OF_JOB, {"metadata": {"labels": {"keep": "it"}}})
    reported = list[int]()
    for version in (seen, "", ""):  # changed, as it is, gone
        deletion = DeleteJob(W1, JOB, OF_JOB, uid, "Background", version=version, note="it is deleted")
        await fleet.executor.execute(a_workload(), (deletion,))
        reported.append(fleet.events.statistics().waiting)

    assert reported == [0, 1, 1]


async def test_kueues_finalizer_is_left_to_kueue() -> None:
    """Of a pod group it frees the pods while it sees the Workload being deleted, and not after that."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = (await client.create(WORKLOAD, a_workload(finalizers=[WORKLOAD_FINALIZER])))["metadata"]
    await fleet.executor.execute(None, (DeleteWorkload(W1, KEY, made["uid"], made["resourceVersion"]),))
    left = fleet.clusters[W1].workloads.get(KEY) or {}
    assert (is_terminating(left), finalizers_of(left)) == (True, [WORKLOAD_FINALIZER])


async def test_a_finalizer_that_was_put_there_meanwhile_stays() -> None:
    """The list was written without the version it had been read from: another's finalizer was lost."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = (await client.create(WORKLOAD, a_workload(finalizers=[WORKLOAD_FINALIZER])))["metadata"]
    both = [WORKLOAD_FINALIZER, "example.com/keep"]
    await client.merge_patch(WORKLOAD, KEY, {"metadata": {"finalizers": both}})
    freed = {"uid": made["uid"], "resourceVersion": made["resourceVersion"], "finalizers": None}
    with pytest.raises(Conflict):
        await fleet.executor.execute(None, (PatchWorkload(W1, KEY, {"metadata": freed}),))
    assert finalizers_of(await client.get(WORKLOAD, KEY)) == both


async def test_a_copy_that_has_got_a_job_since_stays() -> None:
    """A deletion was held up on its way, as that of a copy that had not won. Another leader had recorded that worker by
    then, and the job that ran was stopped."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = (await client.create(WORKLOAD, a_workload()))["metadata"]
    await client.merge_patch(WORKLOAD, KEY, {"metadata": {"labels": {JOB_UID_LABEL: "uid"}}})
    late = DeleteWorkload(W1, KEY, made["uid"], version=made["resourceVersion"])
    await fleet.executor.execute(None, (late,))
    assert await client.get(WORKLOAD, KEY)


@pytest.mark.parametrize("status", [403, 422], ids=["forbidden", "invalid"])
async def test_a_change_that_is_refused_is_told(status: int) -> None:
    """A permission that lacks for the kind, or definitions of different age: until it is mended, nothing comes home."""
    fleet = Fleet()
    for name in (MANAGER, W1):
        fleet.clusters[name].client.faults.add(Refuse(status), on=Match(verbs=("patch",)))
    key = ObjectKey("default", "job")
    effects: tuple[Effect, ...] = (PatchJobStatus(JOB, key, {}), PatchJob(W1, JOB, key, {}))
    for count, effect in enumerate(effects, start=1):
        for _ in "twice":
            with pytest.raises(ApiError):
                await fleet.executor.execute(a_workload(uid="u"), (effect,))
        assert fleet.events.statistics().waiting == count


@pytest.mark.parametrize(
    ("effect", "note"),
    [
        (PatchJobStatus(JOB, ObjectKey("default", "job"), {}), "the manager cluster refuses the status of jobs.batch"),
        (PatchJob(W1, JOB, ObjectKey("default", "job"), {}), 'worker cluster "w1" refuses a change of jobs.batch'),
    ],
    ids=["the manager", "a worker"],
)
async def test_who_refuses_a_change_is_named(effect: Effect, note: str) -> None:
    fleet, emitted = Fleet(), mock.Mock()
    for name in (MANAGER, W1):
        fleet.clusters[name].client.faults.add(Refuse(403), on=Match(verbs=("patch",)))
    executing = EffectExecutor(fleet.target, emitted, fleet.memory)
    with pytest.raises(ApiError):
        await executing.execute(a_workload(uid="u"), (effect,))
    assert emitted.emit.call_args.args[4].startswith(note)


@pytest.mark.parametrize(
    ("status", "finding"), [(403, None), (422, ToldFinding.STATUS_REFUSED)], ids=["forbidden", "invalid"]
)
async def test_a_status_that_would_be_refused_again_is_told_for_programs(
    status: int, finding: ToldFinding | None
) -> None:
    fleet, emitted = Fleet(), mock.Mock()
    fleet.clusters[MANAGER].client.faults.add(Refuse(status), on=Match(verbs=("patch",)))
    executing, patch = EffectExecutor(fleet.target, emitted, fleet.memory), ObjectKey("default", "job")
    with pytest.raises(ApiError):
        await executing.execute(a_workload(uid="u"), (PatchJobStatus(JOB, patch, {}),))
    assert emitted.emit.call_args.args[7] is finding


@pytest.mark.looptime
@pytest.mark.parametrize("subresource", [True, False], ids=["status", "no subresource"])
@pytest.mark.parametrize("status", [403, 404, 422, 500])
async def test_how_long_a_status_is_refused_is_known_whoever_refuses_it(status: int, subresource: bool) -> None:
    """What follows its last status waits for half a minute only: for a webhook that is down, too."""
    fleet, key = Fleet(), ObjectKey("default", "job")
    fleet.clusters[MANAGER].client.faults.add(Refuse(status), on=Match(verbs=("patch",)))
    cache = fleet.clusters[MANAGER].cache_of(JOB.gvk)
    assert cache is not None
    cache.informer.put(key, a_job())
    for _ in range(2):
        with pytest.raises(ApiError):
            await fleet.executor.execute(a_workload(uid="u"), (PatchJobStatus(JOB, key, {}, subresource=subresource),))
        await anyio.sleep(40)
    assert cache.refusing_for(key) >= 40


@pytest.mark.parametrize(
    ("status", "note", "goes_on"),
    [(403, "does not show whether pods", True), (500, "does not answer whether pods", False)],
)
async def test_a_look_for_pods_that_fails_is_told(status: int, note: str, goes_on: bool) -> None:
    """Nobody is offered the job while it fails: that was silent, but where pods may not be listed."""
    fleet, emitted = Fleet(), mock.Mock()
    fleet.clusters[W1].client.faults.add(Refuse(status), on=Match(verbs=("list",)))
    executing = EffectExecutor(fleet.target, emitted, fleet.memory)
    look, workload = LookForPods(W1, "default", "a/b=job", "1"), a_workload(uid="u")
    fleet.memory.observe(ObjectKey.of(workload), workload)
    with nullcontext() if goes_on else pytest.raises(ApiError):
        await executing.execute(workload, (look,))
    assert note in emitted.emit.call_args.args[4]
    assert (fleet.memory.pods(W1, ObjectKey.of(workload), "1") == ()) is goes_on


@pytest.mark.parametrize(("status", "warned"), [(403, True), (422, True), (409, False), (500, False)])
async def test_a_deletion_that_is_refused_is_told(status: int, warned: bool) -> None:
    """A webhook holds up the next attempt for as long as it refuses."""
    fleet, emitted = Fleet(), mock.Mock()
    fleet.clusters[W1].client.faults.add(Refuse(status), on=Match(verbs=("delete",)))
    executing = EffectExecutor(fleet.target, emitted, fleet.memory)
    for effect in (DeleteJob(W1, JOB, ObjectKey("default", "job"), "u"), DeleteWorkload(W1, KEY, "u", "1")):
        with pytest.raises(ApiError) if status != 409 else nullcontext():
            await executing.execute(a_workload(uid="u"), (effect,))
    notes = [call.args[4] for call in emitted.emit.call_args_list]
    assert len(notes) == (2 if warned else 0)
    assert all('worker cluster "w1" refuses the deletion of ' in note for note in notes)


async def test_a_change_of_what_is_gone_is_no_news() -> None:
    """Whoever deleted it knows."""
    fleet = Fleet()
    with pytest.raises(NotFound):
        await fleet.executor.execute(a_workload(uid="u"), (PatchJobStatus(JOB, ObjectKey("default", "job"), {}),))
    assert fleet.events.statistics().waiting == 0


async def test_a_lost_reply_is_an_error_and_no_news() -> None:
    """Whether the write happened is not known: the cache will tell."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Reset(), on=Match(verbs=("create",)), at="reply")
    with pytest.raises(Unreachable):
        await fleet.executor.execute(a_workload(), (CreateWorkload(W1, a_workload()),))

    assert fleet.clusters[W1].workloads.get(KEY) is None
    assert await fleet.clusters[W1].client.get(WORKLOAD, KEY)


@pytest.mark.looptime
async def test_a_back_off_that_is_all_but_over_is_looked_at_after_a_moment_and_not_at_once() -> None:
    """A remainder of a nanosecond is none for a timedelta: it was looked at again and again without time passing."""
    conflicts = CreateConflicts()
    conflicts.met(JOB, KEY, KEY, Invalid("no", status=422), "no")
    await anyio.sleep(REFUSAL_BACKOFF.base - 0.5)
    assert conflicts.refusal(JOB, KEY, own=()) == Refusal("no", timedelta(seconds=1))
    await anyio.sleep(1.0)
    assert conflicts.refusal(JOB, KEY, own=()) is None


async def test_that_a_kind_has_no_status_to_write_is_told() -> None:
    """Its CustomResourceDefinition came after the manager was asked about it. That a job is gone is no news."""
    fleet = Fleet()
    fleet.clusters[MANAGER].client.faults.add(Refuse(404), on=Match(verbs=("patch",)))
    with pytest.raises(NotFound):
        await fleet.executor.execute(a_workload(uid="u"), (PatchJobStatus(JOB, ObjectKey("default", "job"), {}),))
    assert fleet.events.statistics().waiting == 1
