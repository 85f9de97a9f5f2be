"""What is stopped on the manager without an eviction: an end that is settled there, a job that its Kueue suspends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import attrs
import pytest

from multikueue.adapters import AVAILABLE, JobKind, SafeAdapter
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.conditions import conditions, parse_timestamp
from multikueue.core.model.labels import COPY_OF_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig, uid, with_value
from tests.adapters.kinds import case_of
from tests.core.building import EARLIER, JOB_NAME, UNMARKED, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    FINISHING,
    NOW,
    RESUMING,
    AnnounceWorkload,
    ApplyStatus,
    Connecting,
    Lost,
    Opaque,
    PatchJobStatus,
    Reach,
    Snapshot,
    Unanswered,
    Worker,
    decide,
    sole,
    those,
)
from tests.core.wording import words

READY = workload(cluster="w1", check="Ready")
TARGET = {"type": "FailureTarget", "status": "True", "reason": "ManuallyTerminated", "message": "by hand"}
STATUS: Json = {"active": 1, "startTime": "2026-11-21T11:00:00Z", "conditions": [TARGET]}
TERMINATED = job(suspended=False, status=STATUS)
ENDING = [kind for kind in AVAILABLE if case_of(kind).succeeded is not None]


def runs(status: Json | None = None, local: Json = READY) -> Worker:
    return worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status=status or {"active": 1}))


class TestSettledEnds:
    """Somebody has made FailureTarget true on the manager's Job: it can only fail."""

    def test_the_copy_is_stopped_first(self) -> None:
        steps = words(snapshot(READY, runs(), job=TERMINATED))
        assert steps[0] == "stop on w1"
        assert "copy job status" not in steps

    WAITING: tuple[tuple[str, dict[str, Any]], ...] = (
        ("gone", {"cluster": "w1", "check": "Ready"}),
        ("without quota", {"quota": False}),
        ("not offered yet", {}),
        ("offered", {"nominated": ("w1",)}),
        ("being evicted", {"evicted": "Preempted"}),
    )

    @pytest.mark.parametrize("facts", [facts for _, facts in WAITING], ids=[name for name, _ in WAITING])
    def test_then_it_fails_in_these_words_and_is_offered_to_nobody(self, facts: Any) -> None:
        seen = snapshot(workload(**facts), worker("w1"), job=TERMINATED)
        patch = sole(PatchJobStatus, decide(seen).effects)
        failed = next(entry for entry in patch.patch["status"]["conditions"] if entry["type"] == "Failed")
        assert (failed["status"], failed["reason"], failed["message"]) == ("True", "ManuallyTerminated", "by hand")
        assert not patch.patch["status"].get("active")

    def test_one_that_never_started_gets_its_start_with_its_end(self) -> None:
        """The server takes no end without one."""
        waits = job(suspended=True, status={"conditions": [TARGET]})
        patch = sole(PatchJobStatus, decide(snapshot(workload(quota=False), worker("w1"), job=waits)).effects)
        assert patch.patch["status"]["startTime"]

    def test_its_copies_go_before_that(self) -> None:
        local = workload(nominated=("w1",))
        assert words(snapshot(local, worker("w1", copy_of(local)), job=TERMINATED))[0] == "delete workload on w1"

    def test_a_slice_of_it_says_what_is_waited_for(self) -> None:
        """An elastic job was resized while its copy, of the slice before, was ending."""
        copy = job_copy_of(workload(name="before"), deleting=True, status={"active": 1})
        seen = snapshot(workload(), worker("w1", None, copy), job=TERMINATED)
        (entry,) = sole(ApplyStatus, decide(seen).effects).object["status"]["admissionChecks"]
        which = f'worker cluster "w1": Job "{JOB_NAME}" (UID {uid(copy)})'
        assert entry["message"] == f"Waiting for {which} is still ending, held by the finalizer example.com/slow"

    @pytest.mark.parametrize("copy", ["FailureTarget", "SuccessCriteriaMet", "Complete", "Failed"])
    def test_a_copy_that_ends_is_followed_to_its_end(self, copy: str) -> None:
        """Mostly the condition is the copy's own; and what completes meanwhile is shown as failed."""
        status = {"active": 0, "conditions": [{**TARGET, "type": copy}]}
        assert decide(snapshot(READY, runs(status), job=TERMINATED)).row == "recorded: follow"

    def test_the_workload_is_finished_where_the_managers_server_takes_no_end(self) -> None:
        """Its quota is free then."""
        seen = snapshot(READY, worker("w1"), job=TERMINATED)
        assert words(attrs.evolve(seen, refused_for=timedelta(seconds=29))) == ["copy job status"]
        late = attrs.evolve(seen, refused_for=timedelta(seconds=30), quiet_for=timedelta(seconds=30))
        write = sole(ApplyStatus, decide(late).effects)
        assert write.object["status"]["conditions"][-1]["reason"] == "Failed"
        assert write.object["status"]["conditions"][-1]["message"] == "by hand"

    @pytest.mark.parametrize("place", [worker("w1"), worker("w1", reach=Lost(NOW - timedelta(minutes=15)))])
    @pytest.mark.parametrize("kind", ENDING, ids=lambda kind: kind.resource.gvk.kind)
    def test_what_shows_its_end_has_run_whatever_becomes_of_its_copies(self, kind: JobKind, place: Worker) -> None:
        """They were deleted, or their worker was lost, before its Kueue had finished the Workload: it ran again."""
        gvk = kind.resource.gvk
        ended = {
            **job(suspended=False),
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "status": case_of(kind).succeeded,
        }
        local = workload(cluster="w1", check="Ready", admitted=True, owner=(gvk.api_version, gvk.kind))
        seen = snapshot(local, place, job=ended, adapter=kind, quiet_for=timedelta(seconds=20))
        assert (words(seen), decide(seen).look_again) == ([], 10.0)
        (written,) = words(attrs.evolve(seen, quiet_for=FINISHING))
        assert written.startswith("finish Succeeded")

    @pytest.mark.parametrize("where", [ClusterName("w1"), None], ids=["had a worker", "never started"])
    def test_an_end_that_was_refused_is_shown_once_it_is_taken(self, where: ClusterName | None) -> None:
        """The Workload was finished meanwhile, as its quota is free; a restart knows of no refusal."""
        local = workload(cluster=where, check="Ready" if where else "Pending", finished="Failed")
        seen = snapshot(local, worker("w1"), job=TERMINATED)
        (patch,) = those(PatchJobStatus, decide(seen).effects)
        assert "Failed" in [entry["type"] for entry in patch.patch["status"]["conditions"]]
        ended = job(status={**STATUS, "active": 0, "conditions": [TARGET, {**TARGET, "type": "Failed"}]})
        assert words(attrs.evolve(seen, jobs={JOB_NAME: ended})) == []
        may_run = worker("w1", None, job_copy_of(local, deleting=True, status={"active": 1}))
        assert "copy job status" not in words(snapshot(local, may_run, job=TERMINATED)), "it ends there still"
        assert words(attrs.evolve(seen, siblings=(workload(name="next"),))) == [], "another one has the job"

    @pytest.mark.parametrize("reach", [Connecting(), Lost(NOW - timedelta(minutes=5), seen=False)], ids=["new", "lost"])
    def test_where_it_may_run_unseen_a_finished_one_is_looked_at_again(self, reach: Reach) -> None:
        """No event tells that its worker is in sight again, and has nothing of it: a restart came in between."""
        local = workload(cluster="w1", check="Ready", finished="Failed")
        plan = decide(snapshot(local, worker("w1", reach=reach), job=TERMINATED))
        assert (plan.effects, plan.look_again) == ((), 120.0)

    def test_a_job_that_may_run_on_a_lost_worker_shows_its_end_once_that_is_given_up(self) -> None:
        """Nothing has changed for long by then."""
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=15)))
        assert words(snapshot(READY, lost, job=TERMINATED, quiet_for=timedelta(hours=1))) == ["copy job status"]

    @pytest.mark.parametrize(("seconds", "row"), [(89, "settled: stop it"), (90, "evicted: waited long enough")])
    def test_one_that_is_evicted_holds_its_quota_no_longer_than_any_other(self, seconds: int, row: str) -> None:
        """Its pods may not end: who preempts it does not wait for that."""
        local = workload(cluster="w1", check="Ready", evicted="Preempted")
        (since,) = (
            parse_timestamp(entry["lastTransitionTime"]) for entry in conditions(local) if entry["type"] == "Evicted"
        )
        assert since is not None
        ending = worker("w1", None, job_copy_of(local, deleting=True, status={"active": 1}))
        now = since + timedelta(seconds=seconds)
        seen = snapshot(local, ending, job=TERMINATED, quiet_for=timedelta(seconds=20))
        decided = decide(seen, at=now)
        assert decided.row == row
        assert decided.look_again == 1.0 or row != "settled: stop it", "nothing else wakes it (seed 21063)"
        shown = [effect.patch["status"] for effect in those(PatchJobStatus, decided.effects)]
        assert [status["active"] for status in shown] == ([] if row == "settled: stop it" else [0])

    def test_a_worker_out_of_sight_may_run_it(self) -> None:
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=5), seen=False))
        plan = decide(snapshot(READY, lost, job=TERMINATED))
        assert (plan.effects, plan.look_again) == ((), 600.0)

    def test_a_slice_of_it_names_the_worker_that_cannot_be_seen(self) -> None:
        """It has never said a word: another slice of its job was placed there (seeds 20197, 21199)."""
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=5), seen=False))
        seen = snapshot(workload(cluster="w1", check="Pending", said=""), lost, job=TERMINATED)
        (entry,) = sole(ApplyStatus, decide(seen).effects).object["status"]["admissionChecks"]
        assert (
            entry["message"]
            == 'Waiting for worker cluster "w1": it cannot be seen and may still run an earlier attempt'
        )


