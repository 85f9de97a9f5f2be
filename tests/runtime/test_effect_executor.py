"""Effects as requests: in their order, up to the first that fails."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from unittest import mock

import anyio
import attrs
import pytest

from multikueue.core.model.copies import bare_metadata
from multikueue.core.model.kinds import JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    FROM_ANNOTATION,
    JOB_UID_LABEL,
    ORIGIN_LABEL,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.worker_kueue import Version
from multikueue.core.model.workloads import attempt
from multikueue.core.workload.effects import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CountAdmitted,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    PatchJob,
    PatchJobStatus,
)
from multikueue.core.workload.facts.refusal_facts import RefusalFacts
from multikueue.core.workload.facts.worker_states import Created, Refusal, Unanswered, Untracked
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    Invalid,
    NotFound,
    NotSent,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from multikueue.kube import Informer
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.create_conflicts import CERTAIN_AFTER, PASSING_FOR, REFUSAL_BACKOFF, CreateConflicts
from multikueue.runtime.effect_executor import TELL_AFTER, EffectExecutor
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.origin import Origin
from multikueue.runtime.target import Target
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse, Registry, Reset
from multikueue.sandbox.crds import load_crds
from tests.kueue_versions import definitions_of

KEY = ObjectKey("default", "wl")
W1, W2 = ClusterName("w1"), ClusterName("w2")


def a_workload(**metadata: object) -> Json:
    """A Workload as small as its schema lets it be."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": "Workload",
        "metadata": {"name": "wl", "namespace": "default", **metadata},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": template}]},
    }


def a_job() -> Json:
    """A Job."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    metadata = {"name": "job", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


@attrs.define(eq=False)
class FakeTarget(Target):
    """A cluster in memory."""

    client: DirectClient

    @classmethod
    def build(cls, name: str, version: Version = (0, 19)) -> FakeTarget:
        registry = Registry(name)
        for definition in definitions_of(version, load_crds()):
            registry.create_object(definition)
        client = DirectClient(registry)
        jobs = {JOB.gvk: MutationCache(Informer(client, JOB))}
        return cls(client=client, workloads=MutationCache(Informer(client, WORKLOAD)), jobs=jobs)


@attrs.define(eq=False)
class Fleet:
    """The manager and two workers, and what was told and counted."""

    clusters: dict[str, FakeTarget] = attrs.field(
        factory=lambda: {name: FakeTarget.build(name or "manager") for name in (MANAGER, W1, W2)}
    )
    dispatched_to: list[str] = attrs.field(factory=list)
    admitted_on: list[str] = attrs.field(factory=list)
    refusals: list[tuple[str, str]] = attrs.field(factory=list)
    gone: set[str] = attrs.field(factory=set)
    memory: WorkloadMemory = attrs.field(factory=WorkloadMemory)
    executor: EffectExecutor = attrs.field(init=False)
    events: EventRecorder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        client = self.clusters[MANAGER].client
        self.events = EventRecorder(client, "test", "test", lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.executor = EffectExecutor(self.target, self.events, self.memory, self)

    def target(self, cluster: ClusterName) -> Target | None:
        return None if cluster in self.gone else self.clusters[cluster]

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.dispatched_to.append(cluster)

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.admitted_on.append(cluster)

    def rejected(self, cluster: ClusterName, reason: str) -> None:
        self.refusals.append((cluster, reason))

    def round_begun(self, cluster_queue: str) -> None:
        raise AssertionError("executing chooses no workers")

    def placed(self, cluster: ClusterName, seconds: float) -> None:
        raise AssertionError("it is told when the record shows")

    def status_synced(self, cluster: ClusterName, seconds: float) -> None:
        raise AssertionError("the reconciler tells it")

    def refused(self, cluster: ClusterName, reason: str) -> None:
        self.refusals.append((cluster, reason))

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        raise AssertionError("executing does not connect")

    def cluster_removed(self, cluster: ClusterName) -> None:
        raise AssertionError("executing removes no cluster")


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

    made = [await fleet.clusters[W1].client.get(*one) for one in ((WORKLOAD, KEY), (JOB, ObjectKey("default", "job")))]
    said = [annotations_of(one)[FROM_ANNOTATION] for one in made]
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
        await fleet.executor.execute(
            a_workload(), (asked, DeleteWorkload(W1, ObjectKey.of(made), made["metadata"]["uid"]))
        )

    assert (await client.list(WORKLOAD)).items == []


async def test_a_written_object_is_known_before_the_watch_shows_it() -> None:
    """Otherwise the next decision would ask for the same copy again."""
    fleet = Fleet()
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert fleet.clusters[W1].jobs[JOB.gvk].get(ObjectKey("default", "job")) is not None


@pytest.mark.parametrize("followed", [True, False])
async def test_a_deleted_object_is_gone_before_the_watch_shows_it(followed: bool) -> None:
    """Otherwise the next decision would ask for it again. A kind that nobody follows can be deleted as well."""
    fleet, key = Fleet(), ObjectKey("default", "job")
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))
    uid = (await fleet.clusters[W1].client.get(JOB, key))["metadata"]["uid"]
    cache = fleet.clusters[W1].jobs[JOB.gvk]
    if not followed:
        fleet.clusters[W1].jobs = {}
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, key, uid=uid),))
    assert (cache.get(key) is None) is followed


@pytest.mark.parametrize(("name", "gone"), [("job", True), ("", False)])
async def test_a_kind_that_is_not_served_does_not_count_as_a_deleted_object(name: str, gone: bool) -> None:
    fleet, key = Fleet(), ObjectKey("default", "job")
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))
    uid = (await fleet.clusters[W1].client.get(JOB, key))["metadata"]["uid"]
    error = NotFound("no", status=404)
    error.name = name
    with (
        mock.patch.object(DirectClient, "delete", side_effect=error),
        mock.patch.object(MutationCache, "removed") as removed,
    ):
        await fleet.executor.execute(None, (DeleteJob(W1, JOB, key, uid=uid),))
    removed.assert_called_once_with(key, uid, is_certain=gone)


async def test_only_the_object_that_was_seen_is_deleted() -> None:
    """An object that took the name since is somebody else's, or a newer copy."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, a_job())
    key = ObjectKey("default", "job")
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, key, uid="another"),))
    assert await client.get(JOB, key)

    uid = (await client.get(JOB, key))["metadata"]["uid"]
    await fleet.executor.execute(None, (DeleteJob(W1, JOB, key, uid=uid), DeleteJob(W1, JOB, key, uid=uid)))
    with pytest.raises(NotFound):
        await client.get(JOB, key)


