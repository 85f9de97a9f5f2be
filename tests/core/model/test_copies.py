"""Building copies, and telling whether a copy still is one.

A mark proves that we have made a copy, for this attempt and on this worker; what has none proves nothing.
"""

from __future__ import annotations

import copy
from typing import ClassVar

import attrs
import pytest

from multikueue.core.model.adapter import Stamp
from multikueue.core.model.copies import (
    differs_in_spec,
    prebuilt_workload,
    priority_patch,
    spec_digest,
    stamped_metadata,
    with_worker_names,
    workload_copy,
)
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    COPY_OF_ANNOTATION,
    GROUP_WORKLOAD_ANNOTATION,
    JOB_MARK_ANNOTATION,
    ORIGIN_LABEL,
    PREBUILT_WORKLOAD,
    SLICE_REPLACEMENT_ANNOTATION,
    SPEC_ANNOTATION,
    STARTED_LABELS,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.marks import Marks, Proof, mark_of
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, digest, pruned, with_value
from multikueue.core.model.workload_facts import COPIES
from multikueue.core.model.workloads import attempt
from tests.core.building import UNMARKED, copy_of, job, workload
from tests.core.pods import group
from tests.core.recorded import Recorded, recorded

STAMP = Stamp("here", "job-train-1a2b3", "abc")
CLASS = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
POD_CLASS = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}


def is_up_to_date(local: Json, remote: Json) -> bool:
    """Whether the copy is neither replaced nor patched."""
    return not differs_in_spec(local, remote) and priority_patch(local, remote) is None


@pytest.mark.parametrize("replaced", ["victim/job-x-1", "team/job-x-1", "job-x-1"])
@pytest.mark.parametrize("there", ["", "team", "mk-team"])
def test_the_slice_that_a_copy_replaces_is_one_of_its_own_namespace(replaced: str, there: str) -> None:
    """Whoever may write the annotation names what he wants; the worker's Kueue would end a slice of somebody else."""
    local = with_value(workload(elastic=True), ("metadata", "annotations", SLICE_REPLACEMENT_ANNOTATION), replaced)
    stamp = attrs.evolve(STAMP, namespace=there)
    made = with_worker_names(workload_copy(local, stamp), stamp)
    named = made["metadata"]["annotations"][SLICE_REPLACEMENT_ANNOTATION]
    assert named == f"{made['metadata']['namespace']}/job-x-1" == f"{there or 'team'}/job-x-1"


def test_a_copy_has_labels_and_annotations_and_no_other_metadata() -> None:
    """No owner, no finalizers, no UID, no status: all that is the worker's."""
    local = workload()
    local["metadata"] |= {"annotations": {"a": "1"}, "finalizers": ["f"], "generation": 3, "managedFields": []}
    local["metadata"]["labels"]["team"] = "x"
    made = workload_copy(local, STAMP)
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert made["metadata"]["labels"] == {"team": "x", ORIGIN_LABEL: "here"}
    assert made["metadata"]["annotations"].items() >= {("a", "1"), (ATTEMPT_ANNOTATION, "abc")}


def test_the_copy_of_a_group_has_what_kueue_would_have_put_on_it() -> None:
    """By the annotation its Kueue is woken, by the finalizer it sees the deletion, and lets go of the pods (T4, T9)."""
    made = workload_copy(group("a", "b"), STAMP)
    assert made["metadata"]["annotations"][GROUP_WORKLOAD_ANNOTATION] == "true"
    assert made["metadata"]["finalizers"] == [WORKLOAD_FINALIZER]


def test_a_copy_has_metadata_of_its_own_and_the_spec_of_its_workload() -> None:
    """A spec is sent as it is: to copy one of 1.2 MB in small parts takes 20 ms of the loop, and 14 MB."""
    local = workload()
    before = copy.deepcopy(local)
    made = workload_copy(local, STAMP)
    made["metadata"]["labels"]["x"] = "y"
    assert local == before
    assert made["spec"] is local["spec"]


