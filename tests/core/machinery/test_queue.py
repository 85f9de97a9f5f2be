"""The work queue against a model that is too simple to be wrong.

Keys at the expense of whoever caused them.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.machinery.message_rate import Budget
from multikueue.core.machinery.queue import SPARE, ChargedQueue, QueueStatistics, WorkQueue
from tests.examples import examples

KEYS = st.sampled_from("abc")
DELAYS = st.integers(0, 3)


@attrs.define
class Waiting:
    """When a key is due, and how many came before it."""

    at: float
    order: int = 0


class QueueMachine(RuleBasedStateMachine):
    """Compares `WorkQueue` with what waits, and what was added while held."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue()
        self.now = 0.0
        self.added = 0
        self.waiting: dict[str, Waiting] = {}
        self.held: dict[str, float | None] = {}

    def wait(self, key: str, at: float) -> None:
        self.added += 1
        self.waiting[key] = Waiting(at, self.added)

    @rule(key=KEYS, delay=DELAYS)
    def add(self, key: str, delay: int) -> None:
        at = self.now + delay
        self.queue.add(key, at)
        if key in self.held:
            known = self.held[key]
            self.held[key] = at if known is None else min(known, at)
        elif key not in self.waiting or at < self.waiting[key].at:
            self.wait(key, at)

    @rule()
    def take(self) -> None:
        due = [key for key, entry in self.waiting.items() if entry.at <= self.now]
        expected = min(due, key=lambda key: (self.waiting[key].at, self.waiting[key].order), default=None)
        assert self.queue.take(self.now) == expected
        if expected is not None:
            del self.waiting[expected]
            self.held[expected] = None

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.queue.release(key)
        at = self.held.pop(key)
        if at is not None:
            self.wait(key, at)

    @rule(seconds=DELAYS)
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @invariant()
    def the_next_time_is_known(self) -> None:
        first, next_due = min((waiting.at for waiting in self.waiting.values()), default=None), self.queue.next_due()
        if first is None or first > self.now or next_due is None:
            assert next_due == first
        else:
            assert next_due <= self.now  # some key is due; since when matters to nobody

    @invariant()
    def it_counts_what_it_has(self) -> None:
        again = [at for at in self.held.values() if at is not None]
        assert len(self.queue) == len(self.waiting) + len(again)
        assert self.queue.statistics() == QueueStatistics(len(self.waiting) + len(again), len(self.held))


QueueMachine.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
TestQueueMachine = QueueMachine.TestCase


def test_ties_come_out_in_the_order_they_were_added() -> None:
    """A key that was pulled forward once does not jump the queue later."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("early", 5)
    queue.add("early", 3)
    assert queue.take(3) == "early"
    queue.release("early")
    queue.add("first", 5)
    queue.add("early", 5)
    assert [queue.take(5), queue.take(5), queue.take(5)] == ["first", "early", None]


def test_a_released_key_comes_before_what_became_due_after_it() -> None:
    """It changed at 3, while a slow reconcile held it; behind ten thousand that changed later it waited for these."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("slow", 0)
    assert queue.take(0) == "slow"
    queue.add("slow", 3)
    queue.add("later", 4)
    queue.add("latest", 5)
    assert queue.take(5) == "later"
    queue.release("slow")
    assert [queue.take(5), queue.take(5), queue.take(5)] == ["slow", "latest", None]


def test_a_time_in_the_past_does_not_jump_the_queue() -> None:
    """A holder that always asks for one starves nobody."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("first", 0)
    queue.add("second", 1)
    queue.add("third", 2)
    assert queue.take(2) == "first"
    queue.add("first", 0)
    queue.release("first")
    assert [queue.take(2), queue.take(2), queue.take(2)] == ["second", "third", "first"]


def test_a_key_has_one_holder() -> None:
    """Two reconciles of one object never run at the same time, and no change in between is lost."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    assert queue.take(0) == "a"
    queue.add("a", 0)
    assert queue.take(0) is None
    assert queue.next_due() is None
    queue.release("a")
    assert queue.take(0) == "a"


def test_releasing_a_key_nobody_holds_changes_nothing() -> None:
    """A holder that cleans up twice does no harm."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    queue.release("a")
    queue.release("b")
    assert len(queue) == 1


def test_its_repr_says_how_much_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    queue.add("b", 0)
    queue.take(0)
    assert repr(queue) == "<WorkQueue: 1 waiting, 1 held>"


def test_times_that_no_longer_hold_do_not_pile_up() -> None:
    """2,000 keys, each wanted earlier 300 times, were 600,000 entries and 90 MiB."""
    queue: WorkQueue[int] = WorkQueue()
    for earlier in range(300):
        for key in range(200):
            queue.add(key, 1000.0 - earlier)
    assert len(queue) == 200
    assert queue.entries <= 2 * 200 + SPARE
    assert [queue.take(1000.0) for _ in range(201)] == [*range(200), None]


def test_a_key_behind_ten_thousand_of_another_flow_is_the_second() -> None:
    """One tenant's namespace with 10,000 Workloads kept everybody else's waiting."""
    queue: WorkQueue[str] = WorkQueue(flow_of=lambda key: key.partition("/")[0])
    for number in range(10_000):
        queue.add(f"big/{number}", 0)
    queue.add("small/one", 1)

    assert [queue.take(1), queue.take(1), queue.take(1)] == ["big/0", "small/one", "big/1"]


def test_a_flow_has_a_share_of_what_is_held() -> None:
    """One tenant's large jobs held all places, each for as long as its large answers took."""
    queue = WorkQueue[str](flow_of=lambda key: key[0], places=4)
    for key in ("a1", "a2", "a3", "b1", "a4"):
        queue.add(key, 0.0)
    assert [queue.take(0.0) for _ in range(4)] == ["a1", "b1", "a2", None]
    assert queue.next_due() is None  # not at once: there is nothing to take then, either
    queue.add("a5", 1.0)
    assert queue.next_due() == 1.0
    queue.release("b1")
    assert queue.next_due() == 0.0
    assert [queue.take(0.0) for _ in range(2)] == ["a3", None], "nobody else is there: three quarters"
    assert len(queue) == 2


