"""What Kueue's core does next about a Workload, and the status that comes of it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.eviction import evicted
from multikueue.core.model.names import Json
from multikueue.sandbox.kueue.deciding_workloads import Situation, decide_workload
from multikueue.sandbox.kueue.effects import NOTHING, ApplyStatus, Decision, Replace, Rest, Step
from multikueue.sandbox.kueue.statuses import released, reserved, synced_admitted, unreserved
from tests.sandbox.kueue.objects import admission_check, cluster_queue, condition, configuration, flavor, local_queue

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = timestamp(NOW - timedelta(seconds=30))
ASSIGNED = [{"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}]


def workload(*, checks: dict[str, str] | None = None, active: bool = True, **conditions: tuple[str, str]) -> Json:
    """A Workload with conditions (status, reason), a job's if nothing else is said."""
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": f"{kind} said", "lastTransitionTime": EARLIER}
        for kind, (status, reason) in conditions.items()
    ]
    status: Json = {"conditions": listed}
    if conditions.get("QuotaReserved", ("",))[0] == "True":
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": ASSIGNED}
    if checks:
        status["admissionChecks"] = [
            {"name": name, "state": state, "message": "", "lastTransitionTime": EARLIER}
            for name, state in checks.items()
        ]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j1", "uid": "job", "controller": True}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "w",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "labels": {"kueue.x-k8s.io/job-uid": "job"},
            "ownerReferences": [owner],
        },
        "spec": {"active": active, "queueName": "lq", "podSets": [{"name": "main"}]},
        "status": status,
    }


def decide(
    workload: Json, *, checks: tuple[str, ...] = ("mk",), queues: bool = True, orphaned: bool = False
) -> Decision:
    mk = {**admission_check(), "status": {"conditions": [{"type": "Active", "status": "True"}]}}
    objects = [flavor(), cluster_queue(checks=checks), local_queue(), mk] if queues else []
    before = copy.deepcopy(workload)
    decision = decide_workload(Situation(workload, configuration(*objects), NOW, orphaned))
    assert workload == before, "deciding changes nothing"
    return decision


def applied(decision: Decision) -> Json:
    """What the core applies; it does so under its own name and only on the version it has seen."""
    assert isinstance(decision, Step)
    assert isinstance(decision.request, ApplyStatus)
    assert decision.request.field_manager == "kueue-admission"
    assert decision.request.object["metadata"]["resourceVersion"] == "7"
    return decision.request.object


def events(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision, Step)
    return [(note.reason, note.note) for note in decision.notes]


HELD: dict[str, Any] = {"QuotaReserved": ("True", "QuotaReserved")}
RUNNING: dict[str, Any] = {**HELD, "Admitted": ("True", "Admitted")}


def test_the_checks_of_the_queue_are_entered_before_anything_else() -> None:
    decision = decide(workload())
    assert isinstance(decision, Step)
    assert isinstance(decision.request, Replace)
    assert decision.request.subresource == "status"
    entry = {"name": "mk", "state": "Pending", "message": "", "lastTransitionTime": timestamp(NOW)}
    assert decision.request.object["status"]["admissionChecks"] == [entry]


def test_a_check_the_queue_no_longer_has_is_removed() -> None:
    decision = decide(workload(checks={"mk": "Ready", "old": "Ready"}))
    assert isinstance(decision, Step)
    assert isinstance(decision.request, Replace)
    assert [entry["name"] for entry in decision.request.object["status"]["admissionChecks"]] == ["mk"]


def test_quota_without_ready_checks_is_not_admission() -> None:
    body = applied(decide(workload(checks={"mk": "Pending"}, **HELD)))
    assert condition(body, "Admitted") == (
        "False",
        "UnsatisfiedAdmissionChecks",
        "The workload has not all checks ready",
    )


def test_quota_and_ready_checks_are_admission() -> None:
    decision = decide(workload(checks={"mk": "Ready"}, **HELD))
    assert condition(applied(decision), "Admitted") == ("True", "Admitted", "The workload is admitted")
    assert events(decision) == [("Admitted", "Admitted by ClusterQueue cq, wait time since reservation was 30s")]


