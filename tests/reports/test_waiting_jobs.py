"""Why jobs wait, of many at once."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.model.conditions import new_condition
from multikueued.reports.waiting_jobs import why_jobs_wait, with_waiting
from tests.reports.objects import NOW, fleet, job, saying, stored, workload


def test_whether_others_have_started_is_read_once_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read of each Workload for each that waits: minutes of a processor for some thousand."""
    waiting = (workload(stored(job(f"train-{number}"))) for number in range(20))
    many = [saying(made, State(NOW).describe("worker1: no room")) for made in waiting]
    asked, waited = list[Any](), kueue_objects.waited

    def counted(workload: Any) -> Any:
        asked.append(workload)
        return waited(workload)

    monkeypatch.setattr(kueue_objects, "waited", counted)
    assert not list(why_jobs_wait(fleet(*many), NOW))

    assert len(asked) == len(many)


@pytest.mark.parametrize(
    ("words", "blocking"),
    [
        ("Workload namespace doesn't match ClusterQueue selector", True),
        ("insufficient quota for cpu in flavor default-flavor (30 > 8)", False),
    ],
)
def test_what_its_submitter_cannot_mend_is_the_operators_in_the_status_too(words: str, blocking: bool) -> None:
    """Doctor called it an error, and status something beside."""
    made = workload(stored(job()), quota=False)
    conditions = [new_condition("QuotaReserved", False, "Pending", words, now=NOW)]
    objects = fleet({**made, "status": {"conditions": conditions}})

    (wrong,) = with_waiting((), objects, NOW)
    assert wrong.blocking is blocking
