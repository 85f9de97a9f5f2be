"""Claims: who is ahead on which queue, and whom a grown queue wakes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import Known
from multikueue.core.dispatchers.scored import ledger as ledger_module
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import (
    Flavored,
    Group,
    Place,
    PodSet,
    QueueFacts,
    ResourceRequest,
    Running,
)
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.room import placed, without
from multikueue.core.model.names import ClusterName, ObjectKey
from tests.core.door import NOW

GPU = ("a100", "gpu")
W1, W2, W3 = ((ClusterName(name), "queue") for name in ("w1", "w2", "w3"))
GROUPS = (Group(frozenset({"gpu"}), ("a100",)),)


def queue(free: int, ceiling: int = 16) -> QueueFacts:
    amounts = {GPU: ceiling}
    return QueueFacts("queue", GROUPS, free={GPU: free}, ceiling=amounts, nominal=amounts)


def several(free: dict[Flavored, int], ceiling: int) -> QueueFacts:
    """A queue with more than one flavor, or resource: so much of each is the most that it can have free."""
    flavors, resources = (tuple(dict.fromkeys(key[part] for key in free)) for part in (0, 1))
    amounts = dict.fromkeys(free, ceiling)
    return QueueFacts("queue", (Group(frozenset(resources), flavors),), free=free, ceiling=amounts, nominal=amounts)


def key(name: str) -> ObjectKey:
    return ObjectKey("team", name)


def entry(
    name: str,
    gpus: int,
    *,
    age: int = 0,
    priority: int = 0,
    team: str = "team",
    places: Sequence[Place] = (W1,),
    offered: Sequence[Place] = (),
    doubtful: bool = False,
) -> Entry:
    """The entry of a Workload that waits since so many seconds."""
    at, request = NOW - timedelta(seconds=age), ResourceRequest((PodSet({"gpu": gpus}),))
    return Entry(key(name), name, team, priority, at, at, request, tuple(places), tuple(offered), doubtful)


def ledger(*entries: Entry, **queues: int) -> Ledger:
    made = Ledger()
    for name, free in queues.items():
        made.set_queue((ClusterName(name), "queue"), queue(free))
    for entry in entries:
        made.put(entry)
    return made


def net(made: Ledger, name: str, place: Place = W1) -> int:
    free = made.net(key(name), place, NOW)
    assert free is not None
    return free.get(GPU, 0)


def test_a_younger_one_does_not_overtake() -> None:
    made = ledger(entry("old", 6, age=20), entry("young", 4, age=10), w1=8)

    assert (net(made, "old"), net(made, "young")) == (8, 2)


def test_a_smaller_one_takes_what_the_older_cannot_use() -> None:
    made = ledger(entry("old", 12, age=20), entry("young", 4, age=10), w1=8)

    assert made.woken(NOW) == (key("young"),)


def test_priority_comes_before_age_and_between_queues_the_older_head() -> None:
    mine = [entry("low", 1, age=50), entry("high", 1, age=5, priority=9)]
    made = ledger(*mine, entry("theirs", 1, age=20, team="other"), w1=8)

    assert made.woken(NOW) == (key("theirs"), key("high"), key("low"))


def test_offers_are_taken_off_for_all_but_their_own() -> None:
    made = ledger(entry("offered", 6, offered=[W1]), entry("other", 4), w1=8)

    assert (net(made, "offered"), net(made, "other")) == (8, 2)


def test_an_offer_in_doubt_takes_no_room_and_has_its_turn_elsewhere() -> None:
    """It was no claim anywhere: all that came later passed it for as long as it stood where nobody took it."""
    doubtful = entry("doubtful", 4, age=20, places=[W1, W2], offered=[W1], doubtful=True)
    made = ledger(doubtful, entry("young", 4, age=10, places=[W1, W2]), w1=8, w2=0)
    made.woken(NOW)
    assert (net(made, "doubtful"), net(made, "young")) == (8, 8)

    made.set_queue(W2, queue(4))

    assert made.woken(NOW) == (key("doubtful"),)
    assert (net(made, "doubtful", W2), net(made, "young", W2)) == (4, 0)


def test_an_offer_without_room_has_its_turn_elsewhere() -> None:
    """It was to be seen whether the worker preempts: nobody woke it when another had room."""
    offered = attrs.evolve(entry("probing", 4, age=20, places=[W1, W2], offered=[W1]), without_room=True)
    made = ledger(offered, entry("young", 4, age=10, places=[W2]), w1=2, w2=0)
    assert (made.woken(NOW), net(made, "other")) == ((), -2)

    made.set_queue(W2, queue(4))

    assert made.woken(NOW) == (key("probing"),)
    assert net(made, "young", W2) == 0


def test_what_is_free_goes_to_whom_it_fits_however_long_a_larger_one_is_held() -> None:
    """What was kept free for it stayed idle, and it waited no less for it."""
    made = ledger(entry("gang", 12, age=86_400), entry("small", 8, age=5), w1=8)

    assert made.woken(NOW) == (key("small"),)
    assert net(made, "gang") == 0


def test_an_offer_without_room_takes_all_that_is_free() -> None:
    made = ledger(entry("offered", 12, offered=[W1]), entry("other", 1), w1=8)

    assert net(made, "other") < 0


def test_a_queue_with_a_penalty_takes_one_at_a_time() -> None:
    penalized = attrs.evolve(queue(9), penalized_until=NOW + timedelta(hours=1))
    made = ledger(entry("first", 4, age=20), entry("second", 4, age=10))
    made.set_queue(W1, penalized)
    assert made.woken(NOW) == (key("first"), key("second"))

    made.put(entry("first", 4, age=20, offered=[W1]))
    assert net(made, "second") == 0
    made.drop(key("first"))
    made.set_queue(W1, attrs.evolve(penalized, running=(Running(0, {GPU: 4}),)))
    assert net(made, "second") == 0
    assert made.woken(NOW) == ()

    assert made.woken(NOW + timedelta(hours=1)) == (key("second"),)


def test_the_end_of_a_penalty_wakes() -> None:
    """Who is offered there meanwhile may wait for long."""
    made = ledger(entry("first", 4, offered=[W1]), entry("eldest", 12, age=90, places=[W2]), entry("second", 4), w2=0)
    made.set_queue(W1, attrs.evolve(queue(9), penalized_until=NOW + timedelta(seconds=30)))
    assert (made.woken(NOW), net(made, "second")) == ((), 0)

    assert made.woken(NOW + timedelta(seconds=30)) == (key("second"),)


def test_only_growth_wakes_and_each_once() -> None:
    made = ledger(*(entry(f"j{age}", 4, age=age) for age in (10, 20, 30)), w1=0)
    assert made.woken(NOW) == ()
    made.set_queue(W1, queue(9))
    assert made.woken(NOW) == (key("j30"), key("j20"))
    assert made.woken(NOW) == ()
    made.set_queue(W1, queue(3))
    assert made.woken(NOW) == ()
    made.set_queue(W1, queue(4))
    assert made.woken(NOW) == (key("j30"),)


def test_one_that_came_too_late_is_woken_when_it_fits_again() -> None:
    made = ledger(entry("job", 4), w1=4)
    assert made.woken(NOW) == (key("job"),)
    made.set_queue(W1, queue(3))
    assert net(made, "job") == 3  # it looks now
    made.set_queue(W1, queue(4))

    assert made.woken(NOW) == (key("job"),)


def test_one_that_was_woken_to_probe_is_woken_when_it_fits() -> None:
    made = ledger(entry("job", 4))
    made.set_queue(W1, attrs.evolve(queue(0), within="LowerPriority"))
    assert made.woken(NOW) == (key("job"),)
    made.set_queue(W1, attrs.evolve(queue(4), within="LowerPriority"))

    assert made.woken(NOW) == (key("job"),)


def test_jobs_of_others_keep_what_is_free_for_ten_minutes() -> None:
    made = ledger(entry("one", 4))
    made.set_queue(W1, attrs.evolve(queue(8), others_pending=1, others_since=NOW))

    assert made.woken(NOW + timedelta(minutes=9)) == ()
    assert made.woken(NOW + timedelta(minutes=10)) == (key("one"),)


def test_a_penalty_that_ends_wakes_those_that_wait_beside_an_offer() -> None:
    made = ledger(entry("tried", 4, offered=(W1,)), entry("held", 4, age=90))
    made.set_queue(W1, attrs.evolve(queue(8), penalized_until=NOW + timedelta(minutes=5)))
    assert (made.woken(NOW), net(made, "held")) == ((), 0)

    assert made.woken(NOW + timedelta(minutes=5)) == (key("held"),)


@pytest.mark.parametrize("change", [{"known": Known.SILENT}, {"has_checks": True}])
def test_all_are_asked_again_when_figures_say_nothing_any_more(change: dict[str, Any]) -> None:
    made = ledger(entry("one", 4), entry("two", 4), w1=0)
    made.set_queue(W1, attrs.evolve(queue(0), **change))

    assert set(made.woken(NOW)) == {key("one"), key("two")}


def test_an_offer_has_room_only_in_the_flavor_that_it_is_reckoned_in() -> None:
    """It counted as free for it what others used of the first flavor: it stayed where it would have to wait."""
    made = ledger(entry("offered", 8, offered=[W1]), entry("other", 4, offered=[W1], age=20))
    made.set_queue(W1, several({("a100", "gpu"): 0, ("t4", "gpu"): 8}, 16))

    assert made.net(key("other"), W1, NOW) == {("a100", "gpu"): 0, ("t4", "gpu"): 0}
    assert made.net(key("offered"), W1, NOW) == {("a100", "gpu"): 0, ("t4", "gpu"): 4}


def test_one_of_a_priority_may_probe() -> None:
    made = ledger(entry("old", 12, age=20), entry("young", 12, age=10), entry("high", 12, priority=1), w1=8)
    assert [name for name in ("old", "young", "high") if made.leads(key(name), W1)] == ["old", "high"]
    made.put(entry("young", 12, age=10, offered=[W1]))
    assert not made.leads(key("old"), W1)
    assert made.leads(key("young"), W1)


def test_the_next_that_may_probe_is_woken_when_its_turn_comes() -> None:
    made = ledger(entry("asked", 4, age=30, offered=(W1,)), entry("next", 4, age=20), entry("last", 4, age=10), w1=0)
    made.set_queue(W1, attrs.evolve(queue(0), within="LowerPriority"))
    assert made.woken(NOW) == ()
    made.drop(key("asked"))
    assert made.woken(NOW) == (key("next"),)
    made.drop(key("next"))
    assert made.woken(NOW) == (key("last"),)


def test_those_that_go_to_none_of_some_places_are_told_in_their_order() -> None:
    made = ledger(
        entry("low", 4, places=()),
        entry("high", 4, priority=1, places=(W2,)),
        entry("there", 4),
        entry("asked", 4, offered=(W2,)),
    )
    assert made.held({W1}) == [key("high"), key("low")]


def test_a_change_looks_at_each_kind_of_request_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand that are held cost no more than their forty kinds."""
    places = tuple((ClusterName(f"w{number}"), "queue") for number in range(20))
    made, looked = Ledger(), list[ResourceRequest]()
    for place in places:
        made.set_queue(place, queue(0, ceiling=100))
    for number in range(10_000):
        made.put(entry(f"j{number}", 10 + number % 40, age=number % 50, places=places))
    made.woken(NOW)

    def counted(request: ResourceRequest, *arguments: Any) -> dict[tuple[str, str], int] | None:
        looked.append(request)
        return placed(request, *arguments)

    monkeypatch.setattr(ledger_module, "placed", counted)
    made.set_queue(places[0], queue(25, ceiling=100))
    woken = made.woken(NOW)

    assert woken == (key("j1049"),)
    assert len(looked) <= 2 * 40 + 1