@pytest.mark.parametrize("length", [63, 64])
def test_a_job_copy_names_its_workload_in_every_form_a_worker_may_read(length: int) -> None:
    """Old workers read the label, new ones the annotation; a label cannot hold a long name."""
    name = "w" * length
    metadata = stamped_metadata(job(), Stamp("here", name, "abc"))
    assert metadata["annotations"][PREBUILT_WORKLOAD] == name
    assert metadata["labels"].get(PREBUILT_WORKLOAD) == (name if length <= 63 else None)
    assert metadata["labels"][ORIGIN_LABEL] == "here"
    assert prebuilt_workload({"metadata": metadata}) == name


def test_the_workload_of_a_job_copy_is_read_from_either_form() -> None:
    """Copies of the built-in controller have only one of them. A worker's Kueue reads the annotation first."""
    both = {"labels": {PREBUILT_WORKLOAD: "old"}, "annotations": {PREBUILT_WORKLOAD: "new"}}
    assert prebuilt_workload({"metadata": both}) == "new"
    assert prebuilt_workload({"metadata": {"labels": {PREBUILT_WORKLOAD: "w"}}}) == "w"
    assert prebuilt_workload({"metadata": {"annotations": {PREBUILT_WORKLOAD: "w"}}}) == "w"
    assert prebuilt_workload({"metadata": {}}) == ""


class TestDrift:
    @pytest.mark.parametrize(
        "spec",
        [
            {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"defaulted": True}}}]},
            {"active": False},
            {"preemptionGates": [{"name": "kueue.x-k8s.io/multikueue"}]},
            {"maximumExecutionTimeSeconds": 60},
        ],
        ids=["template", "active", "gates", "new default"],
    )
    def test_what_a_worker_does_to_its_copy_is_no_drift(self, spec: Json) -> None:
        """Versions and webhooks differ between clusters (item 25)."""
        assert is_up_to_date(workload(), copy_of(workload(), spec=spec))

    @pytest.mark.parametrize(
        "spec",
        [{"queueName": "other"}, {"podSets": [{"name": "main", "count": 2}]}, {"podSets": []}],
        ids=["queue", "count", "pod sets"],
    )
    def test_another_queue_or_size_is_drift_on_either_side(self, spec: Json) -> None:
        """It would run somewhere else, or something else."""
        assert differs_in_spec(workload(), copy_of(workload(), spec=spec))
        assert differs_in_spec(workload(spec=spec), copy_of(workload()))
        assert differs_in_spec(workload(spec=spec), copy_of(workload(), attempt=UNMARKED))

    def test_any_change_of_the_managers_spec_is_drift(self) -> None:
        """The copy notes what it was made from."""
        changed = workload(spec={"maximumExecutionTimeSeconds": 60})
        assert differs_in_spec(changed, copy_of(workload()))
        assert is_up_to_date(changed, copy_of(workload(), attempt=UNMARKED))

    def test_a_default_count_is_one(self) -> None:
        """Written out or not."""
        bare = workload(spec={"podSets": [{"name": "main"}]})
        assert is_up_to_date(bare, copy_of(bare, spec={"podSets": [{"name": "main", "count": 1}]}))

    def test_the_digest_sees_neither_priority_nor_what_a_worker_owns(self) -> None:
        """A new priority is patched, not made anew."""
        changed = workload(spec={"priority": 5, "priorityClassRef": CLASS, "active": False, "preemptionGates": []})
        assert spec_digest(changed) == spec_digest(workload())


