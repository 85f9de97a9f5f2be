"""What holds for every snapshot, however odd: the promises a user of several clusters relies on."""

from __future__ import annotations

from collections import Counter

import attrs
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from multikueue.core.model.conditions import conditions
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.labels import (
    ADMISSION_MANAGER,
    ATTEMPT_ANNOTATION,
    CORDON_ANNOTATION,
    LAST_WORKER_ANNOTATION,
    MOVE_FROM_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
)
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, labels_of, resource_version, uid
from multikueue.core.model.status_apply import OWNED_CONDITIONS
from multikueue.core.model.workloads import (
    cluster_name,
    has_had_owner,
    is_admitted,
    is_elastic,
    is_finished,
    nominated,
    replaces_slice,
)
from tests.core.applying import carry_out
from tests.core.building import mark_on
from tests.core.door import (
    MANAGER,
    SETTINGS,
    AnnounceWorkload,
    ApplyStatus,
    Connected,
    Created,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    JobCopy,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Served,
    Snapshot,
    Worker,
    decide,
    those,
)
from tests.core.strategies import NO_FACTS, snapshots
from tests.core.wording import in_words, words
from tests.examples import examples

slow = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def effects_of(seen: Snapshot) -> tuple[Effect, ...]:
    decided = decide(seen)
    event(decided.row)
    return decided.effects


def status_writes(seen: Snapshot, *, field_manager: str | None = None) -> list[ApplyStatus]:
    return [
        effect
        for effect in those(ApplyStatus, effects_of(seen))
        if effect.cluster == MANAGER and field_manager in (None, effect.field_manager)
    ]


def worker_of(seen: Snapshot, cluster: str) -> Worker | None:
    return next((worker for worker in seen.workers if worker.name == cluster), None)


def copies_on(seen: Snapshot, cluster: str) -> list[Json]:
    worker = worker_of(seen, cluster)
    assert worker is not None, "an effect names a worker that is not in the snapshot"
    return [copy.object for copy in (*worker.jobs, *worker.shared)] + ([worker.copy] if worker.copy else [])


@slow
@given(snapshots())
def test_nothing_is_sent_to_a_worker_out_of_reach(seen: Snapshot) -> None:
    """What is known of it may be old, and the request would only wait."""
    reachable = {worker.name for worker in seen.workers if isinstance(worker.reach, Connected)} | {MANAGER}
    assert {effect.cluster for effect in effects_of(seen)} <= reachable


@slow
@given(snapshots())
def test_what_is_changed_or_deleted_on_a_worker_is_what_was_seen_there(seen: Snapshot) -> None:
    """Every such write names the UID or resourceVersion of a copy of ours: a stranger's object is never touched."""
    for effect in effects_of(seen):
        match effect:
            case DeleteJob() | DeleteWorkload():
                assert effect.uid in {uid(copy) for copy in copies_on(seen, effect.cluster)}
            case PatchWorkload(cluster=cluster) if cluster == MANAGER:
                assert effect.patch["metadata"] == {
                    "uid": uid(seen.workload or {}),
                    "annotations": effect.patch["metadata"]["annotations"],
                }
                assert effect.patch["metadata"]["annotations"].keys() <= {LAST_WORKER_ANNOTATION, MOVE_FROM_ANNOTATION}
                assert effect.patch["metadata"]["annotations"].get(MOVE_FROM_ANNOTATION) is None  # the move is over
            case PatchJob() | PatchWorkload():
                assert effect.patch["metadata"]["uid"] in {uid(copy) for copy in copies_on(seen, effect.cluster)}
            case ApplyStatus() if effect.cluster != MANAGER:
                versions = {resource_version(copy) for copy in copies_on(seen, effect.cluster)}
                assert resource_version(effect.object) in versions - {""}


@slow
@given(snapshots(), st.sampled_from((NO_FACTS, {NAMESPACES_ANNOTATION: '{"*": "mk-*"}'})))
def test_the_managers_workload_is_written_once_by_a_decision(seen: Snapshot, named: dict[str, str]) -> None:
    """A second write would be made from a version that the first one replaces, and be refused."""
    workers = tuple(attrs.evolve(worker, annotations={**worker.annotations, **named}) for worker in seen.workers)
    decided = decide(attrs.evolve(seen, workers=workers))
    written = [
        effect
        for effect in decided.effects
        if isinstance(effect, ApplyStatus | PatchWorkload) and effect.cluster == MANAGER
    ]
    assert len(written) <= 1
    assert not (written and decided.telling)