entries = st.builds(
    lambda name, gpus, without_room, **more: attrs.evolve(entry(name, gpus, **more), without_room=without_room),
    st.sampled_from("abcdefgh"),
    st.integers(1, 6),
    age=st.integers(0, 100),
    priority=st.integers(0, 2),
    team=st.sampled_from(["red", "blue"]),
    places=st.sampled_from([(W1,), (W2,), (W1, W2), (W2, W1)]),
    offered=st.sampled_from([(), (), (W1,), (W2,)]),
    doubtful=st.booleans(),
    without_room=st.booleans(),
)


facts = st.builds(
    lambda free, changes: attrs.evolve(queue(free), **changes),
    st.integers(0, 12),
    st.sampled_from(
        [
            {},
            {"within": "LowerPriority"},
            {"running": (Running(0, {GPU: 4}),)},
            {"others_pending": 1, "others_since": NOW - timedelta(minutes=9)},
            {"penalized_until": NOW + timedelta(seconds=30)},
        ]
    ),
)
places = st.sampled_from([W1, W2])
steps = st.one_of(
    entries,
    st.sampled_from("abcdefgh").map(key),
    st.tuples(places, st.none() | facts),
    st.timedeltas(timedelta(seconds=1), timedelta(seconds=70)),
)


@given(st.tuples(facts, facts), st.lists(steps, max_size=20))
def test_it_is_a_function_of_what_was_put_in_last(first: Sequence[QueueFacts], after: list[Any]) -> None:
    grown, waiting, queues, now = Ledger(), dict[ObjectKey, Entry](), dict[Place, QueueFacts | None](), NOW
    for step in (*zip((W1, W2), first, strict=True), *after):
        match step:
            case Entry():
                waiting[step.key] = step
                grown.put(step)
            case ObjectKey():
                waiting.pop(step, None)
                grown.drop(step)
            case timedelta():
                now += step
                grown.woken(now)
            case (place, facts):
                queues[place] = facts
                grown.set_queue(place, facts)
        for at in (W1, W2):
            grown.net(key("a"), at, now)
    fresh = Ledger()
    for place, facts in queues.items():
        fresh.set_queue(place, facts)
    for entry in sorted(waiting.values(), key=lambda entry: entry.key):
        fresh.put(entry)
    grown.woken(now)

    for name, place in itertools.product((*waiting, key("another")), (W1, W2)):
        assert grown.net(name, place, now) == fresh.net(name, place, now)
        assert grown.leads(name, place) == fresh.leads(name, place)


