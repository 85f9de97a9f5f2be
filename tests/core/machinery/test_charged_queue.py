"""Keys at the expense of whoever caused them."""

from __future__ import annotations

from multikueue.core.machinery.charged_queue import ChargedQueue


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
