"""Exponential back-off."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from multikueue.core.machinery.backoff import (
    CONNECTION_BACKOFF,
    ITEM_BACKOFF,
    LAST_ATTEMPT,
    REFUSED_BACKOFF,
    WATCH_BACKOFF,
    Backoff,
)
from multikueue.core.machinery.watch import (
    Established,
    Failed,
    Listed,
    Listing,
    Probed,
    Probing,
    WatchEnded,
    WatchState,
)
from tests.examples import examples

BACKOFFS = st.builds(
    Backoff,
    base=st.floats(0.001, 10),
    cap=st.floats(10, 1000),
    factor=st.floats(1, 4),
    jitter=st.floats(0, 1),
)
FRACTIONS = st.floats(0, 1, exclude_max=True)


def test_the_wait_doubles_up_to_the_cap() -> None:
    """Kueue's table for workers: 5 … 320 s."""
    backoff = Backoff(base=5, cap=320)
    assert [backoff.delay(failures) for failures in range(9)] == [0, 5, 10, 20, 40, 80, 160, 320, 320]


def test_jitter_only_ever_adds() -> None:
    """Many that failed together come back apart, and none sooner than it should."""
    backoff = Backoff(base=10, cap=10, jitter=0.5)
    assert (backoff.delay(1), backoff.delay(1, 0.5)) == (10, 12.5)


@pytest.mark.parametrize("backoff", [ITEM_BACKOFF, WATCH_BACKOFF, REFUSED_BACKOFF])
def test_the_daemons_own_never_wait_zero_and_never_overflow(backoff: Backoff) -> None:
    """After years of failures it is still the cap."""
    assert backoff.delay(1) == backoff.base > 0
    assert backoff.delay(10**9) == backoff.cap


@pytest.mark.parametrize(
    ("backoff", "waits", "longest", "spread"),
    [
        (ITEM_BACKOFF, [0.005, 0.01, 0.02], 60, 12),
        (WATCH_BACKOFF, [0.2, 0.4, 0.8], 30, 15),
        (CONNECTION_BACKOFF, [5, 10, 20, 40, 60], 60, 12),
        (REFUSED_BACKOFF, [0.5, 1, 2], 300, 60),
    ],
)
def test_how_long_the_daemon_waits(backoff: Backoff, waits: list[float], longest: float, spread: float) -> None:
    """In seconds: the first waits, which are short, the longest, and by how much it is spread."""
    assert [backoff.delay(failures) for failures in range(1, len(waits) + 1)] == waits
    assert (backoff.delay(1000), backoff.delay(1000, 1.0)) == (longest, longest + spread)


def test_a_watch_has_to_last_a_while_to_count_as_one_that_works() -> None:
    assert (WATCH_BACKOFF.reset_after, CONNECTION_BACKOFF.reset_after) == (2, 5)


@given(BACKOFFS, st.integers(1, 10_000), FRACTIONS)
def test_more_failures_never_mean_a_shorter_wait(backoff: Backoff, failures: int, fraction: float) -> None:
    """For the same luck."""
    first, second = backoff.delay(failures, fraction), backoff.delay(failures + 1, fraction)
    assert 0 < first <= second <= backoff.cap * (1 + backoff.jitter)


@pytest.mark.parametrize(
    ("left", "waited"),
    [
        (1000.0, 60.0),
        (120.0, 60.0),
        (70.0, 35.0),
        (20.0, 10.0),
        (18.0, 8.0),
        (11.5, 1.5),
        (10.5, 60.0),  # that was it
        (10.0, 60.0),
        (-300.0, 60.0),
    ],
)
def test_no_wait_leads_past_the_last_attempt_before_it_is_given_up(left: float, waited: float) -> None:
    assert CONNECTION_BACKOFF.delay(9, patience=left) == waited