class TestPriority:
    def test_number_and_class_follow_the_manager(self) -> None:
        """The patch names the object it was made for."""
        local = workload(spec={"priority": 9, "priorityClassRef": CLASS})
        low = {"priority": 1, "priorityClassRef": {**CLASS, "name": "low"}}
        remote = copy_of(local, spec=low)
        assert priority_patch(local, remote) == {
            "metadata": {"uid": "uid-copy"},
            "spec": {"priority": 9, "priorityClassRef": {"name": "high"}},
        }
        assert not differs_in_spec(local, remote)
        assert priority_patch(local, copy_of(local)) is None

    @pytest.mark.parametrize("side", ["manager", "worker"])
    def test_pod_priority_classes_are_each_clusters_own(self, side: str) -> None:
        """The same name may mean another number there: not followed (Kueue's rule)."""
        ours, theirs = (POD_CLASS, CLASS) if side == "manager" else (CLASS, POD_CLASS)
        local = workload(spec={"priority": 9, "priorityClassRef": ours})
        assert priority_patch(local, copy_of(local, spec={"priority": 1, "priorityClassRef": theirs})) is None


@pytest.mark.parametrize(
    ("remote", "spent"),
    [
        (copy_of(workload()), False),
        (copy_of(workload(), evicted=True), False),
        (copy_of(workload(), finished="Succeeded"), False),
        (copy_of(workload(), finished="Succeeded", spec={"active": False}), False),
        (copy_of(workload(), finished="Failed"), False),
        (copy_of(workload(), finished="FailedToStart"), False),
        (copy_of(workload(), finished="WorkloadSliceReplaced"), False),
        (copy_of(workload(), finished="Succeeded", evicted=True), True),
        (copy_of(workload(), finished="Failed", evicted=True), True),
        (copy_of(workload(), finished="OutOfSync"), True),
        (copy_of(workload(), finished="OwnerNotFound"), True),
        (copy_of(workload(), finished="SomethingNew"), True),
        (copy_of(workload(), spec={"active": False}), True),
    ],
    ids=[
        *("new", "evicted", "ended", "ended, inactive", "failed", "not started", "replaced"),
        *("evicted and ended", "evicted and failed", "out of sync", "no owner", "unknown", "inactive"),
    ],
)
def test_a_spent_copy_will_never_run(remote: Json, spent: bool) -> None:
    """An evicted one is queued again by its worker; an ended one has run. Pods may end well while they are evicted."""
    facts = COPIES.of(remote)
    assert facts.is_spent is spent
    assert facts.has_ended is (facts.is_finished and not spent)


PAIRS = [
    (local, remote)
    for local in recorded("workloads", "manager")
    for remote in recorded("workloads", "worker")
    if local.step == remote.step and local.object["metadata"]["name"] == remote.object["metadata"]["name"]
]


@pytest.mark.parametrize(("local", "remote"), PAIRS, ids=str)
def test_a_real_copy_on_a_real_worker_has_not_drifted(local: Recorded, remote: Recorded) -> None:
    """What a real Kueue does to a copy, adopting, admitting and finishing it, is never a reason to replace it."""
    assert is_up_to_date(local.object, remote.object)
    made = workload_copy(local.object, Stamp("multikueue", "w", attempt(local.object)))
    made["metadata"] |= {"uid": "u"}
    made["spec"] = remote.object["spec"]
    assert is_up_to_date(local.object, made)


class TestPriorityClasses:
    OURS: ClassVar[Json] = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}

    def test_a_class_is_added_while_the_copy_waits(self) -> None:
        """Its API server still allows it."""
        local = workload(spec={"priority": 5, "priorityClassRef": self.OURS})
        patch = priority_patch(local, copy_of(workload()))
        assert patch is not None
        assert patch["spec"] == {"priority": 5, "priorityClassRef": self.OURS}

    @pytest.mark.parametrize("turned", [False, True], ids=["added", "taken away"])
    def test_of_a_copy_with_quota_the_number_alone_follows(self, turned: bool) -> None:
        """Its API server refuses a class that comes or goes; the whole patch would fail for ever."""
        plain, classed = workload(spec={"priority": 1}), workload(spec={"priority": 5, "priorityClassRef": self.OURS})
        local, before = (plain, classed) if turned else (classed, plain)
        patch = priority_patch(local, copy_of(before, admitted=True))
        assert patch is not None
        assert patch["spec"] == {"priority": local["spec"]["priority"]}

    def test_another_class_of_the_same_kind_follows_while_it_runs(self) -> None:
        """Kueue allows the name to change."""
        local = workload(spec={"priority": 5, "priorityClassRef": {**self.OURS, "name": "higher"}})
        before = workload(spec={"priority": 5, "priorityClassRef": self.OURS})
        patch = priority_patch(local, copy_of(before, admitted=True))
        assert patch is not None
        assert patch["spec"] == {"priorityClassRef": {"name": "higher"}}


