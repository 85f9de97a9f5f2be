"""A job that waits for quota here is told of the one that holds it and can never start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueued.reports.explanation import explain
from multikueued.reports.job_findings import MOST_HOLDING as MOST
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.seen import Seen
from tests.core.building import condition
from tests.reports.objects import NOW, fleet, job, stored, workload
from tests.reports.test_one_cause import BOTH, told_by

TOO_LARGE = "insufficient quota for cpu in flavor f (3 > 1)"


def queued(words: str = "insufficient unused quota for cpu in flavor f, 2 more needed") -> Json:
    made = workload(stored(job("small")), quota=False)
    unreserved = condition("QuotaReserved", status=False, reason="Pending", message=words)
    return {**made, "status": {**made["status"], "conditions": [unreserved]}}


def held(*others: Json, named: bool | None = True, made: Json | None = None) -> list[Finding]:
    """What is found of a job that waits behind these."""
    waiting = made or queued()
    seen = Seen(waiting, None, fleet(waiting, *others), (), NOW, others_named=named)
    return [finding for finding in explain(seen).findings if finding.id == "quota-held"]


def elsewhere(made: Json) -> Json:
    return {**made, "metadata": {**made["metadata"], "namespace": "team-b"}}


def test_the_job_that_can_never_start_is_named() -> None:
    (finding,) = held(told_by(TOO_LARGE, *BOTH, job_name="large"))

    assert finding.blocking
    assert finding.why == (
        "default/job/large holds quota of ClusterQueue cluster-queue and cannot start: the job asks for more cpu than "
        "its ClusterQueue on worker1, worker2 has in all"
    )
    assert "multikueue explain job/large -n default" in finding.remedy


@pytest.mark.parametrize(
    "other",
    [
        told_by(TOO_LARGE, "worker1", job_name="large"),
        told_by("insufficient unused quota for cpu", *BOTH, job_name="large"),
        workload(stored(job("large")), cluster="worker1"),
        workload(stored(job("large")), quota=False),
    ],
    ids=["another worker may take it", "it waits for room", "it runs", "it has no quota"],
)
def test_one_that_may_start_is_not(other: Json) -> None:
    assert held(other) == []


def test_a_job_that_asks_for_more_than_there_is_waits_for_nobody() -> None:
    too_large: Any = queued("insufficient quota for cpu in flavor f, request > maximum capacity (8 > 4)")
    assert held(told_by(TOO_LARGE, *BOTH, job_name="large"), made=too_large) == []


def test_nobody_waits_for_himself() -> None:
    """He has got quota between two reads."""
    assert held(told_by(TOO_LARGE, *BOTH, job_name="small")) == []


@pytest.mark.parametrize("made", [elsewhere, lambda made: made], ids=["of another namespace", "of the same"])
def test_who_sees_what_the_daemon_has_read_learns_no_names(made: Callable[[Json], Json]) -> None:
    """They may read one job through the API, and perhaps the fleet."""
    other = made(told_by(TOO_LARGE, *BOTH, job_name="secret"))
    (finding,) = held(other, named=False)

    assert "secret" not in f"{finding}"
    assert "team-b" not in f"{finding}"
    assert "ask whoever runs the queues" in finding.remedy
    assert held(other, named=None) == []


def test_as_many_are_looked_at_as_there_is_a_bound() -> None:
    fine = [told_by("insufficient unused quota for cpu", *BOTH, job_name=f"j{number}") for number in range(MOST)]
    late = told_by(TOO_LARGE, *BOTH, job_name="z")
    (entry,) = [condition for condition in late["status"]["conditions"] if condition["type"] == "QuotaReserved"]
    entry |= {"lastTransitionTime": "2026-01-01T09:00:00Z"}
    assert held(*fine, late) == []
    assert len(held(*fine[1:], late)) == 1
