"""One pass of the scheduler: order, waiting, making room."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.kueue.scheduling.cycle import Candidate, Holder, Pass, Rules, schedule
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest, request
from multikueue.sandbox.kueue.scheduling.quota import Quota
from tests.sandbox.kueue.objects import cluster_queue

ROOM = Rules(preemption="LowerPriority")


def wants(name: str, cpu: int = 1, *, priority: int = 0, since: str = "2026-01-01T00:00:00Z") -> Candidate:
    amounts = (("cpu", cpu * 1000), ("pods", 1000))
    return Candidate(ObjectKey("default", name), priority, since, (PodSetRequest("main", 1, amounts),))


def has(
    name: str,
    cpu: int = 1,
    *,
    priority: int = 0,
    since: str = "2026-01-01T00:00:00Z",
    evicted: bool = False,
    queued: str = "2026-01-01T00:00:00Z",
) -> Holder:
    return Holder(ObjectKey("default", name), priority, since, {("default", "cpu"): cpu * 1000}, evicted, queued)


def run(*pending: Candidate, cpu: int = 2, holders: tuple[Holder, ...] = (), rules: Rules | None = None) -> Pass:
    ordered = sorted(pending, key=lambda candidate: candidate.order)
    return schedule(Quota.of(cluster_queue(cpu=str(cpu))), rules or Rules(), ordered, holders)


def admitted(result: Pass) -> list[str]:
    return [candidate.key.name for candidate, _ in result.admitted]


def victims(result: Pass) -> list[list[str]]:
    return [[victim.key.name for victim in losers] for _, losers in result.preempted]


def test_priority_goes_first_then_time_then_name() -> None:
    late, early = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
    result = run(
        wants("b", since=early),
        wants("a", since=early),
        wants("late", since=late),
        wants("top", priority=1, since=late),
        cpu=9,
    )
    assert admitted(result) == ["top", "a", "b", "late"]


def test_a_smaller_one_overtakes_one_that_does_not_fit() -> None:
    result = run(wants("big", 2, priority=1), wants("small"), holders=(has("other"),))
    assert admitted(result) == ["small"]
    assert [candidate.key.name for candidate, _ in result.waiting] == ["big"]


def test_with_strict_order_nobody_overtakes() -> None:
    result = run(wants("big", 2, priority=1), wants("small"), holders=(has("other"),), rules=Rules(strict=True))
    assert admitted(result) == []


def test_what_was_given_in_a_pass_is_gone_for_the_rest_of_it() -> None:
    assert admitted(run(wants("a"), wants("b"), wants("c"))) == ["a", "b"]


def test_equal_ones_are_refused_without_being_tried() -> None:
    """A backlog of equal jobs costs one try a pass."""
    pending = [wants(f"w{number}") for number in range(5)]
    result = schedule(Quota.of(cluster_queue(cpu="2")), Rules(), iter(pending), (), shapes=1)
    assert admitted(result) == ["w0", "w1"]
    assert [candidate.key.name for candidate, _ in result.waiting] == ["w2"]
    assert pending[4].shape in result.refusals


def test_without_the_rule_nobody_makes_room() -> None:
    assert victims(run(wants("top", 2, priority=9), holders=(has("low", 2),))) == []


def test_the_lowest_and_newest_make_room_and_no_more_than_needed() -> None:
    holders = (
        has("old-low", since="2026-01-01T00:00:00Z"),
        has("new-low", since="2026-01-03T00:00:00Z"),
        has("mid", priority=5),
    )
    result = run(wants("top", priority=9), cpu=3, holders=holders, rules=ROOM)
    assert victims(result) == [["new-low"]]
    assert result.waiting[0][1].endswith("1 more needed. Pending the preemption of 1 workload(s)")


def test_one_that_is_not_needed_after_all_is_spared() -> None:
    """Going up by priority, the small one is chosen first; the big one alone is enough."""
    holders = (has("small", 1, priority=1), has("big", 3, priority=2))
    assert victims(run(wants("top", 3, priority=9), cpu=4, holders=holders, rules=ROOM)) == [["big"]]


def test_equals_do_not_make_room_unless_newer_ones_have_to() -> None:
    holders = (has("equal", 2, since="2026-01-05T00:00:00Z", queued="2026-01-05T00:00:00Z"),)
    candidate = wants("older", 2, since="2026-01-01T00:00:00Z")
    assert victims(run(candidate, holders=holders, rules=ROOM)) == []
    newer = Rules(preemption="LowerOrNewerEqualPriority")
    assert victims(run(candidate, holders=holders, rules=newer)) == [["equal"]]


def test_who_queued_first_is_not_newer_because_it_got_its_quota_late() -> None:
    """It would be first again, and so for ever."""
    holder = has("older", 2, queued="2026-01-01T00:00:00Z", since="2026-01-05T00:00:00Z")
    candidate = wants("newer", 2, since="2026-01-02T00:00:00Z")
    assert victims(run(candidate, holders=(holder,), rules=Rules(preemption="LowerOrNewerEqualPriority"))) == []


def test_nobody_is_evicted_in_vain() -> None:
    assert victims(run(wants("huge", 9, priority=9), holders=(has("low", 2),), rules=ROOM)) == []


def test_quota_that_is_on_its_way_back_is_waited_for() -> None:
    """The second pass, before the first victim has stopped, must not choose another one."""
    holders = (has("leaving", 1, evicted=True), has("low", 1))
    result = run(wants("top", 1, priority=9), holders=holders, rules=ROOM)
    assert (admitted(result), victims(result)) == ([], [])


def test_what_was_made_free_is_not_taken_by_a_smaller_one() -> None:
    holders = (has("low", 1),)
    result = run(wants("top", 2, priority=9), wants("small", 1), holders=holders, rules=ROOM)
    assert victims(result) == [["low"]]
    assert admitted(result) == [], "the free unit is kept for the one that waits for the other"


@given(
    st.integers(0, 8),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=8),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=5),
    st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
    st.booleans(),
)
def test_quota_is_never_exceeded(
    cpu: int,
    pending: list[tuple[int, int]],
    holding: list[tuple[int, int, bool]],
    preemption: str,
    strict: bool,
) -> None:
    """Whoever waits and whatever the rules, what is given fits into what is free, and only the weaker make room."""
    holders = tuple(
        has(f"h{number}", size, priority=priority, evicted=gone)
        for number, (size, priority, gone) in enumerate(holding)
    )
    used = sum(size for size, _, _ in holding)
    waiting = [wants(f"w{number}", size, priority=priority) for number, (size, priority) in enumerate(pending)]
    result = run(*waiting, cpu=cpu, holders=holders, rules=Rules(strict, preemption))
    given_cpu = sum(assignment.usage.get(("default", "cpu"), 0) for _, assignment in result.admitted)
    assert given_cpu <= max(0, cpu - used) * 1000
    for winner, losers in result.preempted:
        assert all(loser.priority <= winner.priority and not loser.evicted for loser in losers)


def may_have_fewer(name: str, pods: int, least: int, *, priority: int = 0) -> Candidate:
    """A Job of so many pods of one CPU, that runs with fewer."""
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    asked = request({"name": "main", "count": pods, "minCount": least, "template": template})
    return Candidate(ObjectKey("default", name), priority, "2026-01-01T00:00:00Z", (asked,))


def sizes(result: Pass) -> dict[str, list[int]]:
    return {
        candidate.key.name: [pod_set["count"] for pod_set in given.pod_sets] for candidate, given in result.admitted
    }


def test_one_that_may_have_fewer_pods_has_as_many_as_there_is_room_for() -> None:
    """Kueue's example: 20 pods, at least 5. It waited for ever."""
    assert sizes(run(may_have_fewer("a", 20, 5), cpu=9)) == {"a": [9]}
    assert sizes(run(may_have_fewer("a", 20, 5), cpu=30)) == {"a": [20]}
    assert sizes(run(may_have_fewer("a", 20, 5), wants("b"), cpu=9)) == {"a": [9]}, "nothing is left"
    assert sizes(run(may_have_fewer("a", 20, 5), cpu=5)) == {"a": [5]}
    assert sizes(run(may_have_fewer("a", 20, 5), cpu=4)) == {}


def test_somebody_makes_room_rather_than_that_it_has_fewer() -> None:
    result = run(may_have_fewer("a", 4, 1, priority=1), cpu=4, holders=(has("low", 2),), rules=ROOM)
    assert (sizes(result), victims(result)) == ({}, [["low"]])
    assert sizes(run(may_have_fewer("a", 4, 1), cpu=4, holders=(has("same", 2),), rules=ROOM)) == {"a": [2]}


def test_several_pod_sets_lose_their_part() -> None:
    (request,) = may_have_fewer("a", 8, 2).requests
    (other,) = may_have_fewer("a", 4, 1).requests
    candidate = attrs.evolve(may_have_fewer("a", 8, 2), requests=(request, attrs.evolve(other, name="second")))
    assert sizes(run(candidate, cpu=8)) == {"a": [5, 3]}
    assert sizes(run(candidate, cpu=3)) == {"a": [2, 1]}
    assert sizes(run(candidate, cpu=2)) == {}