class TestMarksOfAStart:
    """A job made from what `kubectl get -o yaml` showed of one that ran, or an elastic one that has grown."""

    @staticmethod
    def marked(**labels: str) -> Json:
        metadata = {"labels": labels, "annotations": {"kueue.x-k8s.io/workload": "job-old-1a2b3", "note": "mine"}}
        template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        return workload(spec={"podSets": [{"name": "main", "count": 1, "template": template}]})

    def test_they_are_not_copied(self) -> None:
        """The worker's Kueue puts its own there, and gives up on a job that has others."""
        local = self.marked(app="x", **dict.fromkeys(STARTED_LABELS, "theirs"))
        (pod_set,) = copy_of(local)["spec"]["podSets"]
        assert pod_set["template"]["metadata"] == {"labels": {"app": "x"}, "annotations": {"note": "mine"}}
        assert dig(local, "spec", "podSets")[0]["template"]["metadata"]["labels"][STARTED_LABELS[0]] == "theirs"

    def test_they_make_no_difference(self) -> None:
        """Neither does a copy that an earlier version made, with the marks: what runs there goes on."""
        local, plain = self.marked(app="x", **{STARTED_LABELS[0]: "main"}), self.marked(app="x")
        assert not differs_in_spec(local, copy_of(local))
        assert not differs_in_spec(local, copy_of(plain))
        of_old = copy_of(local)
        given = {key: item for key, item in local["spec"].items() if key not in ("priority", "active")}
        of_old["metadata"]["annotations"][SPEC_ANNOTATION] = digest(pruned(given))
        assert not differs_in_spec(local, of_old)
        assert differs_in_spec(self.marked(app="y"), of_old)

    def test_without_them_a_copy_notes_what_earlier_versions_noted(self) -> None:
        """An update of the daemon replaces nothing that runs."""
        given = {key: item for key, item in workload()["spec"].items() if key not in ("priority", "active")}
        assert copy_of(workload())["metadata"]["annotations"][SPEC_ANNOTATION] == digest(pruned(given))


LOCAL = workload()
MARKS = Marks(b"secret")
MINE = MARKS.of(LOCAL, attempt(LOCAL), "w1")


def proof(mark: str | None, *, cluster: str = "w1", local: Json = LOCAL, marks: Marks = MARKS) -> Proof:
    annotations = {} if mark is None else {ATTEMPT_ANNOTATION: mark}
    return marks.proof({"metadata": {"annotations": annotations}}, local, cluster)


def test_a_copy_of_ours_is_proven() -> None:
    assert proof(MINE) is Proof.EXACT


def test_its_mark_proves_nothing_on_another_worker() -> None:
    """Whoever reads it on one worker may write it on another."""
    assert proof(MINE, cluster="w2") is Proof.OTHER


def test_nor_in_another_attempt() -> None:
    assert proof(MINE, local=workload(evictions=1)) is Proof.OTHER


def test_nor_for_another_workload_of_that_name() -> None:
    again = workload()
    again["metadata"]["uid"] = "another"
    assert proof(MINE, local=again) is Proof.OTHER


