"""Why jobs wait, of many at once."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.dispatchers.scored import kueue_objects
from multikueued.reports.waiting_jobs import why_jobs_wait
from tests.reports.objects import NOW, fleet, job, saying, stored, workload

REFUSED = "insufficient quota for cpu in flavor default-flavor (3 > 1)"


def test_whether_others_have_started_is_read_once_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read of each Workload for each that waits: minutes of a processor for some thousand."""
    offered = (workload(stored(job(f"train-{number}")), nominated=("worker1",)) for number in range(20))
    many = [saying(one, f"Offered to worker1 — worker1: {REFUSED}") for one in offered]
    asked, waited = list[Any](), kueue_objects.waited

    def counted(one: Any) -> Any:
        asked.append(one)
        return waited(one)

    monkeypatch.setattr(kueue_objects, "waited", counted)
    found = list(why_jobs_wait(fleet(*many), NOW, "kueue-system"))

    assert {one.id for one in found} == {"quota-too-small"}
    assert len(asked) == len(many)