@slow
@given(snapshots())
def test_a_job_is_created_on_one_worker_and_only_while_none_is_assigned(seen: Snapshot) -> None:
    """It runs once. Once a worker has it, no other one gets it."""
    where = [effect.cluster for effect in those(CreateJob, effects_of(seen))]
    assert len(where) <= 1
    if where:
        assert seen.workload is not None
        if is_elastic(seen.workload) and cluster_name(seen.workload):  # a new slice, on the old one's worker
            assert where[0] == cluster_name(seen.workload)
        else:
            assert cluster_name(seen.workload) is None
            assert where[0] in nominated(seen.workload)


@slow
@given(snapshots())
def test_copies_are_made_only_where_the_job_can_run_and_say_whose_they_are(seen: Snapshot) -> None:
    """A copy without its marks could not be told from a stranger's object, and would never be removed."""
    for effect in effects_of(seen):
        if isinstance(effect, CreateJob | CreateWorkload):
            worker = worker_of(seen, effect.cluster)
            assert worker is not None
            assert seen.workload is not None
            # What it has it keeps, though no config lists it; others of its job go there, too.
            recorded = worker.name in map(cluster_name, (seen.workload, *seen.siblings))
            assert isinstance(worker.reach, Connected)
            assert isinstance(worker.kind, Served)
            assert worker.refusal is None
            assert worker.configured or recorded
            assert labels_of(effect.object)[ORIGIN_LABEL] == "multikueue"
            assert annotations_of(effect.object)[ATTEMPT_ANNOTATION] == mark_on(worker.name, seen.workload)


@slow
@given(snapshots())
def test_cordoned_workers_get_nothing_new(seen: Snapshot) -> None:
    """Neither a copy nor a record, however well they could run it: of a Workload that has nothing there yet."""
    if seen.workload is None or cluster_name(seen.workload) or seen.siblings:
        return
    noted = {CORDON_ANNOTATION: "true"}
    workers = tuple(
        attrs.evolve(worker, jobs=(), annotations=noted, reach=Connected(), kind=Served(), refusal=None)
        for worker in seen.workers
    )
    decided = decide(attrs.evolve(seen, workers=workers))
    event(decided.row)
    for effect in decided.effects if not decided.row.startswith("unrecorded") else ():
        assert not isinstance(effect, CreateWorkload)
        assert not (isinstance(effect, ApplyStatus) and cluster_name(effect.object))


@slow
@given(snapshots())
def test_status_writes_on_the_manager_fail_if_anything_changed_since(seen: Snapshot) -> None:
    """They carry the resourceVersion that was read, or they would undo what Kueue wrote meanwhile."""
    for write in status_writes(seen):
        assert seen.workload is not None
        assert resource_version(write.object) == resource_version(seen.workload) != ""
    for effect in effects_of(seen):
        if isinstance(effect, PatchJobStatus):
            assert effect.patch["metadata"]["resourceVersion"] == "rv-uid-of-job"


@slow
@given(snapshots())
def test_the_manager_is_written_to_once_in_a_plan(seen: Snapshot) -> None:
    """A second write to the Workload or the job would carry a resourceVersion that the first has made old."""
    assert len(status_writes(seen)) <= 1
    assert sum(isinstance(effect, PatchJobStatus) for effect in effects_of(seen)) <= 1


@slow
@given(snapshots())
def test_a_cluster_name_is_set_once_and_only_to_a_nominated_worker(seen: Snapshot) -> None:
    """Kueue's webhook refuses everything else, for ever."""
    for write in status_writes(seen, field_manager=ADMISSION_MANAGER):
        assert seen.workload is not None
        before, after = cluster_name(seen.workload), cluster_name(write.object)
        if after != before:
            assert before is None
            assert after in nominated(seen.workload)
        assert not (after and nominated(write.object))


@slow
@given(snapshots())
def test_an_apply_as_kueue_keeps_what_kueue_owns(seen: Snapshot) -> None:
    """A field left out of the body is a field deleted: quota, conditions, other checks."""
    for write in status_writes(seen, field_manager=ADMISSION_MANAGER):
        assert seen.workload is not None
        old, new = seen.workload["status"], write.object["status"]
        assert _untold(new.get("admission")) == _untold(old.get("admission"))
        assert new.get("schedulingStats") == old.get("schedulingStats")
        assert [entry["name"] for entry in new["admissionChecks"]] == [
            entry["name"] for entry in old["admissionChecks"]
        ]
        owned = {entry["type"] for entry in conditions(seen.workload)} & OWNED_CONDITIONS
        assert owned <= {entry["type"] for entry in conditions(write.object)}


def _untold(admission: Json | None) -> Json | None:
    """All but whether a topology is awaited: that is for us to say."""
    if admission is None:
        return None
    placed = [{**assignment, "delayedTopologyRequest": None} for assignment in admission["podSetAssignments"]]
    return {**admission, "podSetAssignments": placed}