@pytest.mark.parametrize("mark", [None, "", attempt(LOCAL), "what anybody may write"])
def test_what_anybody_may_write_proves_nothing_and_excludes_nothing(mark: str | None) -> None:
    """Unmarked: Kueue's own controller. The attempt itself: a former version of ours."""
    assert proof(mark) is Proof.NONE


def test_a_former_versions_mark_of_another_attempt_is_one() -> None:
    assert proof("0123456789abcdef") is Proof.OTHER


def test_a_key_that_is_lost_proves_nothing_and_excludes_nothing() -> None:
    assert proof(MINE, marks=Marks(b"another")) is Proof.NONE


def test_a_mark_of_our_key_cannot_be_made_up() -> None:
    assert proof(MINE[:-1] + ("0" if MINE[-1] != "0" else "1")) is Proof.OTHER


def test_marks_and_their_maker_do_not_tell_the_key() -> None:
    assert "secret" not in MINE + repr(MARKS)
    assert b"secret".hex() not in MINE


def test_it_fits_an_annotation_and_says_nothing_that_a_user_wrote() -> None:
    assert mark_of({"metadata": {"annotations": {ATTEMPT_ANNOTATION: MINE}}}) == MINE
    assert len(MINE) == 41


def test_a_job_is_proven_in_any_attempt_and_by_no_workload_copy() -> None:
    """Whoever was only offered the Workload cannot read it."""
    ours: Json = {"metadata": {"annotations": {JOB_MARK_ANNOTATION: MARKS.of_job(LOCAL, "w1")}}}
    assert MARKS.made_job(ours, workload(evictions=3), "w1")
    assert not MARKS.made_job(ours, LOCAL, "w2")
    assert not MARKS.made_job(ours, with_value(LOCAL, ("metadata", "uid"), "uid-later"), "w1")
    assert not Marks(b"other").made_job(ours, LOCAL, "w1")
    assert not MARKS.made_job({"metadata": {"annotations": {JOB_MARK_ANNOTATION: MINE}}}, LOCAL, "w1")
    assert not MARKS.made_job({"metadata": {}}, LOCAL, "w1")


def test_a_copy_is_known_by_the_job_that_it_was_made_of_whichever_workload_that_had() -> None:
    made_of = job()
    stamp = Stamp("here", "job-train-1a2b3", MINE, copy_of=MARKS.of_copy(made_of, "w1"))
    copy: Json = {"metadata": stamped_metadata(made_of, stamp)}
    assert MARKS.made_copy(copy, made_of, "w1")
    assert not MARKS.made_copy(copy, made_of, "w2")
    assert not MARKS.made_copy(copy, with_value(made_of, ("metadata", "uid"), "uid-of-next"), "w1")
    assert not MARKS.made_copy(copy, None, "w1")
    assert not MARKS.made_copy({"metadata": {}}, made_of, "w1")
    assert not Marks(b"other").made_copy(copy, made_of, "w1")
    other = {"metadata": {"annotations": {COPY_OF_ANNOTATION: MARKS.of_job(made_of, "w1")}}}
    assert not MARKS.made_copy(other, made_of, "w1"), "a mark of another kind"


def test_a_workload_copy_has_no_mark_of_jobs() -> None:
    stamp = Stamp("here", "job-train-1a2b3", MINE, job_mark=MARKS.of_job(LOCAL, "w1"))
    assert stamped_metadata(job(), stamp)["annotations"][JOB_MARK_ANNOTATION] == stamp.job_mark
    assert JOB_MARK_ANNOTATION not in workload_copy(LOCAL, stamp)["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("evictions", "expected"), [(0, Proof.EXACT), (1, Proof.EXACT), (8, Proof.EXACT), (9, Proof.OTHER)]
)
def test_an_attempt_that_is_evicted_keeps_its_marks_though_the_eviction_is_counted(
    evictions: int, expected: Proof
) -> None:
    """Kueue counts an eviction as it begins, and may count several before the quota is free."""
    assert proof(MINE, local=workload(evicted="preempted", evictions=evictions)) is expected