def test_a_key_that_is_added_all_the_time_is_due_some_times_a_second_and_no_other_is_late() -> None:
    """Whoever may change an object decides how often; what follows from it costs several times as much."""
    queue = WorkQueue[str](pace=Budget(at_once=3, a_second=2.0))
    taken = list[tuple[str, float]]()
    for tick in range(1_000):
        now = tick / 100
        queue.add("storm", now)
        if tick == 500:
            queue.add("calm", now)
        while (key := queue.take(now)) is not None:
            taken.append((key, now))
            queue.add(key, now) if key == "storm" else None  # it changed while it was held
            queue.release(key)
    assert ("calm", 5.0) in taken
    times = [at for key, at in taken if key == "storm"]
    assert times[:4] == [0.0, 0.0, 0.0, 0.5]
    assert 20 <= len(times) <= 24
    assert queue.next_due() is not None
    assert queue.take(20.0) == "storm", "the last change is looked at, too"


@pytest.mark.parametrize(("flows", "free"), [(1, 8), (2, 5), (3, 4), (5, 2), (10, 2), (30, 1), (31, 1)])
def test_a_newcomer_has_a_place_at_once_however_many_take_all_they_can(flows: int, free: int) -> None:
    """With half for each, two took all. Up to 31 leave one of 32; with more, the next that is free goes by turns."""
    queue = WorkQueue[tuple[int, int]](flow_of=lambda key: key[0], places=32)
    for flow in range(flows):
        for number in range(32):
            queue.add((flow, number), 0.0)
    while queue.take(0.0) is not None:
        pass
    assert 32 - queue.held == free
    queue.add((-1, 0), 0.0)
    assert queue.take(0.0) == (-1, 0)


def test_one_place_is_taken_by_whoever_is_there() -> None:
    queue = WorkQueue[str](places=1)
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"


def test_a_key_that_is_added_again_goes_to_the_flow_that_it_belongs_to_by_then() -> None:
    """What is urgent by now must not wait behind what it was like before. It keeps its time."""
    urgent: set[int] = set()
    queue: WorkQueue[int] = WorkQueue(flow_of=lambda key: key in urgent)
    for key in range(1, 10):
        queue.add(key, 0)
    assert queue.take(1) == 1
    urgent.add(9)
    queue.add(9, 1)
    assert [queue.take(1), queue.take(1), queue.take(1)] == [2, 9, 3]


def namespaced() -> ChargedQueue[str]:
    """A queue in which the part of a key before the slash is its flow."""
    return ChargedQueue(flow_of=lambda key: key.partition("/")[0], limit=3)


def test_what_somebody_caused_waits_in_their_flow_and_not_in_that_of_the_victim() -> None:
    queue = namespaced()
    for number in range(3):
        queue.charge(f"victim/{number}", 0, cause="worker1")
    queue.add("victim/own", 0)

    assert [queue.take(0), queue.take(0), queue.take(0)] == ["victim/0", "victim/own", "victim/1"]


def test_of_what_somebody_caused_there_is_a_limit_that_holds_for_nobody_else() -> None:
    """A worker that invents and removes Workloads faster than they are looked at."""
    queue = namespaced()
    assert [queue.charge(f"victim/{number}", 0, cause="worker1") for number in range(5)] == [True] * 3 + [False] * 2
    assert queue.charge("victim/0", 0, cause="worker1"), "it is here already"
    assert queue.charge("victim/9", 0, cause="worker2")
    queue.add("victim/4", 0)
    assert len(queue) == 5
    key = queue.take(0)
    assert key == "victim/0"
    assert not queue.charge("victim/5", 0, cause="worker1"), "it is still being looked at"
    queue.release(key)
    assert queue.charge("victim/5", 0, cause="worker1")


def test_what_is_looked_at_again_is_still_at_the_expense_of_whoever_caused_it() -> None:
    queue = namespaced()
    queue.charge("victim/0", 0, cause="worker1")
    assert queue.take(0) == "victim/0"
    queue.again("victim/0", 5)
    queue.release("victim/0")
    queue.charge("victim/1", 5, cause="worker1")
    queue.charge("victim/2", 5, cause="worker1")
    assert not queue.charge("victim/3", 5, cause="worker1")
    queue.add("victim/own", 5)
    assert [queue.take(5), queue.take(5)] == ["victim/0", "victim/own"]


def test_a_key_that_is_added_without_a_cause_is_at_nobodys_expense_from_then_on() -> None:
    """The manager has that Workload now: nobody's flood delays it."""
    queue = namespaced()
    for number in range(3):
        queue.charge(f"victim/{number}", 0, cause="worker1")
    assert queue.take(0) == "victim/0"  # all are due now
    queue.add("victim/2", 0)
    queue.charge("victim/2", 0, cause="worker2")
    assert queue.take(0) == "victim/1"
    assert queue.take(0) == "victim/2"
    queue.release("victim/2")
    assert queue.charge("victim/3", 0, cause="worker1")
