"""`batch/v1` Job: its copy, and when the manager's shows its status (adapters.md §3.1)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from multikueue.adapters.job_status import job_status
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.conditions import is_true
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    CONTROLLER_NAME,
    ORIGIN_LABEL,
    PREBUILT_WORKLOAD,
    STARTED_LABELS,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, without
from multikueue.sandbox.apiserver.validation.rules_job_status import check_job_status
from tests.core.applying import merged
from tests.core.building import ADAPTER, SUSPENDED, job
from tests.core.door import NOW
from tests.core.recorded import Recorded, recorded

STAMP = Stamp("multikueue", "job-train-1a2b3", "abc")
RUNNING: Json = {"active": 1, "startTime": "2026-11-21T11:59:00Z", "conditions": [{**SUSPENDED, "status": "False"}]}
ENDED = ("SuccessCriteriaMet", "Complete")
TIMES: Json = {"startTime": "2026-11-21T11:59:00Z", "completionTime": "2026-11-21T11:59:30Z"}


def true(*kinds: str, message: str = "", reason: str = "Said") -> list[Json]:
    return [{"type": kind, "status": "True", "reason": reason, "message": message} for kind in kinds]


COMPLETE: Json = {"succeeded": 1, "conditions": true(*ENDED, message="All done"), **TIMES}
FAILED: Json = {
    "failed": 1,
    "startTime": TIMES["startTime"],
    "conditions": true("FailureTarget", "Failed", message="BackoffLimitExceeded"),
}


PAIRS = [
    (local, remote)
    for local in recorded("jobs", "manager")
    for remote in recorded("jobs", "worker")
    if local.step == remote.step and local.object["metadata"]["name"] == remote.object["metadata"]["name"]
]


def stopping(obj: Json) -> Json:
    obj["metadata"]["annotations"] = {"kueue.x-k8s.io/stopping": "true"}
    return obj


class TestCopy:
    def test_it_leaves_out_what_the_managers_api_server_filled_in(self) -> None:
        """A worker's API server refuses another Job's selector and template labels."""
        made = ADAPTER.copy(job(), STAMP)
        assert "selector" not in made["spec"]
        assert dig(made, "spec", "template", "metadata", "labels") == {"app": "train"}

    def test_an_elastic_one_is_copied_as_if_it_had_never_run(self) -> None:
        """Kueue puts back neither its templates nor, while it may grow, its suspension: it would never run again."""
        ran = job(elastic=True, suspended=False)
        ran["spec"]["template"]["metadata"]["labels"] |= dict.fromkeys(STARTED_LABELS, "x")
        made = ADAPTER.copy(ran, STAMP)
        assert made["spec"]["suspend"] is True
        assert dig(made, "spec", "template", "metadata", "labels") == {"app": "train"}

    def test_the_worker_runs_it_itself(self) -> None:
        """With managedBy set, the worker's own controller would leave it alone."""
        assert "managedBy" not in ADAPTER.copy(job(), STAMP)["spec"]

    def test_it_is_marked(self) -> None:
        metadata = ADAPTER.copy(job(), STAMP)["metadata"]
        assert metadata["labels"][ORIGIN_LABEL] == "multikueue"
        assert metadata["labels"][PREBUILT_WORKLOAD] == metadata["annotations"][PREBUILT_WORKLOAD] == STAMP.workload
        assert metadata["annotations"][ATTEMPT_ANNOTATION] == "abc"

    def test_it_has_no_status_and_no_history(self) -> None:
        made = ADAPTER.copy(job(status=RUNNING), STAMP)
        assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
        assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations"}

    def test_the_cached_job_stays_as_it_is(self) -> None:
        local = job()
        before = copy.deepcopy(local)
        ADAPTER.copy(local, STAMP)["spec"]["template"]["spec"]["containers"].clear()
        assert local == before

    @pytest.mark.parametrize(("local", "remote"), PAIRS, ids=str)
    def test_of_a_real_job_it_is_what_a_real_worker_took(self, local: Recorded, remote: Recorded) -> None:
        """All that the copy says is found on the Job of the worker, which a real Kueue adopted and ran."""
        there = {"apiVersion": "batch/v1", "kind": "Job", **remote.object}  # lists leave these two out
        workload = annotations_of(there)[PREBUILT_WORKLOAD]
        made = ADAPTER.copy(local.object, Stamp("multikueue", workload, "abc"))
        made = without(made, [("metadata", "annotations", ATTEMPT_ANNOTATION), ("spec", "suspend")])
        assert merged(there, made) == there


