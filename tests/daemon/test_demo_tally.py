"""What a demo reports of jobs that did not end."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kinds.pods import POD
from multikueued.demo.jobs import Submission, drawn_job
from multikueued.demo.output import problems, summary
from multikueued.demo.tally import Stage, Tally

NO_QUOTA = "couldn't assign flavors to pod set main: insufficient quota for cpu"
HELD = {"conditions": [{"type": "QuotaReserved", "status": "True", "message": "Quota reserved"}]}
TOO_BIG = {"conditions": [{"type": "QuotaReserved", "status": "False", "message": NO_QUOTA}]}
REJECTED = {**TOO_BIG, "admissionChecks": [{"name": "multikueue", "state": "Rejected", "message": "not managed"}]}
NOT_YET = {**TOO_BIG, "admissionChecks": [{"name": "multikueue", "state": "Pending", "message": ""}]}

RESET = {"name": "multikueue", "state": "Pending", "message": "Reset to Pending after eviction. Previously: Rejected"}
VERDICT = {"type": "multikueue.dev/Rejected", "status": "True", "reason": "NotDelegated", "message": "not managed"}
EVICTED = {"type": "Evicted", "status": "True", "message": "were rejected"}


def switched_off(*conditions: Json) -> Json:
    """As a rejection leaves it."""
    judged = [{**said, "observedGeneration": 1} for said in conditions]
    status = {"conditions": judged, "admissionChecks": [RESET]}
    return {**workload(status), "spec": {"active": False}}


def workload(status: Json) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "big"}
    metadata = {"namespace": "default", "name": "job-big-1", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": status}


def with_one_job() -> Tally:
    tally = Tally()
    tally.submitted(drawn_job(BATCH_JOB, "big", 1), 0.0)
    return tally


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, ""),
        (TOO_BIG, f": {NO_QUOTA}"),
        (NOT_YET, f": {NO_QUOTA}"),
        (REJECTED, ": not managed"),
        (HELD, ""),
    ],
)
def test_a_waiting_job_is_reported_with_the_message_of_its_workload(status: Json, message: str) -> None:
    """More time may not help such a job."""
    tally = with_one_job()
    tally.saw_workload(workload(TOO_BIG), 1.0)
    tally.saw_workload(workload(status), 2.0)

    assert problems(tally) == [f'Job "big" did not finish: it is queued{message}']


@pytest.mark.parametrize(
    ("conditions", "why"),
    [((VERDICT, EVICTED), "not managed"), ((EVICTED,), "were rejected"), ((), RESET["message"])],
    ids=["with its verdict", "by an older version", "nothing else"],
)
def test_a_rejected_job_says_why_when_kueue_has_reset_its_check(conditions: tuple[Json, ...], why: str) -> None:
    tally = with_one_job()
    off = switched_off(*conditions)
    tally.saw_workload({**off, "metadata": {**off["metadata"], "generation": 2}}, 1.0)
    assert problems(tally) == [f'Job "big" did not finish: it is queued: {why}']


def test_if_the_manager_has_quota_the_workers_messages_are_shown() -> None:
    """Together they have enough, and none of them by itself."""
    tally = with_one_job()
    tally.saw_workload(workload(HELD), 1.0)
    for worker in ("worker1", "worker2"):
        tally.saw_offer(worker, workload(TOO_BIG))
    tally.saw_offer("worker3", workload(HELD))

    assert problems(tally) == [f'Job "big" did not finish: it is queued: {NO_QUOTA} (worker1, worker2)']


def test_a_job_that_was_admitted_waits_for_nothing() -> None:
    tally = with_one_job()
    tally.saw_workload(workload(TOO_BIG), 1.0)
    tally.saw_workload(workload({**HELD, "clusterName": "worker1"}), 2.0)

    assert problems(tally) == ['Job "big" did not finish: it is running']


def test_a_job_that_ends_out_of_reach_is_told_as_such_and_counts_there() -> None:
    """It was taken from a lost worker, which comes back and says how it has ended."""
    tally = with_one_job()
    tally.saw_job(BATCH_JOB, drawn_job(BATCH_JOB, "big", 1).objects[0], "big", 0.5)
    tally.saw_workload(workload({**HELD, "clusterName": "worker1"}), 2.0)
    tally.saw_workload(workload(TOO_BIG), 4.0)
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    tally.saw_job(BATCH_JOB, {**drawn_job(BATCH_JOB, "big", 1).objects[0], "status": done}, "big", 9.0)
    outcome = summary(tally, ["worker1", "worker2"], 10.0)

    assert (outcome["per_cluster"], outcome["ended_out_of_reach"]) == ({"worker1": 1, "worker2": 0}, 1)
    assert outcome["items"][0]["placements"] == [{"cluster": "worker1", "since_s": 2.0, "until_s": 9.0}]


def pod(name: str, policy: str) -> Json:
    labels = {"kueue.x-k8s.io/pod-group-name": "group"}
    metadata = {"namespace": "default", "name": name, "labels": labels}
    return {"metadata": metadata, "spec": {"restartPolicy": policy}}


@pytest.mark.parametrize(("policy", "serves"), [("Always", True), ("OnFailure", False)])
def test_whether_pods_are_to_be_deleted_is_asked_of_the_pods(policy: str, serves: bool) -> None:
    """What a file's pod does depends on its restart policy, whose default is Always."""
    tally = Tally()
    tally.submitted(Submission(POD, "group", (pod("a", policy),)), 0.0)
    tally.saw_job(POD, pod("a", policy), "a", 1.0)

    assert [story.serves for story in tally.stories.values()] == [serves]


def test_a_group_that_was_retired_has_ended_with_its_last_pod() -> None:
    tally = Tally()
    tally.submitted(Submission(POD, "group", (pod("a", "Always"), pod("b", "Always"))), 0.0)
    for name in ("a", "b"):
        tally.saw_job(POD, pod(name, "Always"), name, 1.0)
    (story,) = tally.stories.values()
    story.retired = True

    tally.saw_job(POD, None, "a", 2.0)
    assert story.stage is Stage.QUEUED
    tally.saw_job(POD, None, "b", 3.0)
    assert (story.stage, story.ended) == (Stage.SERVED, 3.0)