def test_an_admitted_one_is_left_alone() -> None:
    assert decide(workload(checks={"mk": "Ready"}, **RUNNING)) == NOTHING


def test_retry_evicts_and_starts_over() -> None:
    to_retry = workload(checks={"mk": "Retry", "other": "Ready"}, **RUNNING)
    to_retry["status"].update(clusterName="w1", schedulingStats={"evictions": []})
    to_retry["status"]["admissionChecks"][0]["message"] = "lost"
    decision = decide(to_retry, checks=("mk", "other"))
    body = applied(decision)
    message = 'Evicted due to AdmissionCheck in Retry state: "mk" (lost)'
    assert condition(body, "Evicted") == ("True", "AdmissionCheck", message)
    assert events(decision) == [("EvictedDueToAdmissionCheck", message)]
    first, second = body["status"]["admissionChecks"]
    assert (first["state"], first["retryCount"]) == ("Pending", 1)
    assert first["message"] == "Reset to Pending after eviction. Previously: Retry"
    assert (second["state"], second.get("retryCount")) == ("Pending", None)
    assert "clusterName" not in body["status"]
    assert body["status"]["schedulingStats"]["evictions"] == [
        {"reason": "AdmissionCheck", "underlyingCause": "", "count": 1}
    ]
    assert body["status"]["admission"], "quota stays until the job has stopped"


def test_a_retry_with_a_time_keeps_its_quota_until_then() -> None:
    """As Kueue v0.19.2 does (findings/kueue-retry-time-keeps-quota.sh): it notes the time, and evicts after it."""
    to_retry = workload(checks={"mk": "Retry"}, **RUNNING)
    to_retry["status"]["admissionChecks"][0]["requeueAfterSeconds"] = 90
    body = applied(decide(to_retry))
    assert (condition(body, "QuotaReserved") or ("",))[0] == "True"
    to_retry["status"] = body["status"]
    assert decide(to_retry) == Rest(after=60)
    to_retry["status"]["requeueState"]["requeueAt"] = EARLIER
    to_retry["status"]["admissionChecks"][0]["requeueAfterSeconds"] = 30
    assert (condition(applied(decide(to_retry)), "Evicted") or ("",))[0] == "True"


def test_rejected_deactivates_in_three_steps() -> None:
    """First the target, then `spec.active`, then the eviction that names the cause."""
    rejected = workload(checks={"mk": "Rejected"}, **RUNNING)
    rejected["status"]["admissionChecks"][0]["message"] = "no adapter"
    first = decide(rejected)
    target = ("True", "AdmissionCheck", "Admission check(s): mk, were rejected")
    assert condition(applied(first), "DeactivationTarget") == target
    assert events(first)[0][0] == "AdmissionCheckRejected"

    second = decide({**rejected, "status": {**rejected["status"], **applied(first)["status"]}})
    assert isinstance(second, Step)
    assert isinstance(second.request, Replace)
    assert second.request.object["spec"]["active"] is False

    third = decide(second.request.object)
    message = "The workload is deactivated due to Admission check(s): mk, were rejected"
    body = applied(third)
    assert condition(body, "Evicted") == ("True", "DeactivatedDueToAdmissionCheck", message)
    assert condition(body, "DeactivationTarget") is None
    assert body["status"]["schedulingStats"]["evictions"] == [
        {"reason": "Deactivated", "underlyingCause": "AdmissionCheck", "count": 1}
    ]
    assert events(third) == [("EvictedDueToDeactivatedDueToAdmissionCheck", message)]


def test_the_manager_stops_a_copy_through_its_deactivation_target() -> None:
    copy_to_stop = workload(**RUNNING, DeactivationTarget=("True", "EvictedOnManagerCluster"), active=False)
    body = applied(decide(copy_to_stop, checks=()))
    assert (condition(body, "Evicted") or ("", ""))[1] == "DeactivatedDueToEvictedOnManagerCluster"


def test_switched_off_and_evicted_it_rests() -> None:
    assert decide(workload(active=False, Evicted=("True", "Deactivated"))) == NOTHING


def test_switched_on_again_it_queues() -> None:
    body = applied(decide(workload(Evicted=("True", "Deactivated"), Requeued=("False", "Deactivated"))))
    assert condition(body, "Requeued") == ("True", "Reactivated", "The workload was reactivated")


