"""What events tell by their label: until the job was written after them, and of a field until its job has ended."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import FINDING_LABEL, ToldFinding
from multikueue.core.model.names import Json
from multikueued.reports.events import EventReport, event_reports
from multikueued.reports.explanation import explain
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.remedies.told_findings import TOLD, told_findings
from multikueued.reports.seen import Seen
from tests.reports.objects import CHECK, NOW, fleet, job, stored, workload

TRAIN = stored(job("train"))
RUNNING = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
WAITING = workload(TRAIN, checks={CHECK: "Pending"})
NOTE = 'jobs.batch "default/train" on worker cluster "worker1": spec.parallelism (set there by hpa) does not stay'
STATUS, FIELD = ToldFinding.STATUS_REFUSED, ToldFinding.CONTESTED_FIELD


def event(finding: str, at: datetime = NOW) -> EventReport:
    return EventReport("workload/w", "Warning", "MultiKueue", NOTE, at, at, 1, "multikueue", finding=finding)


def written(part: str, after: float) -> Json:
    """The job, which somebody wrote so many seconds after the event."""
    entry = {"manager": "kubectl", "time": timestamp(NOW + timedelta(seconds=after))}
    entries = [{**entry, "subresource": part} if part else entry]
    return {**TRAIN, "metadata": {**TRAIN["metadata"], "managedFields": entries}}


def findings(*events: EventReport, of: Json = RUNNING, behind: Json | None = TRAIN) -> list[Finding]:
    return [*told_findings(events, of, behind, "job/train")]


@pytest.mark.parametrize("finding", list(ToldFinding))
def test_each_is_told_with_the_words_of_its_event(finding: ToldFinding) -> None:
    (told_finding,) = findings(event(finding), of=WAITING)
    assert (told_finding.id, told_finding.told, told_finding.where) == (
        finding,
        NOTE,
        f"Workload {WAITING['metadata']['name']}",
    )
    assert "job/train" in told_finding.remedy
    assert set(TOLD) == set(ToldFinding)


def test_a_field_that_is_contested_needs_nobody_at_once() -> None:
    """The job runs; one whose status is refused does not show how it ends."""
    assert [finding.blocking for finding in findings(event(STATUS), event(FIELD))] == [True, False]


@pytest.mark.parametrize(
    ("finding", "part", "ended"),
    [(STATUS, "status", True), (STATUS, "", False), (FIELD, "", True), (FIELD, "status", False)],
)
def test_a_later_write_of_what_it_is_about_ends_it(finding: ToldFinding, part: str, ended: bool) -> None:
    """A field that is changed here is copied again; our own writes of the status change none."""
    assert (findings(event(finding), behind=written(part, 5)) == []) is ended
    assert findings(event(finding), behind=written(part, -5)), "one before it does not"


def test_a_contest_is_over_with_its_job() -> None:
    over = workload(TRAIN, cluster="worker1", finished="Succeeded")
    assert [finding.id for finding in findings(event(STATUS), event(FIELD), of=over)] == [STATUS]


def test_a_large_job_waits_for_its_copy_until_it_is_offered() -> None:
    offered = {**WAITING, "status": {**WAITING["status"], "nominatedClusterNames": ["worker1"]}}
    waits = event(ToldFinding.COPY_WAITS)
    assert [finding.blocking for finding in findings(waits, of=WAITING)] == [False]
    assert findings(waits, of=offered) == findings(waits, of=RUNNING) == []


def test_only_the_label_tells_not_the_words() -> None:
    assert findings(attrs.evolve(event(""), note=NOTE)) == findings(event("something-newer")) == []


def test_explain_tells_it_of_a_job_that_runs() -> None:
    event = {
        "metadata": {"labels": {FINDING_LABEL: "contested-field"}},
        "regarding": {"kind": "Workload", "name": RUNNING["metadata"]["name"], "uid": RUNNING["metadata"].get("uid")},
        "note": NOTE,
        "eventTime": timestamp(NOW),
    }
    events = event_reports([event], [{"kind": "Workload", **RUNNING}])
    explanation = explain(Seen(RUNNING, TRAIN, fleet(RUNNING), events, NOW))
    assert [(finding.id, finding.told) for finding in explanation.findings] == [("contested-field", NOTE)]
    assert explanation.summary == 'It runs on worker cluster "worker1".'