class TestStatus:
    @pytest.mark.parametrize(
        ("local", "remote"),
        [
            (job(suspended=False), job(suspended=False, status=RUNNING)),
            (job(suspended=False), job(suspended=True, status={"active": 0})),
            (job(suspended=True, status=RUNNING), job(suspended=True, status={"active": 0})),
            (job(suspended=True), job(suspended=False, status=COMPLETE)),
            (job(suspended=True), job(suspended=False, status=FAILED)),
            (job(suspended=True, status={"active": 1}), stopping(job(suspended=True, status=COMPLETE))),
        ],
        ids=["running", "stopped there", "both suspended", "complete", "failed", "stopping there"],
    )
    def test_it_is_synced_to_the_manager(self, local: Json, remote: Json) -> None:
        """What the user reads of the manager's Job is what the worker's says."""
        patch = ADAPTER.status_patch(local, remote, NOW)
        assert patch is not None
        assert patch["metadata"] == {"resourceVersion": "rv-uid-of-job"}
        assert merged(local["status"], patch["status"]) == remote["status"]

    def test_a_job_that_runs_while_the_managers_is_still_suspended_waits(self) -> None:
        """A startTime on a suspended Job would make Kueue's later edits of the template fail."""
        patch = ADAPTER.status_patch(job(suspended=True), job(suspended=False, status=RUNNING), NOW)
        assert patch is not None
        (condition,) = patch["status"].pop("conditions")
        assert patch["status"] == {}
        assert condition == {
            "type": "Suspended",
            "status": "True",
            "reason": "JobSuspended",
            "message": "Job suspended",
            "lastTransitionTime": "2026-11-21T12:00:00Z",
            "lastProbeTime": "2026-11-21T12:00:00Z",
        }

    @pytest.mark.parametrize(
        "local",
        [job(suspended=True, status={"conditions": [SUSPENDED]}), stopping(job(suspended=True, status=RUNNING))],
    )
    def test_a_managers_job_that_says_suspended_is_left_alone_meanwhile(self, local: Json) -> None:
        """Also while its Kueue is stopping it: two would write the status against each other, twice a second."""
        assert ADAPTER.status_patch(local, job(suspended=False, status=RUNNING), NOW) is None

    @pytest.mark.parametrize("suspended", [job, lambda **facts: stopping(job(**facts))], ids=["suspended", "stopping"])
    def test_a_suspended_one_gets_a_start_only_with_its_end(self, suspended: Any) -> None:
        """Its Kueue has taken it away to edit the template, and would do so again."""
        remote = job(suspended=True, status={**RUNNING, "active": 0, "terminating": 1})
        local = suspended(suspended=True, status={"active": 1})
        patch = ADAPTER.status_patch(local, remote, NOW)
        assert patch is not None
        assert "startTime" not in patch["status"]

        patch = ADAPTER.status_patch(local, job(suspended=True, status=COMPLETE), NOW)
        assert patch is not None
        assert patch["status"]["startTime"] == COMPLETE["startTime"]

    def test_a_false_suspended_condition_is_turned(self) -> None:
        """Kubernetes 1.36 refuses a suspended Job's start without it; other conditions stay."""
        other = {"type": "FailureTarget", "status": "False"}
        local = job(suspended=True, status={"conditions": [other, {**SUSPENDED, "status": "False"}]})
        patch = ADAPTER.status_patch(local, job(suspended=False, status=RUNNING), NOW)
        assert patch is not None
        after = {"status": merged(local["status"], patch["status"])}
        assert is_true(after, "Suspended")
        assert after["status"]["conditions"][0] == other

    def test_a_status_that_is_synced_is_not_sent_again(self) -> None:
        both = job(suspended=False, status=RUNNING)
        assert ADAPTER.status_patch(both, both, NOW) is None
        waits = job(status={"conditions": [SUSPENDED]})
        assert ADAPTER.status_patch(waits, job(), NOW) is None

    def test_a_status_without_the_field_empties_the_managers(self) -> None:
        """A new copy that has not started shows nothing, whatever the attempt before has left."""
        local, remote = job(suspended=False, status=RUNNING), job(suspended=False)
        del remote["status"]
        patch = ADAPTER.status_patch(local, remote, NOW)
        assert patch is not None
        assert merged(local["status"], patch["status"]) == {"startTime": RUNNING["startTime"]}