async def test_kueues_finalizer_does_not_keep_a_copy() -> None:
    """A worker's Kueue puts it there; it is taken off, and others stay."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = await client.create(WORKLOAD, a_workload(finalizers=[WORKLOAD_FINALIZER]))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    await fleet.executor.execute(None, (DeleteWorkload(W1, KEY, uid, (), held=True, version=version),))
    with pytest.raises(NotFound):
        await client.get(WORKLOAD, KEY)


async def test_a_finalizer_that_was_put_there_meanwhile_stays() -> None:
    """The list was written without the version it had been read from: another's finalizer was lost."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = await client.create(WORKLOAD, a_workload(finalizers=[WORKLOAD_FINALIZER]))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    both = [WORKLOAD_FINALIZER, "example.com/keep"]
    await client.merge_patch(WORKLOAD, KEY, {"metadata": {"finalizers": both}})
    await fleet.executor.execute(None, (DeleteWorkload(W1, KEY, uid, (), held=True, version=version),))
    left = (await client.get(WORKLOAD, KEY))["metadata"]
    assert left["finalizers"] == both
    assert "deletionTimestamp" not in left


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


async def test_a_name_that_is_taken_is_told_and_noted() -> None:
    """Somebody else's object is left alone; the message says what to do, and the worker counts as blocked later."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    with pytest.raises(AlreadyExists, match=r'jobs\.batch "default/job" exists on worker cluster "w1"'):
        await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert not fleet.clusters[W1].create_conflicts.refusal(JOB, KEY, own=())


def marked(attempt: str, origin: str = "multikueue") -> Json:
    found = a_job()
    found["metadata"] |= {"labels": {ORIGIN_LABEL: origin}, "annotations": {ATTEMPT_ANNOTATION: attempt}}
    return found


async def test_a_copy_whose_creation_was_not_answered_is_found_under_its_name() -> None:
    """Its event may be late by more than a taken name is waited for: the worker would count as one that refuses."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, marked("a"))
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, marked("a")),))
    assert fleet.memory.creation(W1, KEY, attempt(a_workload())) == Created()


