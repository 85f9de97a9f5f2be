"""Effects as requests: in their order, up to the first that fails."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import WORKLOAD_FINALIZER
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import (
    MANAGER,
    Announce,
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
from multikueue.errors import AlreadyExists, ApiError, Conflict, NotFound, ServerFault, Unreachable
from multikueue.kube import Informer
from multikueue.protocols import ApiClient
from multikueue.runtime.create_conflicts import CERTAIN_AFTER, FORGOTTEN_AFTER, CreateConflicts
from multikueue.runtime.effect_executor import TELL_AFTER, EffectExecutor, Target
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.mutation_cache import MutationCache
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse, Registry, Reset
from multikueue.sandbox.crds import load_crds

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
class FakePlace:
    """A cluster in memory."""

    client: DirectClient
    workloads: MutationCache
    jobs: MutationCache
    create_conflicts: CreateConflicts = attrs.field(factory=CreateConflicts)

    def cache_of(self, gvk: GVK) -> MutationCache | None:
        return self.jobs if gvk == JOB.gvk else None

    @classmethod
    def build(cls, name: str) -> FakePlace:
        registry = Registry(name)
        for definition in load_crds():
            registry.create_object(definition)
        client = DirectClient(registry)
        seam: ApiClient = client
        return cls(client, MutationCache(Informer(seam, WORKLOAD)), MutationCache(Informer(seam, JOB)))


@attrs.define(eq=False)
class Fleet:
    """The manager and two workers, and what was told and counted."""

    clusters: dict[str, FakePlace] = attrs.field(
        factory=lambda: {name: FakePlace.build(name or "manager") for name in (MANAGER, W1, W2)}
    )
    dispatched_to: list[str] = attrs.field(factory=list)
    admitted_on: list[str] = attrs.field(factory=list)
    gone: set[str] = attrs.field(factory=set)

    def place(self, cluster: ClusterName) -> Target | None:
        return None if cluster in self.gone else self.clusters[cluster]

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.dispatched_to.append(cluster)

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.admitted_on.append(cluster)

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        raise AssertionError("performing does not connect")

    def cluster_removed(self, cluster: ClusterName) -> None:
        raise AssertionError("performing removes no cluster")


def executor(fleet: Fleet) -> tuple[EffectExecutor, EventRecorder]:
    """A effects, and the events it emits."""
    events = EventRecorder(fleet.clusters[MANAGER].client, "test", "test", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return EffectExecutor(fleet, events, fleet), events


async def test_a_copy_that_was_created_is_counted() -> None:
    """The metric says how much is offered to whom; what failed was not offered."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Refuse(500))
    perform, _ = executor(fleet)
    with pytest.raises(ServerFault):
        await perform.perform(a_workload(), (CreateWorkload(W1, a_workload()),))
    await perform.perform(a_workload(), (CreateWorkload(W2, a_workload()),))

    assert await fleet.clusters[W2].client.get(WORKLOAD, KEY)
    assert fleet.dispatched_to == [W2]


async def test_what_follows_a_failed_write_on_a_cluster_is_not_done() -> None:
    """Nobody is told of an admission that was not written."""
    fleet = Fleet()
    stale = {**a_workload(resourceVersion="1"), "status": {}}
    await fleet.clusters[MANAGER].client.create(WORKLOAD, a_workload())
    perform, events = executor(fleet)
    effects = (ApplyStatus(MANAGER, stale, "kueue-admission"), Announce("Normal", "admitted"), CountAdmitted("q", W1))
    with pytest.raises(Conflict):
        await perform.perform(a_workload(), effects)

    assert events.statistics().waiting == 0
    assert fleet.admitted_on == []