def test_after_a_retry_it_queues_at_once() -> None:
    body = applied(decide(workload(Evicted=("True", "AdmissionCheck"), Requeued=("False", "AdmissionCheck"))))
    assert condition(body, "Requeued") == ("True", "BackoffFinished", "The workload backoff was finished")


def test_a_requeue_time_is_waited_for() -> None:
    to_requeue = workload(Requeued=("False", "PodsReadyTimeout"))
    to_requeue["status"]["requeueState"] = {"count": 1, "requeueAt": timestamp(NOW + timedelta(seconds=40))}
    assert decide(to_requeue) == Rest(after=40)
    to_requeue["status"]["requeueState"]["requeueAt"] = EARLIER
    body = applied(decide(to_requeue))
    assert body["status"]["requeueState"] == {"count": 1}


def test_without_its_queue_it_is_inadmissible_and_says_so_once() -> None:
    body = applied(decide(workload(), queues=False))
    assert condition(body, "QuotaReserved") == ("False", "Inadmissible", "LocalQueue lq doesn't exist")
    inadmissible = workload()
    inadmissible["status"] = body["status"]
    assert decide(inadmissible, queues=False) == NOTHING


def test_one_whose_job_is_gone_ends_and_lets_go() -> None:
    body = applied(decide(workload(**RUNNING), orphaned=True))
    assert condition(body, "Finished") == ("True", "OwnerNotFound", "The workload's owner no longer exists")
    ended = decide(workload(Finished=("True", "OwnerNotFound"), **RUNNING), orphaned=True)
    assert isinstance(ended, Step)
    assert isinstance(ended.request, Replace)
    assert ended.request.object["metadata"]["finalizers"] == []


def test_a_deleted_one_is_let_go_only_when_nothing_owns_it() -> None:
    """Else its job is stopped first."""
    deleted = workload()
    deleted["metadata"]["deletionTimestamp"] = EARLIER
    assert decide(deleted) == NOTHING
    assert isinstance(decide(deleted, orphaned=True), Step)
    del deleted["metadata"]["ownerReferences"]
    assert isinstance(decide(deleted), Step)


def test_an_evicted_copy_without_a_job_gives_its_quota_back() -> None:
    """A copy on a worker has no owner until the job arrives; nobody else would ever release it."""
    evicted_copy = workload(**RUNNING, Evicted=("True", "Preempted"))
    evicted_copy["metadata"].update(labels={}, ownerReferences=[])
    body = applied(decide(evicted_copy, checks=()))
    assert condition(body, "QuotaReserved") == ("False", "Preempted", "Evicted said")
    assert condition(body, "Requeued") == ("True", "Preempted", "Evicted said")


@pytest.mark.parametrize(("reason", "queues_at_once"), [("Preempted", "True"), ("AdmissionCheck", "False")])
def test_release_takes_quota_and_admission_and_adds_up_the_time_it_ran(reason: str, queues_at_once: str) -> None:
    result = released(workload(**RUNNING, Evicted=("True", reason)), NOW)
    assert condition(result, "QuotaReserved") == ("False", reason, "Evicted said")
    assert condition(result, "Admitted") == ("False", "NoReservation", "The workload has no reservation")
    assert (condition(result, "Requeued") or ("",))[0] == queues_at_once
    assert "admission" not in result["status"]
    assert result["status"]["accumulatedPastExecutionTimeSeconds"] == 30


def test_new_quota_ends_an_eviction() -> None:
    preempted = workload(checks={"mk": "Pending"}, Evicted=("True", "Preempted"), Preempted=("True", "InClusterQueue"))
    result = reserved(preempted, "cq", ASSIGNED, NOW)
    assert condition(result, "Evicted") == ("False", "QuotaReserved", "Previously: Evicted said")
    assert condition(result, "Preempted") == ("False", "QuotaReserved", "Previously: Preempted said")
    assert condition(result, "Admitted") is None, "that is for the checks to decide"


def test_preemption_leaves_both_conditions() -> None:
    result = evicted(workload(**RUNNING), "Preempted", "make room", NOW)
    assert condition(result, "Evicted") == ("True", "Preempted", "make room")
    assert condition(result, "Preempted") == ("True", "InClusterQueue", "make room")