@pytest.mark.parametrize(
    "there",
    [marked("another attempt"), marked("a", origin="another-manager"), a_job(), Match(verbs=("get",))],
    ids=["of another attempt", "of another manager", "nobody's copy", "may not be read"],
)
async def test_what_else_has_its_name_is_not_taken_for_it(there: Json | Match) -> None:
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, marked("a") if isinstance(there, Match) else there)
    if isinstance(there, Match):
        client.faults.add(Refuse(403), on=there)
    with pytest.raises(AlreadyExists):
        await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, marked("a")),))


@pytest.mark.looptime
async def test_a_name_that_stays_taken_is_told() -> None:
    """Not at once: right after a lost reply it is our own object."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    for waiting in (0, 1):
        with pytest.raises(AlreadyExists):
            await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
        assert fleet.events.statistics().waiting == waiting
        await anyio.sleep(TELL_AFTER)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("error", "lasting"),
    [
        (Invalid("spec.x: Invalid value", status=422), 0.0),
        (Forbidden('admission webhook "policy" denied the request', status=403), 0.0),
        (Forbidden('User "x" cannot create resource "jobs"', status=403), CERTAIN_AFTER),
        (AlreadyExists("taken", status=409), CERTAIN_AFTER),
        (Forbidden("exceeded quota: jobs", status=403), PASSING_FOR),
        (NotFound("no such namespace", status=404), PASSING_FOR),
        (TooManyRequests("later", status=429), PASSING_FOR),
        (ServerFault("failed calling webhook", status=500), PASSING_FOR),
    ],
    ids=repr,
)
async def test_what_a_worker_refuses_counts_once_it_has_lasted(error: ApiError, lasting: float) -> None:
    """A policy's word is final; room in a ResourceQuota may be made, and a webhook may answer again."""
    conflicts = CreateConflicts()
    conflicts.met(JOB, KEY, KEY, error, str(error))
    if lasting:
        await anyio.sleep(lasting - 1)
        assert conflicts.refusal(JOB, KEY, own=()) is None
        await anyio.sleep(1)
    facts = RefusalFacts(error.cause or "")
    assert conflicts.refusal(JOB, KEY, own=()) == Refusal(str(error), timedelta(seconds=REFUSAL_BACKOFF.base), facts)
    assert (facts.cause == Cause.NAME_TAKEN) == isinstance(error, AlreadyExists)
    assert conflicts.refusal(WORKLOAD, KEY, own=()) is None
    await anyio.sleep(REFUSAL_BACKOFF.base)
    assert conflicts.refusal(JOB, KEY, own=()) is None


async def test_an_event_in_the_jobs_namespace_has_no_address_of_a_worker() -> None:
    """Where workers are is nobody's business but the operator's."""
    emitted = mock.Mock()
    executing = EffectExecutor(lambda _: None, emitted, WorkloadMemory())
    note = 'worker cluster "w1" refuses it: dial https://10.11.12.13:6443/apis and 10.1.2.3:443'
    await executing.execute(a_workload(uid="u"), (AnnounceWorkload("Warning", note),))
    told = emitted.emit.call_args.args[4]
    assert told == 'worker cluster "w1" refuses it: dial [address] and [address]'