@slow
@given(snapshots())
def test_a_job_that_names_another_live_slice_is_never_deleted(seen: Snapshot) -> None:
    """An older slice's end, deletion or loss of quota does not stop what a newer one runs (item 23)."""
    live = {
        sibling["metadata"]["name"] for sibling in seen.siblings if is_elastic(sibling) and not is_finished(sibling)
    }
    live -= {sibling["metadata"]["name"] for sibling in seen.siblings if "deletionTimestamp" in sibling["metadata"]}
    named = {uid(copy.object): prebuilt_workload(copy.object) for worker in seen.workers for copy in worker.shared}
    for effect in effects_of(seen):
        if isinstance(effect, DeleteJob):
            assert named.get(effect.uid) not in live


@slow
@given(snapshots())
def test_one_gate_at_a_time_is_opened(seen: Snapshot) -> None:
    """Two workers would evict somebody for one job; a second pass right after the first opens none."""
    settings_ = attrs.evolve(SETTINGS, orchestrated_preemption=True)
    decided = decide(seen, settings=settings_)
    opened = [word for word in in_words(seen, decided) if word.startswith("open gate")]
    assert len(opened) <= 1
    if opened:
        again = carry_out(seen, decided)
        assert not [w for w in words(again, settings=settings_) if w.startswith("open gate")]


def is_left_over(seen: Snapshot, worker: Worker, copy: JobCopy) -> bool:
    """Whether a job is of an earlier attempt by its mark, or has none beside a Workload copy of this one."""
    assert seen.workload is not None
    proofs = [
        Marks(SETTINGS.mark_key).proof(obj, seen.workload, worker.name) for obj in (copy.object, worker.copy or {})
    ]
    return proofs[0] is Proof.OTHER or proofs == [Proof.NONE, Proof.EXACT]


@slow
@given(snapshots())
def test_what_runs_on_the_assigned_worker_is_never_deleted_while_it_is_assigned(seen: Snapshot) -> None:
    """Only an end, an eviction or the loss of quota lets it go. What an earlier attempt has left behind goes first."""
    decided = decide(seen)
    if decided.row.startswith("recorded: ") and seen.workload is not None:
        left = {uid(copy.object) for worker in seen.workers for copy in worker.jobs if is_left_over(seen, worker, copy)}
        deletes = [effect for effect in decided.effects if isinstance(effect, DeleteJob | DeleteWorkload)]
        deleted = {effect.cluster for effect in deletes if effect.uid not in left}
        assert cluster_name(seen.workload) not in deleted


@slow
@given(snapshots())
def test_no_object_is_deleted_twice_and_nothing_is_both_changed_and_deleted(seen: Snapshot) -> None:
    """One plan asks one thing of an object; a job that is on its way out is asked nothing."""
    deleted = Counter(effect.uid for effect in effects_of(seen) if isinstance(effect, DeleteJob | DeleteWorkload))
    assert set(deleted.values()) <= {1}
    patched = {dig(effect.patch, "metadata", "uid") for effect in effects_of(seen) if isinstance(effect, PatchWorkload)}
    assert not patched & set(deleted)
    going = {
        uid(copy.object)
        for worker in seen.workers
        for copy in worker.jobs
        if "deletionTimestamp" in copy.object["metadata"]
    }
    assert not going & set(deleted)


@slow
@given(snapshots())
def test_if_nobody_else_does_anything_there_is_soon_nothing_to_do(seen: Snapshot) -> None:
    """Two passes never undo each other, and a state that is reached costs no requests."""
    for _ in range(8):
        decided = decide(seen)
        if all(isinstance(effect, AnnounceWorkload) for effect in decided.effects):
            return
        seen = carry_out(seen, decided)
    raise AssertionError(f"still at it: {decided.row}: {in_words(seen, decided)}")


@slow
@given(snapshots())
def test_a_job_is_created_only_on_the_recorded_worker(seen: Snapshot) -> None:
    """Whoever looks after a crash knows the one cluster that may have this attempt's job."""
    for effect in effects_of(seen):
        if isinstance(effect, CreateJob):
            assert seen.workload is not None
            assert effect.cluster == cluster_name(seen.workload)


@slow
@given(snapshots())
def test_a_job_is_created_once(seen: Snapshot) -> None:
    """Where a job has ever stood behind the Workload copy, or was created a moment ago, there is none to create."""
    created = those(CreateJob, effects_of(seen))
    for effect in created:
        worker = worker_of(seen, effect.cluster)
        assert worker is not None
        assert worker.copy is not None
        replaces = seen.workload is not None and replaces_slice(seen.workload)
        assert replaces or not (has_had_owner(worker.copy) or isinstance(worker.creation, Created))
        assert is_admitted(worker.copy)
        assert not is_finished(worker.copy)