class TestEnd:
    @pytest.mark.parametrize(
        ("status", "outcome"),
        [
            (COMPLETE, Outcome("Succeeded", "All done")),
            (FAILED, Outcome("Failed", "BackoffLimitExceeded")),
            (
                {"conditions": [{"type": "Complete", "status": "True"}]},
                Outcome("Succeeded", "Job finished successfully"),
            ),
            ({"conditions": [{"type": "Failed", "status": "True", "message": ""}]}, Outcome("Failed", "Job failed")),
            ({"conditions": [{"type": "Complete", "status": "False"}]}, None),
            (RUNNING, None),
            ({}, None),
        ],
        ids=["complete", "failed", "no words", "no words either", "not yet", "running", "new"],
    )
    def test_a_job_ends_by_its_conditions(self, status: Json, outcome: Outcome | None) -> None:
        """In its own words where it has some."""
        assert ADAPTER.outcome(job(status=status)) == outcome

    def test_jobs_end(self) -> None:
        assert ADAPTER.traits.ends

    def test_a_job_whose_copy_is_gone_shows_no_pods(self) -> None:
        """Kueue keeps the quota while the manager's Job shows active pods."""
        local = job(status={"active": 2, "ready": 1, "terminating": 1, "succeeded": 3})
        patch = ADAPTER.release_patch(local)
        assert patch == {
            "metadata": {"resourceVersion": "rv-uid-of-job"},
            "status": {"active": 0, "ready": 0, "terminating": 0},
        }
        assert local["status"]["active"] == 2

    @pytest.mark.parametrize("status", [{}, {"active": 0}, {"succeeded": 1}])
    def test_one_that_shows_none_is_not_written(self, status: Json) -> None:
        assert ADAPTER.release_patch(job(status=status)) is None


@pytest.mark.parametrize("local", recorded("jobs", "manager"), ids=str)
def test_real_delegated_jobs_are_taken(local: Recorded) -> None:
    assert ADAPTER.not_delegated(local.object, CONTROLLER_NAME) is None


def test_a_copy_that_starts_anew_does_not_make_the_managers_job_start_anew() -> None:
    """An API server refuses another start of an unsuspended Job: its status would never be written again."""
    local = {"spec": {"suspend": False}, "status": {"startTime": "2026-01-01T00:00:00Z", "failed": 2, "active": 0}}
    remote = {"spec": {"suspend": False}, "status": {"startTime": "2026-01-01T00:05:00Z", "failed": 1, "active": 1}}

    assert job_status(local, remote, NOW) == {
        "startTime": "2026-01-01T00:00:00Z",
        "failed": 2,
        "active": 1,
    }


@pytest.mark.parametrize(("ended", "shown"), [("00:04", "00:05"), ("00:06", "00:06")])
def test_a_job_does_not_end_before_it_has_started(ended: str, shown: str) -> None:
    """The worker's clock was set back before its copy started again: an API server would refuse the end for ever."""
    local: Json = {"spec": {"suspend": False}, "status": {"startTime": "2026-01-01T00:05:00Z", "active": 1}}
    end: Json = {"succeeded": 1, "conditions": true(*ENDED)}
    times = {"startTime": "2026-01-01T00:03:00Z", "completionTime": f"2026-01-01T{ended}:00Z"}
    remote = {"spec": {"suspend": False}, "status": {**end, **times}}

    status = job_status(local, remote, NOW)
    assert status is not None
    assert status == {**end, "startTime": "2026-01-01T00:05:00Z", "completionTime": f"2026-01-01T{shown}:00Z"}
    assert not check_job_status(local, {**local, "status": status})
    assert job_status({**local, "status": status}, remote, NOW) is None


def test_a_job_that_is_suspended_forgets_its_start() -> None:
    """Kueue can edit its template again."""
    local = {"spec": {"suspend": True}, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    remote = {"spec": {"suspend": True}, "status": {"active": 0}}

    assert job_status(local, remote, NOW) == {"active": 0}
