"""Which one counts of several workers that lead to one cluster."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.names import ClusterName, Json
from tests.core.building import copy_of, snapshot, worker, workload
from tests.core.door import NOW, Connecting, DeleteWorkload, Lost, Reach, Worker, decide, one_of_each_cluster, those

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
    deleted = [one for one in those(DeleteWorkload, plan.effects) if one.cluster == "w2"]
    assert bool(deleted) is not stays


@pytest.mark.parametrize(
    ("shown", "quiet", "listed"),
    [
        (None, 200, ["w1", "w2"]),
        ("another", 200, ["w1", "w2"]),
        ("the same", 200, ["w1"]),
        (None, 100, ["w1"]),
    ],
    ids=["nothing", "another", "the same", "it may show that soon"],
)
def test_what_one_name_shows_alone_is_on_another_cluster_and_is_cleaned(
    shown: str | None, quiet: int, listed: list[str]
) -> None:
    """Clusters made from one image have one UID, and whoever has a worker can say any: what it runs would run on."""
    local = workload(cluster="w1", check="Ready")
    there = {one: copy_of(local, admitted=True) for one in ("the same", "another")}
    there["another"]["metadata"]["uid"] = "uid-another"
    first = worker("w1", *([there[shown]] if shown else []), cluster_uid="uid")
    second = worker("w2", there["the same"], cluster_uid="uid")
    seen = one_of_each_cluster(attrs.evolve(snapshot(local, first, second), quiet_for=timedelta(seconds=quiet)))
    assert [one.name for one in seen.workers] == listed
    assert [one.configured for one in seen.workers[1:]] == [False] * len(listed[1:])


@pytest.mark.parametrize("reach", [Lost(NOW), Connecting()], ids=["lost", "connecting"])
def test_what_one_name_shows_alone_tells_nothing_while_the_other_is_out_of_reach(reach: Reach) -> None:
    local = workload(cluster="w1", check="Ready")
    first, second = (worker("w1", reach=reach, cluster_uid="uid"), worker("w2", copy_of(local), cluster_uid="uid"))
    seen = attrs.evolve(snapshot(local, first, second), quiet_for=timedelta(hours=1))
    assert [one.name for one in one_of_each_cluster(seen).workers] == ["w1"]
