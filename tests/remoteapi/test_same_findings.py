"""The page tells what `status` and `explain` tell: they ask the same checks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import cast

import attrs
import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueued.diagnosis.fleet import status_report
from multikueued.remoteapi.history import History
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.sums import overview_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.waiting_jobs import with_waiting
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored, worker, workload


@attrs.frozen
class Watched:
    """A view that shows these objects."""

    objects: ManagerObjects
    unread: frozenset[Resource] = frozenset()
    jobs: Mapping[ObjectKey, Json] = attrs.field(factory=dict)
    history: History = attrs.field(factory=History)

    @property
    def context(self) -> ManagerObjects:
        return attrs.evolve(self.objects, workloads=())

    def now(self) -> datetime:
        return NOW


@pytest.mark.parametrize("namespace", ["", "default"])
def test_the_page_tells_what_status_and_explain_tell(namespace: str) -> None:
    """It told nothing of jobs that no worker can take."""
    made = workload(stored(job("train")), nominated=("worker1", "worker2"))
    refused = "insufficient quota for cpu in flavor default-flavor (3 > 1)"
    objects = fleet(saying(made, f"Offered to worker1, worker2 — worker1: {refused} · worker2: {refused}"))
    shown = overview_of(cast(ManagerView, Watched(objects)), namespace)["findings"]
    findings = with_waiting(status_report(objects, NOW).findings, objects, NOW)

    assert [finding["id"] for finding in shown] == [finding.id for finding in findings] == ["quota-too-small"]
    assert shown[0]["workers"] == ["worker1", "worker2"]
    assert ("ask whoever runs the queues" in shown[0]["remedy"]) == bool(namespace)


def test_the_page_tells_of_a_worker_that_is_gone_under_a_job() -> None:
    """It looked at no job for what is wrong with the fleet."""
    runs = workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})
    objects = fleet(runs, workers=(worker("worker2"),))
    shown = overview_of(cast(ManagerView, Watched(objects)), "")["findings"]
    assert [finding["id"] for finding in shown] == ["worker-gone"]
    assert shown[0]["why"].endswith("it has default/job/train")
