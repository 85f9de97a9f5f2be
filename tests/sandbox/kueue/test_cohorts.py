"""Cohorts of the small Kueue: who may use how much, and who has to give it back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.kinds import CLUSTER_QUEUE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.kueue.scheduling.cohorts import Cohorts
from multikueue.sandbox.kueue.scheduling.cycle import Candidate, Holder, Neighbours, Pass, Rules, schedule
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest
from multikueue.sandbox.kueue.scheduling.quota import Quota
from tests.sandbox.kueue.doings import lasting, runs, waits
from tests.sandbox.kueue.objects import KUEUE, cluster_queue, condition, flavor, local_queue
from tests.sandbox.kueue.world import world

CPU = ("default", "cpu")


def queue(name: str, cpu: int, cohort: str = "all", **limits: int) -> Json:
    made = cluster_queue(name, cpu=str(cpu))
    made["spec"]["cohortName"] = cohort
    for limit, amount in limits.items():
        made["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0][limit] = str(amount)
    return made


def cohort(name: str, parent: str = "", cpu: int = 0, **limits: int) -> Json:
    spec: Json = {"resourceGroups": queue("", cpu, "", **limits)["spec"]["resourceGroups"]}
    if parent:
        spec["parentName"] = parent
    return {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def room(cohorts: Cohorts, name: str, **used: int) -> tuple[int, int]:
    """How much it could ever use, and how much more now, in whole CPUs."""
    uses = {other: {CPU: amount * 1000} for other, amount in used.items()}
    return cohorts.capacity(name, CPU) // 1000, cohorts.available(name, CPU, uses) // 1000


@pytest.mark.parametrize(
    ("queues", "used", "expected"),
    [
        pytest.param([queue("a", 4), queue("b", 6)], {}, (10, 10), id="all of both"),
        pytest.param([queue("a", 4), queue("b", 6)], {"b": 5}, (10, 5), id="what the other leaves"),
        pytest.param([queue("a", 4), queue("b", 6)], {"a": 7}, (10, 3), id="what it has borrowed already counts"),
        pytest.param([queue("a", 4, borrowingLimit=2), queue("b", 6)], {}, (6, 6), id="no more than its limit"),
        pytest.param([queue("a", 4, borrowingLimit=0), queue("b", 6)], {"b": 8}, (4, 2), id="its own may be lent"),
        pytest.param([queue("a", 4), queue("b", 6, lendingLimit=1)], {}, (5, 5), id="no more than is lent"),
        pytest.param([queue("a", 4), queue("b", 6, lendingLimit=1)], {"b": 5}, (5, 5), id="what is kept is used first"),
        pytest.param([queue("a", 4, lendingLimit=0), queue("b", 6)], {"b": 6}, (10, 4), id="what it keeps is safe"),
        pytest.param([queue("a", 4), queue("b", 6, "other")], {}, (4, 4), id="another cohort is none of its business"),
    ],
)
def test_queues_of_a_cohort_share(queues: list[Json], used: dict[str, int], expected: tuple[int, int]) -> None:
    assert room(Cohorts.of(queues, []), "a", **used) == expected


@pytest.mark.parametrize(
    ("cohorts", "expected"),
    [
        pytest.param([cohort("all", cpu=3)], (13, 13), id="quota of the cohort itself"),
        pytest.param([cohort("all", "top", borrowingLimit=1), cohort("top", cpu=5)], (11, 11), id="borrows from above"),
        pytest.param([cohort("all", "top"), cohort("side", "top", cpu=7, lendingLimit=2)], (12, 12), id="a sibling's"),
        pytest.param([cohort("all", "top"), cohort("top", "all")], (10, 10), id="a circle ends"),
    ],
)
def test_cohorts_are_trees(cohorts: list[Json], expected: tuple[int, int]) -> None:
    assert room(Cohorts.of([queue("a", 4), queue("b", 6)], cohorts), "a") == expected


amounts = st.integers(0, 9)


@given(st.lists(st.tuples(amounts, st.none() | amounts, st.none() | amounts, amounts), min_size=1, max_size=4))
def test_what_is_free_can_be_used_and_no_more(drawn: list[tuple[int, int | None, int | None, int]]) -> None:
    """Whatever a queue takes of what is available, it has so much less, and nobody's available grows."""
    queues = [
        queue(str(number), nominal, **_given(borrowingLimit=borrow, lendingLimit=lend))
        for number, (nominal, borrow, lend, _) in enumerate(drawn)
    ]
    cohorts, used = Cohorts.of(queues, []), {str(number): {CPU: 0} for number in range(len(drawn))}
    for number, (*_, wanted) in enumerate(drawn):
        name = str(number)
        before = {other: cohorts.available(other, CPU, used) for other in used}
        took = min(wanted * 1000, max(0, before[name]))
        used[name] = {CPU: took}
        after = {other: cohorts.available(other, CPU, used) for other in used}
        assert after[name] == before[name] - took
        assert all(after[other] <= before[other] for other in used)
    assert sum(use[CPU] for use in used.values()) <= 1000 * sum(nominal for nominal, *_ in drawn)