@pytest.mark.parametrize("there", [("a", "c"), ("a", "b", "c")], ids=["it comes", "it goes"])
def test_one_that_fits_nowhere_does_not_change_whose_turn_it_is(there: Sequence[str]) -> None:
    """Two queues, each with one that fits; another is first in its queue, and far too big."""
    all_of_them = {
        "a": entry("a", 1, age=1, team="red"),
        "b": entry("b", 2, age=0, priority=1, team="blue"),
        "c": entry("c", 1, age=1, team="blue"),
    }
    made = ledger(*(all_of_them[name] for name in there), w1=1)
    before = [net(made, "a"), net(made, "c")]
    made.drop(key("b")) if "b" in there else made.put(all_of_them["b"])

    assert [net(made, "a"), net(made, "c")] == before == [0, 1]


@given(st.lists(entries, max_size=12), st.integers(0, 12))
def test_what_it_lets_in_is_what_a_walk_over_all_lets_in(puts: list[Entry], free: int) -> None:
    """Written as the rule reads: heads of the queues by their time, one after the other, each takes what it needs."""
    last = {entry.key: attrs.evolve(entry, reserved=NOW, queued=entry.queued) for entry in puts}
    made = ledger(*last.values(), w1=free)
    left = {GPU: free}
    for entry in sorted(last.values(), key=lambda entry: entry.rank):
        if W1 in entry.offered and not entry.doubtful:
            left = dict(without(left, {GPU: entry.request.total["gpu"]}))
    lines = {
        team: sorted(
            (entry for entry in last.values() if entry.queue == team and W1 in (entry.waits_for or ())),
            key=lambda entry: entry.rank,
        )
        for team in ("blue", "red")
    }
    expected = set()
    for entry in itertools.chain(*(lines[team] for team in ("blue", "red"))):
        taken = placed(entry.request, GROUPS, left)
        if taken is not None:
            expected.add(entry.key)
            left = dict(without(left, taken))

    assert set(made.woken(NOW)) == expected
