"""The table itself: its order, its names, and the Workloads that can never run through us."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import CopyRules, SafeAdapter
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL, ORIGIN_NAMESPACE_ANNOTATION
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from multikueue.core.model.workloads import Rejection
from tests.core.building import ADAPTER, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, TABLE, AnnounceWorkload, ApplyStatus, Lost, Snapshot, Worker, decide
from tests.core.wording import verdict_written, words

UNKNOWN = workload(owner=("example.com/v1", "Widget"))
FOREIGN = job(managed_by=None)


def written_by(*managers: str) -> Json:
    """A job whose status these have written."""
    entries = [{"manager": manager, "subresource": "status"} for manager in managers]
    return with_value(job(), ("metadata", "managedFields"), entries)


REFUSING = SafeAdapter(attrs.evolve(ADAPTER, copies=CopyRules(refused=lambda job: "spec.grows is true")))
LIVE = workload(cluster="w1", check="Ready")


def test_the_table_reads_from_the_end_of_a_life_to_its_start() -> None:
    """The order decides: whoever moves a row sees this test."""
    assert [row.name for row in TABLE] == [
        "unreadable",
        "copy",
        "gone",
        "check unknown",
        "evicted unchecked",
        "check taken off",
        "held without check",
        "not ours",
        "pods deleted",
        "rejected",
        "replaced",
        "expired",
        "finished",
        "has ended",
        "never runs",
        "settled",
        "retry asked",
        "no quota",
        "evicted",
        "retrying",
        "unrecorded",
        "unregistered kind",
        "job unknown",
        "stopped here",
        "slice replacement",
        "recorded",
        "delegation unknown",
        "earlier run",
        "earlier pods",
        "split group",
        "waiting group",
        "pending",
    ]


@pytest.mark.parametrize(
    ("local", "facts", "row"),
    [
        (None, {}, "gone: released"),
        (workload(deleting=True, finished="Succeeded"), {}, "gone: goes: stops first"),
        (workload(deleting=True, check=None), {"check": None, "check_unknown": True}, "gone: goes: stops first"),
        (workload(check=None), {"check": None}, "not ours"),
        (workload(check=None), {"check": None, "check_unknown": True}, "check unknown"),
        (workload(check=None, cluster="w1"), {"check": None}, "check taken off: out of sight"),
        (workload(check=None, cluster="w1", quota=False), {"check": None}, "not ours"),
        (workload(check=None, cluster="w1", finished="Succeeded"), {"check": None}, "not ours"),
        (workload(check=None, cluster="w1"), {"check": None, "adapter": None}, "check taken off: out of sight"),
        (workload(check=None, evicted="Preempted"), {"check": None}, "not ours"),
        (workload(check="Rejected", finished="Succeeded"), {}, "rejected"),
        (workload(finished="Succeeded", quota=False), {}, "finished: nothing to sync"),
        (UNKNOWN, {"adapter": None}, "never runs: KindNotEnabled"),
        (workload(), {"job": FOREIGN}, "never runs: NotDelegated"),
        (workload(), {"adapter": REFUSING}, "never runs: CannotBeCopied"),
        (workload(cluster="w1"), {"adapter": REFUSING}, "recorded: out of sight: unknown worker"),
        (workload(quota=False, evicted="Preempted"), {}, "no quota: released"),
        (workload(evicted="Preempted", check="Retry"), {}, "evicted: ends"),
        (workload(check="Retry"), {}, "retrying"),
        (workload(check="Ready", cluster="w1"), {"job": {}}, "job unknown"),
        (workload(check="Pending", cluster="w1"), {}, "recorded: out of sight: unknown worker"),
        (workload(check="Ready"), {}, "unrecorded: nobody has it"),
        (workload(), {}, "pending: offer"),
        (workload(finished="WorkloadSliceReplaced", elastic=True), {}, "replaced"),
        (workload(finished="WorkloadSliceReplaced"), {}, "finished: nothing to sync"),
        (workload(cluster="w1", elastic=True), {}, "recorded: out of sight: unknown worker"),
        (workload(cluster="w1", elastic=True, replaces="older"), {}, "slice replacement: out of sight: unknown worker"),
        (workload(cluster="w1", check="Ready", elastic=True), {}, "recorded: out of sight: unknown worker"),
        (workload(index="1"), {"siblings": (workload(name="a", index="0"),)}, "waiting group"),
    ],
)
def test_the_first_row_that_applies_decides(local: Json | None, facts: Json, row: str) -> None:
    """The plan says which row it came from, for logs."""
    assert decide(snapshot(local, **facts)).row == row


OFFERED = workload(nominated=("w1",))
EVICTED = workload(cluster="w1", check="Ready", evicted="Preempted", evictions=1)


@pytest.mark.parametrize(
    ("local", "there", "row"),
    [
        (OFFERED, worker("w1", copy_of(OFFERED)), "pending: offer"),
        (OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), "pending: record: hand over"),
        (workload(other_checks={"theirs": "Pending"}), worker("w1"), "pending: other checks: say so"),
        (LIVE, worker("w1", reach=Lost(NOW)), "recorded: out of sight: may run"),
        (LIVE, worker("w1", reach=Lost(NOW - timedelta(days=1))), "recorded: out of sight: lost"),
        (LIVE, worker("w1", copy_of(LIVE, admitted=True, owned=True), job_copy_of(LIVE)), "recorded: follow"),
        (LIVE, worker("w1", copy_of(LIVE, admitted=True, owned=True)), "recorded: vanished: a moment ago"),
        (LIVE, worker("w1", copy_of(LIVE, finished="Succeeded")), "recorded: ends there: has ended: finish"),
        (EVICTED, worker("w1", copy_of(LIVE, admitted=True), job_copy_of(LIVE)), "evicted: is to stop"),
        (EVICTED, worker("w1", reach=Lost(NOW, seen=False)), "evicted: may run unseen"),
    ],
)
def test_the_way_that_a_row_has_taken_has_a_name(local: Json, there: Worker, row: str) -> None:
    """A row has a table of its own where it has several ways out: the log says which applied."""
    assert decide(snapshot(local, there, last_worker="w1")).row == row


class TestACopyOnTheManager:
    """Where the manager is a worker, too, it sees copies of its own."""

    def seen(self, **marks: str) -> Json:
        """A Workload with our check, as if somebody had put that on the queue for copies."""
        made = workload()
        metadata = made["metadata"]
        metadata["labels"] = {**metadata.get("labels", {}), ORIGIN_LABEL: marks.get("origin", "multikueue")}
        mark = Marks(marks.get("key", "").encode()).of(made, "of some attempt", "local")
        metadata["annotations"] = {ORIGIN_NAMESPACE_ANNOTATION: "elsewhere", ATTEMPT_ANNOTATION: mark}
        return made

    @pytest.mark.parametrize("deleting", [False, True])
    def test_it_is_never_planned_whatever_it_shows(self, deleting: bool) -> None:
        shown = self.seen()
        if deleting:
            shown["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        decided = decide(snapshot(shown, worker("w1", copy_of(shown)), worker("w2")))
        assert (decided.row, decided.effects, decided.telling) == ("copy", (), ())

    def test_what_runs_is_followed_though_somebody_makes_a_copy_of_it(self) -> None:
        shown = self.seen()
        shown["status"]["clusterName"] = "w1"
        assert decide(snapshot(shown, worker("w1"))).row == "recorded: ends there: gone"

    @pytest.mark.parametrize("marks", [{"origin": "of-a-manager-above"}, {"key": "of another manager"}])
    def test_the_copy_of_a_manager_above_is_dispatched(self, marks: dict[str, str]) -> None:
        assert decide(snapshot(self.seen(**marks), worker("w1"))).row == "pending: offer"


class TestRejection:
    def test_an_unknown_kind_is_rejected_in_kueues_words(self) -> None:
        """The user sees which kind nobody handles."""
        assert words(snapshot(UNKNOWN, adapter=None)) == [
            'rejected: No multikueue adapter found for owner kind "example.com/v1, Kind=Widget"'
        ]

    def test_a_workload_without_owner_is_rejected(self) -> None:
        """There is no job to send."""
        assert words(snapshot(workload(owner=None), adapter=None)) == ["rejected: No multikueue adapter found"]

    def test_a_job_that_the_managers_controllers_would_run_is_rejected(self) -> None:
        """It would run twice: on the manager, and on a worker."""
        seen = snapshot(workload(), job=FOREIGN)
        reason = (
            'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "" '
            "(Kubernetes before v1.32 drops the field)"
        )
        _, advice = decide(seen).effects
        assert words(seen) == [f"rejected: The owner is not managed by Kueue: {reason}", "warn"]
        assert isinstance(advice, AnnounceWorkload)
        assert advice.note.startswith(f"{reason}: create the job again with that value")

    @pytest.mark.parametrize(
        ("seen", "why"),
        [
            (snapshot(UNKNOWN, adapter=None), Rejection.KIND_NOT_ENABLED),
            (snapshot(workload(), job=FOREIGN), Rejection.NOT_DELEGATED),
            (snapshot(workload(), worker("w1"), job=written_by("kube-controller-manager")), Rejection.ACTED_ON_HERE),
        ],
        ids=lambda value: value if isinstance(value, Rejection) else "",
    )
    def test_why_is_written_for_programs_too(self, seen: Snapshot, why: Rejection) -> None:
        """Kueue resets the check once it has deactivated the Workload."""
        assert verdict_written(decide(seen)) == why

    @pytest.mark.parametrize("managers", [("multikueue", "kueue"), ()], ids=["ours", "nobody"])
    def test_a_job_whose_status_only_we_write_is_dispatched(self, managers: tuple[str, ...]) -> None:
        """What an earlier attempt has left in its status is ours."""
        assert decide(snapshot(workload(), worker("w1"), job=written_by(*managers))).row == "pending: offer"

    def test_a_job_that_a_controller_of_the_manager_acts_on_is_rejected(self) -> None:
        """It ignores the field, and would run the job as soon as the check is Ready."""
        seen = snapshot(workload(), worker("w1"), job=written_by("kube-controller-manager"))
        verdict, advice = decide(seen).effects
        why = '"kube-controller-manager" has written its status although spec.managedBy is'
        assert "rejected: A controller of the manager acts on the job" in words(seen)[0]
        assert isinstance(verdict, ApplyStatus)
        assert isinstance(advice, AnnounceWorkload)
        assert why in advice.note
        assert "Kubernetes v1.32 is the first version that heeds the field" in advice.note

    def test_what_runs_on_a_worker_stays_there_whoever_writes_the_status(self) -> None:
        """What runs is never taken."""
        local = workload(check="Ready", cluster="w1")
        there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={}))
        assert decide(snapshot(local, there, job=written_by("kube-controller-manager"))).row == "recorded: follow"

    def test_a_job_that_its_kind_refuses_is_never_offered(self) -> None:
        """Its user learns which field it is before a worker has it."""
        assert words(snapshot(workload(), worker("w1"), adapter=REFUSING)) == [
            "rejected: The job cannot be copied: spec.grows is true",
            "warn",
        ]

    def test_copies_of_a_rejected_workload_go_with_the_verdict(self) -> None:
        """A rejected Workload holds nobody's quota (item 27)."""
        local = workload()
        seen = snapshot(local, worker("w1", copy_of(local), job_copy_of(local)), job=FOREIGN)
        assert words(seen)[2:] == ["delete job on w1"]

    def test_a_deleted_workload_is_not_written_to(self) -> None:
        """Its status cannot be patched any more: trying would never end (item 29)."""
        gone = workload(owner=None, deleting=True)
        assert decide(snapshot(gone, adapter=None)).effects == ()

    def test_a_check_that_says_so_already_is_not_written_again(self) -> None:
        """Rejected is the end."""
        assert decide(snapshot(workload(check="Rejected", owner=None), adapter=None)).effects == ()

    def test_a_finished_workload_is_not_judged(self) -> None:
        """A finished Workload whose kind is no longer registered stays as it is."""
        assert decide(snapshot(workload(finished="Succeeded", owner=None), adapter=None)).effects == ()