def _given(**limits: int | None) -> dict[str, Any]:
    return {name: limit for name, limit in limits.items() if limit is not None}


def wants(cpu: int, priority: int = 0) -> Candidate:
    amounts = (("cpu", cpu * 1000), ("pods", 1000))
    return Candidate(
        ObjectKey("default", "new"), priority, "2026-01-02T00:00:00Z", (PodSetRequest("main", 1, amounts),)
    )


def has(name: str, cpu: int, priority: int = 0) -> Holder:
    return Holder(ObjectKey("default", name), priority, "2026-01-01T00:00:00Z", {CPU: cpu * 1000})


def tried(candidate: Candidate, rules: Rules, **holders: list[Holder]) -> Pass:
    """One pass over the ClusterQueue `a`, which owns 4; `b` owns 6."""
    cohorts = Cohorts.of([queue("a", 4), queue("b", 6)], [])
    quota = Quota.of(queue("a", 4)).within({CPU: cohorts.capacity("a", CPU)})
    neighbours = Neighbours(cohorts, "a", {"a": [], "b": [], **holders})
    return schedule(quota, rules, [candidate], holders.get("a", []), neighbours=neighbours)


def victims(result: Pass) -> list[str]:
    return [victim.key.name for _, losers in result.preempted for victim in losers]


def test_what_others_do_not_use_is_given() -> None:
    assert tried(wants(8), Rules(), b=[has("b1", 2)]).admitted
    assert not tried(wants(9), Rules(), b=[has("b1", 2)]).admitted


@pytest.mark.parametrize(
    ("rules", "wanted", "expected"),
    [
        pytest.param(Rules(), wants(4), [], id="never"),
        pytest.param(Rules(reclaim="Any"), wants(4), ["lent"], id="what it owns"),
        pytest.param(Rules(reclaim="Any"), wants(5), [], id="not more than it owns"),
        pytest.param(Rules(reclaim="LowerPriority"), wants(4), [], id="only from lower priorities"),
        pytest.param(Rules(reclaim="LowerPriority"), wants(4, priority=1), ["lent"], id="a lower priority"),
    ],
)
def test_what_was_lent_is_taken_back(rules: Rules, wanted: Candidate, expected: list[str]) -> None:
    assert victims(tried(wanted, rules, b=[has("lent", 10)])) == expected


def test_nobody_gives_back_what_is_his_own() -> None:
    assert victims(tried(wants(5), Rules(reclaim="Any"), b=[has("own", 6)])) == []


@pytest.mark.looptime
async def test_a_job_borrows_until_the_owner_wants_it_back() -> None:
    owner = queue("owner", 1)
    owner["spec"]["preemption"] = {"reclaimWithinCohort": "Any"}
    objects = (flavor(), queue("cq", 1), owner, local_queue(), local_queue("owners", queue="owner"))
    async with world(*objects, queues=False) as cluster:
        await cluster.create(lasting("j1"))
        await cluster.job_when(runs, "j1")
        await cluster.create(lasting("j2"))
        await cluster.job_when(runs, "j2")
        await cluster.when(CLUSTER_QUEUE, lambda queue: _borrowed(queue) == "1")
        await cluster.create(lasting("j3", queue="owners"))
        await cluster.job_when(runs, "j3")
        said = condition(await cluster.workload_when(waits, "j2"), "Preempted")
        assert said is not None
        assert said[2].endswith("reclamation within the cohort; preemptor path: /all/owner; preemptee path: /all/cq")


@pytest.mark.looptime
async def test_a_cohort_with_quota_makes_room_for_who_waits() -> None:
    async with world(flavor(), queue("cq", 1), local_queue(), queues=False) as cluster:
        await cluster.create(lasting("j1"), lasting("j2"))
        await cluster.workload_when(waits, "j2")
        await cluster.create(cohort("all", cpu=1))
        await cluster.job_when(runs, "j2")


def _borrowed(cluster_queue: Json) -> object:
    usage = (cluster_queue.get("status") or {}).get("flavorsReservation") or [{}]
    return (usage[0].get("resources") or [{}])[0].get("borrowed")