@pytest.mark.parametrize(("status", "told"), [(403, 1), (404, 1), (422, 1), (429, 0), (500, 0)])
async def test_a_refusal_is_noted_and_told(status: int, told: int) -> None:
    """adapters.md H2, 9.9: Kueue's controller tries on in silence. What may pass by itself is not told."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Refuse(status), on=Match(verbs=("create",)))
    with pytest.raises(ApiError):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert len(fleet.clusters[W1].create_conflicts) == 1
    assert fleet.events.statistics().waiting == told


@pytest.mark.looptime
async def test_a_worker_that_refuses_again_is_left_alone_for_longer() -> None:
    """Asking costs a round of the Workload each time."""
    conflicts, error = CreateConflicts(), Invalid("no", status=422)
    waits = []
    for _ in range(6):
        conflicts.met(JOB, KEY, KEY, error, "no")
        refusal = conflicts.refusal(JOB, KEY, own=())
        assert refusal is not None
        waits.append(refusal.left.total_seconds())
        await anyio.sleep(waits[-1])
    assert waits == [300, 600, 1200, 2400, 3600, 3600]
    conflicts.created(JOB, KEY)
    assert len(conflicts) == 0


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Reset(), Unanswered),
        (Refuse(500), Unanswered),
        (Refuse(403), Untracked),
        (Refuse(429), Untracked),
        (None, Created),
    ],
    ids=["no answer", "500", "403", "429", "created"],
)
@pytest.mark.looptime
async def test_it_is_remembered_whether_the_job_may_exist(fault: Reset | Refuse | None, expected: type) -> None:
    """A creation without an answer may have happened; one that was refused has not."""
    fleet = Fleet()
    if fault is not None:
        fleet.clusters[W1].client.faults.add(fault, on=Match(verbs=("create",)))
    with contextlib.suppress(ApiError):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), expected)
    assert isinstance(fleet.memory.creation(W2, KEY, attempt(a_workload(uid="u"))), Untracked)


@pytest.mark.looptime
async def test_a_creation_that_was_not_answered_in_time_may_have_happened() -> None:
    """A timeout is not `NotSent`: the worker may have made the job, or make it later."""
    fleet = Fleet()
    timeout = DeadlineExceeded("no answer in time")
    with (
        mock.patch.object(fleet.clusters[W1].client, "create", side_effect=timeout),
        contextlib.suppress(ApiError),
    ):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), Unanswered)


@pytest.mark.parametrize("then", [Refuse(409), Refuse(429), Refuse(403)], ids=["409", "429", "403"])
@pytest.mark.looptime
async def test_a_creation_in_doubt_stays_so_when_it_is_refused_the_next_time(then: Refuse) -> None:
    """The first request may have created the job, late."""
    fleet = Fleet()
    faults = fleet.clusters[W1].client.faults
    for fault in (Reset(), then):
        faults.clear()
        faults.add(fault, on=Match(verbs=("create",)))
        with contextlib.suppress(ApiError):
            await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), Unanswered)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (a_job(), Untracked),
        (marked("a", origin="another-manager"), Untracked),
        (marked("another attempt"), Unanswered),
        (None, Unanswered),
    ],
    ids=["somebody else's", "of another manager", "ours, of another attempt", "may not be read"],
)
@pytest.mark.looptime
async def test_a_taken_name_may_be_that_of_the_very_job(there: Json | None, expected: type) -> None:
    """A request may be sent twice, after a 5xx with Retry-After or by a proxy: the second finds what the first made."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, there or marked("a"))
    if there is None:
        client.faults.add(Refuse(403), on=Match(verbs=("get",)))
    with pytest.raises(AlreadyExists):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, marked("a")),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), expected)


async def test_nothing_was_sent_to_a_cluster_that_is_gone() -> None:
    fleet = Fleet(gone={W1})
    with pytest.raises(NotSent, match='cluster "w1" is not connected'):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), Untracked)


@pytest.mark.parametrize("status", [403, 422], ids=["forbidden", "invalid"])
async def test_a_change_that_is_refused_is_told(status: int) -> None:
    """A permission that lacks for the kind, or definitions of different age: until it is mended, nothing comes home."""
    fleet = Fleet()
    for name in (MANAGER, W1):
        fleet.clusters[name].client.faults.add(Refuse(status), on=Match(verbs=("patch",)))
    key = ObjectKey("default", "job")
    effects: tuple[Effect, ...] = (PatchJobStatus(JOB, key, {}), PatchJob(W1, JOB, key, {}))
    for told, effect in enumerate(effects, start=1):
        for _ in "twice":
            with pytest.raises(ApiError):
                await fleet.executor.execute(a_workload(uid="u"), (effect,))
        assert fleet.events.statistics().waiting == told


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (PatchJobStatus(JOB, ObjectKey("default", "job"), {}), "the manager cluster refuses the status of jobs.batch"),
        (PatchJob(W1, JOB, ObjectKey("default", "job"), {}), 'worker cluster "w1" refuses a change of jobs.batch'),
    ],
    ids=["the manager", "a worker"],
)
async def test_who_refuses_a_change_is_named(effect: Effect, told: str) -> None:
    fleet, emitted = Fleet(), mock.Mock()
    for name in (MANAGER, W1):
        fleet.clusters[name].client.faults.add(Refuse(403), on=Match(verbs=("patch",)))
    executing = EffectExecutor(fleet.target, emitted, fleet.memory)
    with pytest.raises(ApiError):
        await executing.execute(a_workload(uid="u"), (effect,))
    assert emitted.emit.call_args.args[4].startswith(told)


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