class TestDeletedByHand:
    """`kubectl delete workload`: a finalizer holds it until the manager's Kueue has seen that its job has stopped."""

    GONE = workload(deleting=True, cluster="w1", check="Ready")
    RUNNING = job(suspended=True, status={"active": 1, "ready": 1})

    def words(self, *workers: Worker, **facts: Any) -> list[str]:
        facts = {"quiet_for": timedelta(seconds=30), **facts}
        seen = snapshot(facts.pop("local", self.GONE), *workers, job=facts.pop("job", self.RUNNING), **facts)
        return words(seen)

    def test_its_copies_go_first(self) -> None:
        w1 = worker("w1", copy_of(LIVE, admitted=True), job_copy_of(LIVE))
        assert self.words(w1, quiet_for=timedelta(0)) == ["stop on w1", "delete job on w1 unless it is stopped"]

    def test_then_its_job_shows_that_nothing_runs(self) -> None:
        """Kueue cannot put back the template of a job that says it has pods, and would try for ever."""
        assert self.words(worker("w1")) == ["copy job status"]

    def test_while_a_job_copy_is_seen_its_pods_may_run(self) -> None:
        ends = worker("w1", None, job_copy_of(LIVE, deleting=True))
        assert "copy job status" not in self.words(ends)

    def test_slices_that_are_over_or_wait_do_not_have_the_job(self) -> None:
        gone = workload(deleting=True, cluster="w1", elastic=True)
        others = (workload(name="older", finished="WorkloadSliceReplaced"), workload(name="newer", quota=False))
        assert self.words(worker("w1"), local=gone, siblings=others) == ["copy job status"]

    def test_but_not_while_it_may_run_unseen(self) -> None:
        kept = worker("w1", copy_of(LIVE, admitted=True), job_copy_of(LIVE), reach=Lost())
        assert self.words(attrs.evolve(kept, reach=Lost(NOW - timedelta(minutes=1)))) == []
        assert self.words(attrs.evolve(kept, reach=Lost(NOW - timedelta(minutes=15)))) == ["copy job status"]

    @pytest.mark.parametrize(
        "facts",
        [
            {"check": None},
            {"adapter": None},
            {"local": workload(deleting=True)},
            {"job": job(status={"active": 1}) | {"metadata": {**job()["metadata"], "deletionTimestamp": "now"}}},
            {"local": workload(deleting=True, cluster="w1", elastic=True), "siblings": (workload(name="newer"),)},
        ],
        ids=["not ours", "unknown kind", "never assigned", "job deleted, too", "another slice has the job"],
    )
    def test_nor_where_it_is_not_ours_to_say(self, facts: dict[str, Any]) -> None:
        assert self.words(worker("w1"), **facts) == []