ACTIVE: dict[str, Json] = {
    "Job": {"active": 1},
    "JobSet": {"replicatedJobsStatus": [{"name": "a", "active": 1}]},
    "RayJob": {"jobDeploymentStatus": "Running"},
    "RayCluster": {"state": "ready"},
    "RayService": {"conditions": [{"type": "Ready", "status": "True"}]},
    "TrainJob": {"jobsStatus": [{"name": "a", "active": 1}]},
    "AppWrapper": {"conditions": [{"type": "QuotaReserved", "status": "True"}]},
    "PyTorchJob": {"replicaStatuses": {"Worker": {"active": 1}}},
    "MPIJob": {"replicaStatuses": {"Worker": {"active": 1}}},
    "PipelineRun": {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]},
    "Workflow": {"phase": "Running", "nodes": {"a": {"phase": "Running"}}},
    "TaskRun": {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]},
}
"""What each kind's job says that runs."""
KINDS = {kind.resource.gvk.kind: kind for kind in (*AVAILABLE, *map(declared_kind, PROFILES.values()))}
SUSPENDABLE = [name for name in ACTIVE if KINDS[name].copies.suspend is not None]
each_kind = pytest.mark.parametrize("kind", [KINDS[name] for name in SUSPENDABLE], ids=SUSPENDABLE)


