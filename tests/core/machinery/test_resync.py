"""Which Workloads are planned in a round without an event."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from multikueue.core.machinery.resync import PERIOD, has_turn, runs_on
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey


def runs(cluster: str | None = "worker1", *conditions: str, **metadata: Any) -> Json:
    entries = [{"type": name, "status": "True"} for name in conditions]
    status: Json = {"conditions": entries} | ({"clusterName": cluster} if cluster else {})
    return {"metadata": {"name": "a", "namespace": "default", **metadata}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    "workload",
    [
        runs(None, "QuotaReserved"),
        runs("worker1", "QuotaReserved"),
        runs("worker1", "QuotaReserved", "Admitted", "Evicted"),
        runs("worker1", "QuotaReserved", "Admitted", "Finished"),
        runs("worker1", "QuotaReserved", "Admitted", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["offered", "not admitted yet", "evicted", "finished", "being deleted"],
)
def test_only_what_is_admitted_and_has_not_ended_runs_as_it_should(workload: Json) -> None:
    assert runs_on(workload) is None
    assert runs_on(runs("worker1", "QuotaReserved", "Admitted")) == "worker1"


@pytest.mark.parametrize("between", [1, 60, 600, 3_600])
def test_each_has_one_turn_in_a_period_however_many_rounds_there_are(between: int) -> None:
    """`gcInterval: 1h` meant five days: rounds were counted, not time."""
    rounds = [*range(0, 2 * PERIOD + 1, between)]
    first = Counter[int]()
    for name in range(200):
        key = ObjectKey("default", f"a-{name}")
        turns = [now for since, now in itertools.pairwise(rounds) if has_turn(key, since, now)]
        assert len(turns) == 2
        assert turns[1] - turns[0] == pytest.approx(PERIOD, abs=between)
        first[turns[0]] += 1
    assert max(first.values()) <= 200 * max(3 * between / PERIOD, 0.1)  # they are spread over the period


def test_one_that_shall_leave_its_worker_does_not_run_where_it_should() -> None:
    moved = runs("worker1", "QuotaReserved", "Admitted", annotations={MOVE_FROM_ANNOTATION: "worker1"})
    assert runs_on(moved) is None
