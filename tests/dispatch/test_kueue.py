"""The simulated Kueue: who gets quota, and whose quota it takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.room import Node, Quota, Tree
from tests.dispatch.clock import Clock
from tests.dispatch.kueue import ClusterQueue, Copy, Kueue, State
from tests.dispatch.quota import QuotaNode


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def admitted(self, copy: Copy) -> None:
        self.noted.append(f"+{copy.owner}")

    def preempted(self, copy: Copy) -> None:
        self.noted.append(f"-{copy.owner}")

    def answered(self, copy: Copy) -> None:
        self.noted.append(f"?{copy.owner}")

    def changed(self) -> None:
        pass


def copy(name: str, gpus: int, *, priority: int = 0, age: float = 0.0, gated: bool = False) -> Copy:
    return Copy(name, (gpus, 0), (0,), priority, -age, gated=gated)


def one_queue(gpus: int) -> tuple[Kueue, ClusterQueue, Listener]:
    listener, queue = Listener(), ClusterQueue(QuotaNode([gpus, 0]))
    return Kueue(Clock(), (queue,), listener), queue, listener


def test_what_fits_passes_what_does_not_and_the_oldest_is_first() -> None:
    kueue, queue, listener = one_queue(8)
    running = copy("running", 6)
    for waiting in (running, copy("large", 4, age=9), copy("young", 2, age=1), copy("old", 2, age=5), copy("never", 9)):
        kueue.submit(waiting, queue)
    assert listener.noted == ["+running", "+young", "?never"]
    assert queue.pending == 3

    kueue.remove(running, queue)

    assert listener.noted[3:] == ["+large", "+old"]


def test_a_higher_priority_preempts_the_youngest_lower_one() -> None:
    kueue, queue, listener = one_queue(4)
    for name in ("first", "second"):
        kueue.submit(copy(name, 2), queue)

    kueue.submit(copy("urgent", 2, priority=1), queue)

    assert listener.noted == ["+first", "+second", "-second", "+urgent"]


def test_a_gated_copy_waits_for_its_gate_before_it_preempts() -> None:
    kueue, queue, listener = one_queue(4)
    kueue.submit(copy("running", 4), queue)
    urgent = copy("urgent", 4, priority=1, gated=True)
    kueue.submit(urgent, queue)
    assert (listener.noted, urgent.state) == (["+running", "?urgent"], State.PENDING)

    kueue.open_gate(urgent, queue)

    assert listener.noted[2:] == ["-running", "+urgent"]
    assert queue.pending == 0


def test_a_queue_borrows_and_gives_back_when_its_owner_needs_it() -> None:
    listener, top = Listener(), QuotaNode([0, 0])
    ours, theirs = (ClusterQueue(QuotaNode([4, 0], top), reclaim=True) for _ in range(2))
    kueue = Kueue(Clock(), (ours, theirs), listener)
    for name in ("own", "borrowing"):
        kueue.submit(copy(name, 4), ours)

    kueue.submit(copy("theirs", 4), theirs)

    assert listener.noted == ["+own", "+borrowing", "-borrowing", "+theirs"]


def test_a_queue_takes_nothing_back_to_borrow_with_it() -> None:
    """Two that did took the same room from each other for ever, and no time passed."""
    listener, top = Listener(), QuotaNode([0, 0])
    ours, theirs = (ClusterQueue(QuotaNode([4, 0], top), reclaim=True) for _ in range(2))
    kueue = Kueue(Clock(), (ours, theirs), listener)
    for name, gpus, queue in (("own", 2, ours), ("borrowing", 4, ours), ("small", 1, theirs)):
        kueue.submit(copy(name, gpus), queue)

    kueue.submit(copy("larger than is left of its own", 4), theirs)

    assert listener.noted == ["+own", "+borrowing", "+small"]


limits = st.none() | st.integers(0, 5)
queues = st.lists(
    st.tuples(st.integers(0, 9), limits, limits, st.lists(st.integers(1, 9), max_size=4)), min_size=1, max_size=4
)


@given(st.integers(0, 9), queues)
def test_room_is_what_the_dispatcher_thinks_it_is(
    shared: int, drawn: list[tuple[int, int | None, int | None, list[int]]]
) -> None:
    """Two ports of Kueue's arithmetic, written apart: the dispatcher sums a tree up, this one counts as it goes."""
    top = QuotaNode([shared])
    nodes = [
        QuotaNode([own], top, None if borrows is None else [borrows], None if lends is None else [lends])
        for own, borrows, lends, _ in drawn
    ]
    for node, (*_, amounts) in zip(nodes, drawn, strict=True):
        for amount in amounts:
            if amount <= node.available(0):
                node.add(0, amount)
    for node, (*_, amounts) in zip(nodes, drawn, strict=True):
        if amounts and amounts[0] <= node.usage[0]:
            node.release(0, amounts[0])

    key = ("flavor", "gpu")
    tree = Tree(
        {
            f"q{i}": Node("top", {key: Quota(own, borrows, lends)}, {key: node.usage[0]})
            for i, (node, (own, borrows, lends, _)) in enumerate(zip(nodes, drawn, strict=True))
        },
        {"top": Node(None, {key: Quota(shared)})},
    )

    assert [tree.available(f"q{i}")[key] for i in range(len(nodes))] == [max(0, node.available(0)) for node in nodes]
    assert [tree.ceiling(f"q{i}")[key] for i in range(len(nodes))] == [node.ceiling(0) for node in nodes]