def suspended(kind: JobKind) -> Json:
    """A job of a kind that its Kueue has suspended again, and that shows a run."""
    gvk = kind.resource.gvk
    made = {**job(), "apiVersion": gvk.api_version, "kind": gvk.kind, "spec": {}, "status": ACTIVE[gvk.kind]}
    return made if kind.copies.suspend is None else with_value(made, kind.copies.suspend, kind.copies.suspend_value)


def of_kind(kind: JobKind, *workers: Worker, gone: bool, **facts: Any) -> Snapshot:
    gvk = kind.resource.gvk
    local = workload(cluster="w1", check="Ready", admitted=True, owner=(gvk.api_version, gvk.kind))
    known: Any = {"unchanged_here_for": RESUMING, **facts}
    return snapshot(None if gone else local, *workers, job=suspended(kind), adapter=kind, **known)


class TestStoppedHere:
    """The manager's Kueue has suspended it, as it does not match its Workload any more."""

    @each_kind
    @pytest.mark.parametrize("gone", [True, False], ids=["no Workload", "its Workload"])
    def test_it_is_shown_as_stopped_once_no_copy_is_seen(self, kind: JobKind, gone: bool) -> None:
        patch = sole(PatchJobStatus, decide(of_kind(kind, worker("w1"), gone=gone)).effects)
        after = {**suspended(kind), "status": dig(patch.patch, "status") or {}}
        assert SafeAdapter(kind).release_patch(after) is None
        assert "startTime" not in (patch.patch["status"] or {})

    @each_kind
    @pytest.mark.parametrize("gone", [True, False], ids=["no Workload", "its Workload"])
    def test_its_copy_is_stopped_first(self, kind: JobKind, gone: bool) -> None:
        resource = kind.resource
        there = runs()
        there = attrs.evolve(there, jobs=tuple(attrs.evolve(job, resource=resource) for job in there.jobs))
        steps = words(of_kind(kind, there, gone=gone))
        assert steps[0] == "stop on w1"
        assert "copy job status" not in steps

    DONE: ClassVar[Json] = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}

    @pytest.mark.parametrize("gone", [True, False], ids=["no Workload", "its Workload"])
    def test_one_that_has_ended_meanwhile_is_shown_so_and_is_not_run_again(self, gone: bool) -> None:
        """Its Kueue goes on with it once it matches its Workload again: it ran twice."""
        copy = copy_of(READY, admitted=True, owned=True, finished="Succeeded")
        ended = worker("w1", copy, job_copy_of(READY, status=self.DONE))
        assert words(of_kind(KINDS["Job"], ended, gone=gone)) == ["copy job status"]

    @pytest.mark.parametrize("gone", [True, False], ids=["no Workload", "its Workload"])
    def test_so_is_one_that_has_succeeded_and_is_being_deleted(self, gone: bool) -> None:
        """Its TTL there is over, a finalizer holds it, and it ran again. What has failed may have failed of that."""
        failed: Json = {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}
        for status, shown in ((self.DONE, True), (failed, False)):
            goes = worker("w1", None, job_copy_of(READY, status=status, deleting=True))
            assert (words(of_kind(KINDS["Job"], goes, gone=gone)) == ["copy job status"]) is shown

    @pytest.mark.parametrize("attempt", [EARLIER, UNMARKED])
    def test_an_end_that_nothing_proves_is_removed(self, attempt: str) -> None:
        """Whoever may create jobs there could say that it has ended."""
        planted = job_copy_of(READY, status=self.DONE, attempt=attempt)
        planted["metadata"]["annotations"].pop(COPY_OF_ANNOTATION, None)
        seen = of_kind(KINDS["Job"], worker("w1", None, planted), gone=True)
        assert words(seen) == ["delete job on w1"]

    def test_nor_is_that_of_another_job_of_the_same_name_shown(self) -> None:
        former = with_value(job(), ("metadata", "uid"), "uid-former")
        seen = of_kind(KINDS["Job"], worker("w1", None, job_copy_of(READY, of=former, status=self.DONE)), gone=True)
        assert words(seen) == ["delete job on w1"]

    @pytest.mark.parametrize("name", ["TaskRun", "PipelineRun", "Workflow"])
    def test_what_other_controllers_stop_is_shown_so_once_its_workload_is_gone(self, name: str) -> None:
        """A TaskRun cannot be suspended, and a PipelineRun is not suspended again, but cancelled."""
        kind = KINDS[name]
        goes_on = {**suspended(kind), "spec": {"status": "StoppedRunFinally"}}
        seen = attrs.evolve(of_kind(kind, worker("w1"), gone=True), jobs={JOB_NAME: goes_on})
        patch = sole(PatchJobStatus, decide(seen).effects)
        assert patch.patch["status"] is None
        assert not SafeAdapter(kind).shows_former_run({**goes_on, "status": {}})

    @pytest.mark.parametrize("name", ["TaskRun", "PipelineRun", "Workflow"])
    def test_while_their_workload_is_there_they_go_on(self, name: str) -> None:
        kind = KINDS[name]
        goes_on = {**suspended(kind), "spec": {}}
        seen = attrs.evolve(of_kind(kind, worker("w1"), gone=False), jobs={JOB_NAME: goes_on})
        assert decide(seen).row == "recorded: ends there: gone"

    @pytest.mark.parametrize("name", ["PipelineRun", "Workflow"])
    def test_what_waits_for_its_first_start_is_not_stopped(self, name: str) -> None:
        """Its controller says so on the copy, and that is shown."""
        waits = {
            "PipelineRun": {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "PipelineRunPending"}]},
            "Workflow": {"phase": "Running", "conditions": [{"type": "PodRunning", "status": "False"}]},
        }
        assert not KINDS[name].is_stopped_here({**suspended(KINDS[name]), "status": waits[name]})

    def test_a_job_that_goes_on_is_left_alone(self) -> None:
        shown = snapshot(READY, runs(), job=job(suspended=False, status={"active": 1}))
        assert decide(shown).effects == ()

    @pytest.mark.parametrize(
        ("last", "waits"), [(None, True), (ClusterName("w2"), True), (ClusterName("w1"), False)], ids=str
    )
    def test_a_worker_out_of_sight_that_may_have_it_is_waited_for(self, last: ClusterName | None, waits: bool) -> None:
        hidden = worker("w2", reach=Connecting())
        seen = of_kind(KINDS["Job"], worker("w1"), hidden, gone=True, last_worker=last)
        assert words(seen) == ([] if waits else ["copy job status"])
        assert decide(seen).look_again == (5.0 if waits else None)

    def test_a_creation_that_was_not_answered_may_show_yet(self) -> None:
        """The memory holds it in doubt until it would show."""
        sent = worker("w1", creation=Unanswered(timedelta(seconds=3)))
        assert words(of_kind(KINDS["Job"], sent, gone=True)) == []

    def test_a_lost_worker_is_waited_for_as_long_as_ever(self) -> None:
        for minutes, expected in ((14, []), (15, ["copy job status"])):
            lost = worker("w1", reach=Lost(NOW - timedelta(minutes=minutes)))
            assert words(of_kind(KINDS["Job"], lost, gone=True)) == expected

    def test_a_lost_worker_of_one_that_goes_is_looked_at_again_once_it_is_given_up(self) -> None:
        """No event tells that: Kueue held what was deleted for ever, and the job ran nowhere."""
        goes = workload(cluster="w1", check="Ready", deleting=True)
        for minutes, expected, again in ((5, [], 600.0), (15, ["copy job status"], None)):
            lost = worker("w1", reach=Lost(NOW - timedelta(minutes=minutes), seen=False))
            seen = snapshot(goes, lost, job=suspended(KINDS["Job"]))
            assert (words(seen), decide(seen).look_again) == (expected, again)

    def test_one_that_goes_without_a_record_is_shown_as_stopped_too(self) -> None:
        """An eviction erases which worker had it, or somebody does, and Kueue waits for the job all the same."""
        erased = workload(deleting=True)
        erased["status"]["conditions"].append({"type": "Admitted", "status": "True"})
        for goes in (workload(evicted="Preempted", deleting=True), erased):
            assert words(snapshot(goes, worker("w1"), job=suspended(KINDS["Job"]))) == ["copy job status"]

    def test_one_that_goes_and_has_ended_is_finished_where_kueue_does_not_let_it_go(self) -> None:
        """It was stopping the job, and cannot take away the start of one that has ended: it tried for ever."""
        ended = {**suspended(KINDS["Job"]), "status": self.DONE}
        recorded = workload(cluster="w1", check="Ready", deleting=True)
        for goes in (recorded, workload(evicted="Preempted", deleting=True)):
            seen = snapshot(goes, worker("w1"), job=ended)
            assert (words(seen), decide(seen).look_again) == ([], 5.0)
            (written,) = words(attrs.evolve(seen, quiet_for=timedelta(seconds=5)))
            assert written.startswith("finish Succeeded")
        finished = workload(cluster="w1", check="Ready", deleting=True, finished="Succeeded")
        assert words(snapshot(finished, worker("w1"), job=ended, quiet_for=timedelta(seconds=5))) == []

    def test_a_worker_that_cannot_be_read_is_waited_for_as_one_that_is_lost_and_told(self) -> None:
        """The next Workload waits for the job to show no run, and only the job is left to tell it."""
        for minutes, expected in ((0, []), (1, ["warn"]), (14, ["warn"]), (15, ["copy job status"])):
            odd = worker("w1", reach=Opaque())
            seen = of_kind(KINDS["Job"], odd, gone=True, quiet_for=timedelta(minutes=minutes))
            assert words(seen) == expected
        decided = decide(of_kind(KINDS["Job"], odd, gone=True, quiet_for=timedelta(minutes=14))).effects
        assert [(effect.note, effect.about) for effect in those(AnnounceWorkload, decided)] == [
            (
                'Waiting for worker cluster "w1": it may still run a job whose Workload is gone',
                suspended(KINDS["Job"]),
            )
        ]

    def test_where_another_workload_of_it_runs_it_is_left_alone(self) -> None:
        slice_ = workload(name="another", cluster="w1", check="Ready", elastic=True)
        assert words(of_kind(KINDS["Job"], worker("w1"), gone=True, siblings=(slice_,))) == []
