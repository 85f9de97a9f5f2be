"""Which Workloads are reconciled after a change of another one of the same job."""

from __future__ import annotations

import pytest

from multikueue.core.changes import affected
from multikueue.core.model.names import Json
from tests.core.building import workload


def part(index: str, cluster: str | None = None) -> Json:
    return workload(name=f"set-{index}", index=index, cluster=cluster)


def names(listed: list[Json]) -> list[str]:
    return [workload["metadata"]["name"] for workload in listed]


A, B, C = part("0"), part("1"), part("2")
PLACED = part("0", "w1")


def test_plain_workloads_have_no_siblings() -> None:
    """They cost nothing for groups."""
    assert affected(None, workload(cluster="w1"), [A]) == []
    assert affected(None, None, [A]) == []


def test_a_group_that_gets_or_loses_its_worker_wakes_all_its_members() -> None:
    """They follow, or look for another."""
    assert names(affected(A, PLACED, [B, C])) == ["set-1", "set-2"]
    assert names(affected(PLACED, A, [B, C])) == ["set-1", "set-2"]
    assert names(affected(PLACED, None, [B, C])) == ["set-1", "set-2"]


def test_a_member_that_gets_the_worker_of_its_group_wakes_no_other() -> None:
    """Or n members would wake each other n times over (item 7)."""
    assert affected(B, part("1", "w1"), [PLACED, C]) == []


@pytest.mark.parametrize("changed", [(A, A), (PLACED, PLACED)], ids=["unplaced", "placed"])
def test_other_changes_wake_no_other(changed: tuple[Json, Json]) -> None:
    """Conditions and counters change all the time."""
    assert affected(*changed, [B, C]) == []


def test_a_new_member_wakes_the_first_only() -> None:
    """The group may be complete now; only the first one acts on that."""
    assert names(affected(None, C, [B, A])) == ["set-0"]
    assert affected(None, A, []) == []


def test_a_replaced_slice_wakes_the_others() -> None:
    """The newer one takes the job over."""
    old, new = workload(elastic=True, cluster="w1"), workload(name="bigger", elastic=True)
    replaced = workload(elastic=True, cluster="w1", finished="WorkloadSliceReplaced")
    assert names(affected(old, replaced, [new])) == ["bigger"]
    assert affected(replaced, replaced, [new]) == []