@given(
    st.sampled_from([CONNECTION_BACKOFF, WATCH_BACKOFF, REFUSED_BACKOFF]),
    FRACTIONS,
    st.floats(40, 3000),
    st.floats(2 * LAST_ATTEMPT + 2, 40),
)
def test_a_server_that_returns_is_asked_while_half_of_what_is_left_is_left(
    backoff: Backoff, fraction: float, patience: float, returns: float
) -> None:
    """A long list takes its time. A few attempts more than the back-off alone would make: each halves what is left."""
    left, attempts = patience, list[float]()
    while left > 0:
        left -= backoff.delay(len(attempts) + 1, fraction, patience=left)
        attempts.append(round(left, 6))
    assert max(at for at in attempts if at <= returns) >= returns / 2
    assert any(LAST_ATTEMPT <= at <= LAST_ATTEMPT + 1 for at in attempts)
    alone = next(n for n in range(10_000) if sum(backoff.delay(i + 1, fraction) for i in range(n)) >= patience)
    assert len([at for at in attempts if at > 0]) <= alone + 7


class Reconnecting(RuleBasedStateMachine):
    """A worker whose connections fail, die young or last, and how long is waited before each next one.

    The waits are held against a doubling by hand; what counts as a failure is `core.machinery.watch`'s to say.
    """

    def __init__(self) -> None:
        super().__init__()
        self.backoff = CONNECTION_BACKOFF
        self.state = WatchState().step(Listed("1"))
        self.expected = self.backoff.base
        """What the next failure costs, before jitter."""
        self.now = 0.0
        self.asked: list[float] = []
        """When requests were made since the last connection that lasted."""

    @initialize(backoff=st.sampled_from([CONNECTION_BACKOFF, WATCH_BACKOFF]))
    def begins(self, backoff: Backoff) -> None:
        self.backoff, self.expected = backoff, backoff.base

    def wait(self, fraction: float) -> None:
        """One more failure: it costs twice as much as the last one, up to the cap, and up to the jitter more."""
        waited = self.backoff.delay(self.state.failures, fraction)
        assert self.expected <= waited <= self.expected * (1 + self.backoff.jitter)
        self.expected = min(self.expected * 2, self.backoff.cap)
        self.now += waited

    def connected(self) -> WatchState:
        """The state in which a watch is open: behind a failure a reflector probes the server, or lists."""
        if isinstance(self.state.phase, Listing):
            return self.state.step(Listed("1"))
        return self.state.step(Probed("1")) if isinstance(self.state.phase, Probing) else self.state

    @rule(fraction=FRACTIONS)
    def fails(self, fraction: float) -> None:
        """Nobody answers."""
        self.asked.append(self.now)
        self.state = self.state.step(Failed())
        self.wait(fraction)

    @rule(part=st.floats(0, 1, exclude_max=True), fraction=FRACTIONS)
    def dies_young(self, part: float, fraction: float) -> None:
        """It is accepted, and ends before it counts."""
        self.asked.append(self.now)
        self.now += part * self.backoff.reset_after
        self.state = self.connected().step(WatchEnded())
        self.wait(fraction)

    @rule(seconds=st.floats(0, 3600))
    def lasts(self, seconds: float) -> None:
        """All failures are forgotten, and the next connection is opened at once."""
        self.asked = []
        self.now += self.backoff.reset_after + seconds
        self.state = self.connected().step(Established()).step(WatchEnded())
        assert self.backoff.delay(self.state.failures) == 0
        self.expected = self.backoff.base

    @invariant()
    def a_worker_that_is_down_is_hardly_asked(self) -> None:
        """After the first minute at most once per cap: 1,070 times a second was seen (item 36)."""
        late = [at for at in self.asked if at > self.asked[0] + 4 * self.backoff.cap]
        assert all(second - first > self.backoff.cap - 0.001 for first, second in itertools.pairwise(late))


Reconnecting.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20, deadline=None)
TestReconnecting = Reconnecting.TestCase
