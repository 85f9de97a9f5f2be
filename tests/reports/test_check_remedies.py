"""What is wrong with a job itself follows from its objects: whatever the check says, and whoever wrote that."""

from __future__ import annotations

from typing import ClassVar

import attrs
import pytest

from multikueue.core.model.names import Json
from multikueued.reports.explanation import explain
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.seen import Seen
from tests.reports.objects import CHECK, NOW, fleet, job, judged, saying, stored, workload

TRAIN = stored(job("train"))
DECLARED = {**TRAIN, "apiVersion": "example.com/v1", "kind": "Widget"}
"""Of a kind that the daemon's settings declare: its rules are not known here."""
UNDELEGATED = stored(job("train", delegated=False))
ACTED_ON = {
    **TRAIN,
    "metadata": {**TRAIN["metadata"], "managedFields": [{"manager": "manager", "subresource": "status"}]},
}
WAITS = workload(TRAIN)


def rejected(verdict: str = "", *, of: Json = TRAIN, owned: bool = True) -> Json:
    made = workload(TRAIN, checks={CHECK: "Rejected"})
    made["metadata"]["ownerReferences"][0] |= {"apiVersion": of["apiVersion"], "kind": of["kind"]}
    made = judged(made, verdict) if verdict else made
    return made if owned else {**made, "metadata": {**made["metadata"], "ownerReferences": []}}


def over() -> Json:
    made = workload(TRAIN, quota=False, evicted="DeactivatedDueToMaximumExecutionTimeExceeded")
    return {**made, "spec": {**made["spec"], "active": False}}


def listing(*names: str) -> ManagerObjects:
    return fleet(WAITS, listed=names)


@attrs.frozen
class Case:
    """A Workload, and what `explain` finds wrong."""

    id: str
    seen: str
    workload: Json
    job: Json = TRAIN
    objects: ManagerObjects | None = None

    def finding(self, words: str = "words") -> Finding:
        made = saying(self.workload, words) if "admissionChecks" in self.workload["status"] else self.workload
        findings = explain(Seen(made, self.job, self.objects or fleet(made), (), NOW)).findings
        return next(finding for finding in findings if finding.id == self.id)


CASES = (
    Case("kind-not-enabled", "the check is Rejected: `KindNotEnabled`", rejected("KindNotEnabled")),
    Case("not-delegated", "the check is Rejected: `NotDelegated`", rejected("NotDelegated", of=DECLARED), DECLARED),
    Case("cannot-be-copied", "the check is Rejected: `CannotBeCopied`", rejected("CannotBeCopied")),
    Case("not-taken", "the check is Rejected: `NotTaken`", rejected("NotTaken")),
    Case("rejected", "the check is Rejected, and nothing tells why", rejected()),
    Case("not-delegated", "the check is Rejected, and `managedBy` of the job is another", rejected(), UNDELEGATED),
    Case("acted-on-here", "the check is Rejected, and a controller has written the job's status", rejected(), ACTED_ON),
    Case("rejected", "the check is Rejected, and no job owns the Workload", rejected(owned=False)),
    Case("time-is-over", "the Workload is Evicted: `DeactivatedDueToMaximumExecutionTimeExceeded`", over()),
    Case(
        "other-checks",
        "another check of the Workload is Pending",
        workload(TRAIN, checks={CHECK: "Pending", "budget": "Pending"}),
    ),
    Case("no-worker-known", "the MultiKueueConfig lists no MultiKueueCluster", WAITS, objects=listing("x")),
    Case("recorded-twice", "the check is Ready, and no worker is recorded", workload(TRAIN, checks={CHECK: "Ready"})),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize(
    "words", ["", "words of anybody", 'No multikueue adapter found for owner kind "$(id), Kind=X"']
)
def test_objects_tell_what_is_wrong_whatever_the_message_says(case: Case, words: str) -> None:
    finding = case.finding(words)

    assert finding.blocking
    assert "$(id)" not in finding.why + finding.remedy
    assert "{" not in finding.why + finding.remedy


def test_no_message_makes_a_finding() -> None:
    """Whoever may write the status of a Workload writes what he wants."""
    for words in (
        "Waiting for the other admission checks",
        "It cannot be told who runs the job: rule x failed",
        "The job cannot be copied: rule x failed",
        'worker clusters "a" and "b" have it: remove it from all but one',
        "exceeding the maximum execution time",
    ):
        made = saying(WAITS, words)
        assert explain(Seen(made, TRAIN, fleet(made), (), NOW)).findings == ()


@pytest.mark.parametrize(("generation", "id"), [(2, "not-taken"), (4, "rejected")])
def test_a_verdict_counts_until_somebody_makes_the_workload_active_again(generation: int, id: str) -> None:
    """What is deactivated by another controller's check after that was not rejected by us."""
    made = judged(workload(TRAIN, quota=False, evicted="DeactivatedDueToAdmissionCheck"), "NotTaken")
    made["spec"]["active"] = False
    made["metadata"]["generation"] = generation
    (finding,) = explain(Seen(made, TRAIN, fleet(made), (), NOW)).findings

    assert finding.id == id


class TestADeletedJob:
    """By `--cascade=orphan`, or by a client that names no policy: nothing but the Workload is left to ask about."""

    RUNNING = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    LEFT: ClassVar[Json] = {**RUNNING, "metadata": {**RUNNING["metadata"], "ownerReferences": []}}

    def gist(self, made: Json) -> list[tuple[str, str, bool]]:
        findings = explain(Seen(made, None, fleet(made), (), NOW)).findings
        return [(finding.why, finding.remedy, finding.blocking) for finding in findings if finding.id == "job-deleted"]

    def test_what_still_runs_is_told_with_how_it_is_stopped(self) -> None:
        name = self.LEFT["metadata"]["name"]
        why = "its job was deleted without it (orphaned): what runs on a worker goes on"
        assert self.gist(self.LEFT) == [(why, f"to stop it: kubectl -n default delete workload {name}", False)]
        assert self.gist(self.RUNNING) == []

    def test_a_kueue_that_has_noticed_has_stopped_it(self) -> None:
        made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"}, finished="OwnerNotFound")
        ((why, _, _),) = self.gist(made)
        assert why == "its job was deleted without it (orphaned), and what ran on a worker was stopped"
        assert explain(Seen(made, None, fleet(made), (), NOW)).summary == "Its job was deleted."