async def test_a_written_object_is_known_before_the_watch_shows_it() -> None:
    """Otherwise the next decision would ask for the same copy again."""
    fleet = Fleet()
    perform, _ = executor(fleet)
    await perform.perform(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert fleet.clusters[W1].jobs.get(ObjectKey("default", "job")) is not None


async def test_only_the_object_that_was_seen_is_deleted() -> None:
    """An object that took the name since is somebody else's, or a newer copy."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, a_job())
    perform, _ = executor(fleet)
    key = ObjectKey("default", "job")
    await perform.perform(None, (DeleteJob(W1, JOB, key, uid="another"),))
    assert await client.get(JOB, key)

    uid = (await client.get(JOB, key))["metadata"]["uid"]
    await perform.perform(None, (DeleteJob(W1, JOB, key, uid=uid), DeleteJob(W1, JOB, key, uid=uid)))
    with pytest.raises(NotFound):
        await client.get(JOB, key)


async def test_kueues_finalizer_does_not_keep_a_copy() -> None:
    """A worker's Kueue puts it there; it is taken off, and others stay."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    made = await client.create(WORKLOAD, a_workload(finalizers=[WORKLOAD_FINALIZER]))
    perform, _ = executor(fleet)
    await perform.perform(None, (DeleteWorkload(W1, KEY, made["metadata"]["uid"], (), held=True),))
    with pytest.raises(NotFound):
        await client.get(WORKLOAD, KEY)


async def test_a_name_that_is_taken_is_told_and_noted() -> None:
    """Somebody else's object is left alone; the message says what to do, and the worker counts as blocked later."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    perform, _ = executor(fleet)
    with pytest.raises(AlreadyExists, match=r'jobs\.batch "default/job" exists on worker cluster "w1"'):
        await perform.perform(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert not fleet.clusters[W1].create_conflicts.block(JOB, KEY, own=())


@pytest.mark.looptime
async def test_a_name_that_stays_taken_is_told() -> None:
    """Not at once: right after a lost reply it is our own object."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    perform, events = executor(fleet)
    for waiting in (0, 1):
        with pytest.raises(AlreadyExists):
            await perform.perform(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
        assert events.statistics().waiting == waiting
        await anyio.sleep(TELL_AFTER)


@pytest.mark.looptime
@pytest.mark.parametrize("status", [403, 404, 422], ids=["forbidden", "no such namespace", "invalid"])
async def test_what_a_worker_refuses_is_told_and_stands_in_the_way(status: int) -> None:
    """adapters.md H2, 9.9: a webhook, a quota or a missing namespace there; Kueue's controller tries on in silence."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Refuse(status), on=Match(verbs=("create",)))
    perform, events = executor(fleet)
    with pytest.raises(ApiError):
        await perform.perform(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    create_conflicts = fleet.clusters[W1].create_conflicts
    await anyio.sleep(CERTAIN_AFTER)
    assert create_conflicts.block(JOB, KEY, own=())
    assert not create_conflicts.block(WORKLOAD, KEY, own=())
    await anyio.sleep(FORGOTTEN_AFTER)
    assert not create_conflicts.block(JOB, KEY, own=())
    assert events.statistics().waiting == 1


@pytest.mark.parametrize("status", [403, 422], ids=["forbidden", "invalid"])
async def test_a_change_that_is_refused_is_told(status: int) -> None:
    """A permission that lacks for the kind, or definitions of different age: until it is mended, nothing comes home."""
    fleet = Fleet()
    for name in (MANAGER, W1):
        fleet.clusters[name].client.faults.add(Refuse(status), on=Match(verbs=("patch",)))
    perform, events = executor(fleet)
    key = ObjectKey("default", "job")
    effects: tuple[Effect, ...] = (PatchJobStatus(JOB, key, {}), PatchJob(W1, JOB, key, {}))
    for told, effect in enumerate(effects, start=1):
        for _ in "twice":
            with pytest.raises(ApiError):
                await perform.perform(a_workload(uid="u"), (effect,))
        assert events.statistics().waiting == told


async def test_a_change_of_what_is_gone_is_no_news() -> None:
    """Whoever deleted it knows."""
    fleet = Fleet()
    perform, events = executor(fleet)
    with pytest.raises(NotFound):
        await perform.perform(a_workload(uid="u"), (PatchJobStatus(JOB, ObjectKey("default", "job"), {}),))
    assert events.statistics().waiting == 0


async def test_a_lost_reply_is_an_error_and_no_news() -> None:
    """Whether the write happened is not known: the cache will tell."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Reset(), on=Match(verbs=("create",)), at="reply")
    perform, _ = executor(fleet)
    with pytest.raises(Unreachable):
        await perform.perform(a_workload(), (CreateWorkload(W1, a_workload()),))

    assert fleet.clusters[W1].workloads.get(KEY) is None
    assert await fleet.clusters[W1].client.get(WORKLOAD, KEY)


async def test_a_cluster_that_is_gone_is_unreachable() -> None:
    """It was there when the plan was made."""
    fleet = Fleet(gone={W1})
    perform, _ = executor(fleet)
    with pytest.raises(Unreachable, match='cluster "w1" is not connected'):
        await perform.perform(a_workload(), (CreateWorkload(W1, a_workload()),))


@pytest.mark.looptime
async def test_a_block_that_is_all_but_over_is_looked_at_after_a_moment_and_not_at_once() -> None:
    """A remainder of a nanosecond is none for a timedelta: it was looked at again and again without time passing."""
    create_conflicts = CreateConflicts()
    create_conflicts.met(JOB, KEY, KEY)
    await anyio.sleep(FORGOTTEN_AFTER - 0.5)
    assert create_conflicts.block(JOB, KEY, own=()) == 1.0
    await anyio.sleep(1.0)
    assert create_conflicts.block(JOB, KEY, own=()) is None


@pytest.mark.looptime
async def test_blocks_of_workloads_nobody_asks_about_are_forgotten() -> None:
    """A worker that refuses what others run would cost memory for every job there ever was."""
    create_conflicts = CreateConflicts()
    for number in range(20):
        create_conflicts.met(JOB, ObjectKey("default", f"job-{number}"), KEY)
        await anyio.sleep(60)
    assert len(create_conflicts) <= 6


async def test_that_a_kind_has_no_status_to_write_is_told() -> None:
    """Its CustomResourceDefinition came after the manager was asked about it. That a job is gone is no news."""
    fleet = Fleet()
    perform, events = executor(fleet)
    fleet.clusters[MANAGER].client.faults.add(Refuse(404), on=Match(verbs=("patch",)))
    with pytest.raises(NotFound):
        await perform.perform(a_workload(uid="u"), (PatchJobStatus(JOB, ObjectKey("default", "job"), {}),))
    assert events.statistics().waiting == 1
