"""Which one counts of several workers that lead to one cluster."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.names import ClusterName, Json
from multikueue.core.workload.effects import DeleteWorkload
from multikueue.core.workload.facts.same_cluster import one_of_each_cluster
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Connecting, Lost
from tests.core.building import NOW, copy_of, decide, snapshot, worker, workload

DONE: Json = {"type": "Finished", "status": "True", "reason": "Succeeded"}
FIRST, SECOND = (worker(name, cluster_uid="uid") for name in ("w1", "w2"))


def kept(local: Json, *workers: Worker, siblings: tuple[Json, ...] = ()) -> list[str]:
    seen = attrs.evolve(snapshot(local, *workers), siblings=siblings)
    return [one.name for one in one_of_each_cluster(seen).workers]


@pytest.mark.parametrize(
    ("local", "name"),
    [
        (workload(), "w1"),
        (workload(nominated=("w2",)), "w2"),
        (workload(nominated=("w1", "w2")), "w1"),
        (workload(cluster="w2"), "w2"),
    ],
    ids=["the first", "the one it is offered to", "the first of those", "the one that has it"],
)
def test_one_counts(local: Json, name: str) -> None:
    assert kept(local, FIRST, SECOND) == [name]


def test_of_others_of_its_job_those_count_that_may_run() -> None:
    running = workload(cluster="w2")
    ended = {**running, "status": {**running["status"], "conditions": [DONE]}}
    assert kept(workload(), FIRST, SECOND, siblings=(running,)) == ["w2"]
    assert kept(workload(), FIRST, SECOND, siblings=(ended,)) == ["w1"]


def test_one_that_leads_elsewhere_now_counts_beside_it() -> None:
    """What it had may run on the cluster that it led to before."""
    moved = attrs.evolve(FIRST, reach=Lost(), cluster_uid="")
    assert kept(workload(), moved, SECOND) == ["w1", "w2"]


@pytest.mark.parametrize(
    ("first", "stays"),
    [
        (worker("w1", reach=Lost(NOW - timedelta(hours=2), seen=False), identified=False), False),
        (worker("w1", reach=Lost(NOW - timedelta(minutes=1), seen=False), identified=False), True),
        (worker("w1", reach=Connecting(), identified=False), True),
        (worker("w1", identified=False), False),
        (worker("w1", copy_of(workload()), identified=False), True),
    ],
    ids=["lost for long", "lost", "connecting", "in sight, and does not show it", "shows it"],
)
def test_a_copy_in_anothers_name_is_spared_while_the_other_may_show_it(first: Worker, stays: bool) -> None:
    """Who shows it neither can use it nor makes its own beside it: that must not last for ever."""
    second = attrs.evolve(worker("w1", copy_of(workload())), name=ClusterName("w2"), identified=False)
    plan = decide(attrs.evolve(snapshot(workload(), first, second), running_for=timedelta(hours=3)))
    deleted = [one for one in plan.effects if isinstance(one, DeleteWorkload) and one.cluster == "w2"]
    assert bool(deleted) is not stays
