"""Which Workloads are planned in a round without an event."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.workload.resync import ROUNDS, has_turn, runs_on


def runs(cluster: str | None = "worker1", *conditions: str, **metadata: Any) -> Json:
    found = [{"type": name, "status": "True"} for name in conditions]
    status: Json = {"conditions": found} | ({"clusterName": cluster} if cluster else {})
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


def test_each_has_one_turn_in_so_many_rounds() -> None:
    times = Counter[int]()
    for name in range(2_000):
        turns = [number for number in range(2 * ROUNDS) if has_turn(ObjectKey("default", f"a-{name}"), number)]
        assert [turns[0] + ROUNDS] == turns[1:]
        times[turns[0]] += 1
    assert len(times) == ROUNDS
    assert max(times.values()) < 3 * 2_000 / ROUNDS