def test_an_eviction_is_counted_by_reason_and_cause() -> None:
    once = evicted(workload(**RUNNING), "Preempted", "make room", NOW)
    twice = evicted(once, "Preempted", "make room", NOW)
    other = evicted(twice, "Deactivated", "off", NOW, cause="AdmissionCheck")
    assert [(entry["reason"], entry["count"]) for entry in other["status"]["schedulingStats"]["evictions"]] == [
        ("Preempted", 2),
        ("Deactivated", 1),
    ]


def test_an_eviction_closes_preemption_gates() -> None:
    preempted = workload(**RUNNING, BlockedOnPreemptionGates=("True", "PreemptionGated"))
    gate = {"name": "kueue.x-k8s.io/multikueue", "position": "Open", "lastTransitionTime": EARLIER}
    preempted["status"]["preemptionGates"] = [gate]
    result = evicted(preempted, "Preempted", "make room", NOW)
    assert result["status"]["preemptionGates"][0]["position"] == "Closed"
    assert (condition(result, "BlockedOnPreemptionGates") or ("",))[0] == "False"


def test_what_is_as_it_should_be_is_the_same_object() -> None:
    """So that nothing is written."""
    for conditions in ({}, RUNNING, {**HELD, "Admitted": ("False", "UnsatisfiedAdmissionChecks")}):
        ready = "Pending" if conditions.get("Admitted", ("",))[0] == "False" else "Ready"
        admitted = workload(checks={"mk": ready}, **conditions)
        assert synced_admitted(admitted, NOW) is admitted
    never: dict[str, Any] = workload()
    assert condition(unreserved(never, "Pending", "no room", NOW), "Admitted") is None


class TestTimeIsOver:
    """Conditions are 30 s old."""

    @staticmethod
    def limited(seconds: int, *, before: int = 0, admitted: str = "True") -> Json:
        reserved, reason = ("True", "QuotaReserved"), "UnsatisfiedAdmissionChecks"
        of_limited_time = workload(checks={"mk": "Ready"}, QuotaReserved=reserved, Admitted=(admitted, reason))
        of_limited_time["spec"]["maximumExecutionTimeSeconds"] = seconds
        if before:
            of_limited_time["status"]["accumulatedPastExecutionTimeSeconds"] = before
        return of_limited_time

    def test_it_is_waited_for(self) -> None:
        assert decide(self.limited(40)) == Rest(after=10)
        assert decide(self.limited(100, before=60)) == Rest(after=10)

    def test_then_the_workload_is_to_be_deactivated(self) -> None:
        """Its past is forgotten: whoever has it run again gives it all the time anew."""
        body = applied(decide(self.limited(90, before=60)))
        (target,) = [
            condition for condition in body["status"]["conditions"] if condition["type"] == "DeactivationTarget"
        ]
        over = ("True", "MaximumExecutionTimeExceeded", "exceeding the maximum execution time")
        assert (target["status"], target["reason"], target["message"]) == over
        assert "accumulatedPastExecutionTimeSeconds" not in body["status"]

    def test_it_is_told_again_while_the_deactivated_job_stops(self) -> None:
        """As Kueue v0.19.2 does; nothing takes that back, so whoever activates it later has it deactivated at once."""
        over = ("True", "DeactivatedDueToMaximumExecutionTimeExceeded")
        over_time = workload(checks={"mk": "Ready"}, active=False, **RUNNING, Evicted=over)
        over_time["spec"]["maximumExecutionTimeSeconds"] = 20
        told_again = applied(decide(over_time))
        assert condition(told_again, "DeactivationTarget") is not None
        again = decide({**over_time, "spec": {**over_time["spec"], "active": True}, "status": told_again["status"]})
        assert isinstance(again, Step)
        assert isinstance(again.request, Replace)
        assert again.request.object["spec"]["active"] is False

    def test_only_time_in_which_it_is_admitted_counts(self) -> None:
        waiting = self.limited(1, admitted="False")
        waiting["status"]["admissionChecks"][0]["state"] = "Pending"
        assert decide(waiting) == NOTHING
