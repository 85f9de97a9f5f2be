"""When a server that says nothing is probed, and when it is lost."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.machinery.liveness import (
    LOST_AFTER,
    PROBE_DEADLINE,
    PROBE_EVERY,
    Due,
    Heard,
    Liveness,
    Lose,
    Probe,
)


@attrs.define
class Server:
    """A server and what watches it, on their own clock. `answers_after`: seconds, by when it is asked; None: never."""

    answers_after: Callable[[float], float | None]
    events: tuple[float, ...] = ()
    state: Liveness = attrs.field(factory=lambda: Liveness.beginning(0.0))
    probes: list[float] = attrs.field(factory=list)
    lost: list[tuple[float, float]] = attrs.field(factory=list)
    """When it was lost, and since when it was silent then."""

    def run(self, until: float, wakes: Callable[[float], float] = lambda due: due) -> None:
        """Pass the time. `wakes`: when this process sees that something is due."""
        heard = list(self.events)
        heapq.heapify(heard)
        while (now := wakes(self.state.due_at)) <= until:
            while heard and heard[0] <= now:
                self.state, nothing = self.state.step(Heard(), heapq.heappop(heard))
                assert nothing is None
            if wakes(self.state.due_at) > now:
                continue
            self.state, command = self.state.step(Due(), now)
            match command:
                case Probe():
                    self.probes.append(now)
                    after = self.answers_after(now)
                    if after is not None and after <= PROBE_DEADLINE:
                        heapq.heappush(heard, now + after)
                case Lose(silent_for):
                    self.lost.append((now, now - silent_for))


def test_one_that_hangs_is_lost_twenty_seconds_after_its_last_word() -> None:
    """Measured before: 100 s. The loss begins with the last word, not with the moment of noticing."""
    hung = Server(lambda _now: None, events=(1.0, 3.5, 7.25))
    hung.run(until=30)
    assert hung.lost == [(7.25 + LOST_AFTER, 7.25)]
    assert hung.probes == [12.25, 17.25, 22.25]


def test_one_with_traffic_costs_nothing() -> None:
    busy = Server(lambda _now: None, events=tuple(4.0 * number for number in range(250)))
    busy.run(until=1_000)
    assert (busy.probes, busy.lost) == ([], [])


def test_a_quiet_one_costs_one_request_every_five_seconds() -> None:
    quiet = Server(lambda _now: 0.0)
    quiet.run(until=1_000)
    assert len(quiet.probes) == 1_000 / PROBE_EVERY
    assert quiet.lost == []


@given(st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_answers_that_take_ten_seconds_never_lose_a_server(delays: list[float]) -> None:
    slow = Server(lambda now: delays[int(now) % len(delays)])
    slow.run(until=1_000)
    assert slow.lost == []


def test_one_that_always_takes_ten_seconds_has_several_probes_under_way() -> None:
    slow = Server(lambda _now: 10.0)
    slow.run(until=100)
    assert slow.lost == []
    assert slow.probes[:4] == [5, 10, 25, 30]


@given(st.lists(st.floats(0, 300), max_size=30), st.lists(st.one_of(st.none(), st.floats(0, 60)), min_size=1))
def test_a_loss_is_twenty_seconds_without_a_word_and_three_probes(
    events: list[float], delays: list[float | None]
) -> None:
    """Whatever comes when: nothing is lost before, and nothing that is silent for longer is kept."""
    server = Server(lambda now: delays[int(now) % len(delays)], events=tuple(sorted(events)))
    server.run(until=400)
    for at, since in server.lost:
        silent = [sent for sent in server.probes if since < sent < at]
        assert at - since >= LOST_AFTER - 1e-6
        assert len(silent) >= 3
        assert not any(since + 1e-6 < event < at for event in events)


@pytest.mark.parametrize("frozen", [6.0, 40.0, 3_600.0])
def test_time_in_which_this_process_stood_still_loses_nobody(frozen: float) -> None:
    """The answers may be there and unread: a stopped process, a blocked loop, a suspended machine."""
    server = Server(lambda _now: None)
    server.run(until=20 + frozen + LOST_AFTER, wakes=lambda due: due if due < 20 else max(due, 20 + frozen))
    ((at, since),) = server.lost
    assert at == 20 + frozen + LOST_AFTER - PROBE_EVERY
    assert since == frozen, "nor does it count for the loss"


def test_one_that_is_not_followed_is_left_to_its_back_off() -> None:
    state, command = Liveness.beginning(0.0).step(Due(following=False), 5.0)
    assert (state, command) == (Liveness(0.0, 10.0), None)
    for now in (10.0, 15.0, 20.0, 25.0):
        state, command = state.step(Due(following=False), now)
        assert command is None
    _, command = state.step(Due(), 30.0)
    assert command == Probe(), "and begins anew"
