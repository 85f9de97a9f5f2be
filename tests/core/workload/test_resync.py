"""Which Workloads are planned in a round without an event."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.resync import ROUNDS, is_due

HERE = ClusterName("worker1")


def runs(cluster: str | None = "worker1", *conditions: str, **metadata: Any) -> Json:
    found = [{"type": name, "status": "True"} for name in conditions]
    status: Json = {"conditions": found} | ({"clusterName": cluster} if cluster else {})
    return {"metadata": {"name": "a", "namespace": "default", **metadata}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    "workload",
    [
        None,
        runs(None, "QuotaReserved"),
        runs("worker2", "QuotaReserved", "Admitted"),
        runs("worker1", "QuotaReserved"),
        runs("worker1", "QuotaReserved", "Admitted", "Evicted"),
        runs("worker1", "QuotaReserved", "Admitted", "Finished"),
        runs("worker1", "QuotaReserved", "Admitted", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["unknown", "offered", "elsewhere", "not admitted yet", "evicted", "finished", "being deleted"],
)
def test_where_a_job_does_not_belong_something_may_be_left_behind(workload: Json | None) -> None:
    assert all(is_due(ObjectKey("default", "a"), workload, HERE, number) for number in range(2 * ROUNDS))


def test_those_that_run_take_turns() -> None:
    workload, times = runs("worker1", "QuotaReserved", "Admitted"), Counter[int]()
    for name in range(1_000):
        due = [
            number for number in range(2 * ROUNDS) if is_due(ObjectKey("default", f"a-{name}"), workload, HERE, number)
        ]
        assert [due[0] + ROUNDS] == due[1:]
        times[due[0]] += 1
    assert len(times) == ROUNDS
    assert max(times.values()) < 3 * 1_000 / ROUNDS
