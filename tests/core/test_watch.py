"""List and watch as a state machine."""

from __future__ import annotations

import functools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.watch import (
    Ended,
    Failed,
    Following,
    HistoryLost,
    Listed,
    NeedsList,
    Outcome,
    Progressed,
    Steadied,
    WatchState,
)


def after(*outcomes: Outcome) -> WatchState:
    """The state after these, from the start."""
    return functools.reduce(lambda state, outcome: state.step(outcome), outcomes, WatchState())


def test_it_begins_with_a_list() -> None:
    assert WatchState().position == NeedsList()


def test_it_goes_on_where_it_was_whatever_ended_the_stream() -> None:
    """Only a 410 costs a list."""
    followed = (Listed("5"), Progressed("7"))
    for end in (Ended(), Failed()):
        assert after(*followed, end).position == Following("7")
    assert after(*followed, HistoryLost()).position == NeedsList()


def test_a_bookmark_without_a_version_changes_nothing() -> None:
    """A resume from nowhere would replay everything."""
    assert after(Listed("5"), Progressed("")).position == Following("5")


def test_the_end_of_a_steady_stream_is_no_failure() -> None:
    """Servers end every stream after half an hour or so."""
    assert after(Listed("5"), Steadied(), Ended()) == WatchState(Following("5"))


def test_streams_that_die_young_count_up() -> None:
    """A proxy that accepts and drops is not asked in a tight loop."""
    assert after(Listed("5"), Ended(), Ended(), Ended()).failures == 3


def test_a_list_forgives_nothing() -> None:
    """A server may answer lists and refuse to be watched."""
    assert after(Failed(), Failed(), Listed("5")).failures == 2
    assert after(Failed(), Failed(), Listed("5"), Steadied()).failures == 0


def test_a_first_410_is_answered_by_a_list_at_once_and_a_second_is_a_failure() -> None:
    """Forgetting is normal; forgetting what was just listed is not."""
    once = after(Listed("5"), Steadied(), HistoryLost())
    assert (once.position, once.failures) == (NeedsList(), 0)
    twice = after(Listed("5"), Steadied(), HistoryLost(), Listed("9"), HistoryLost())
    assert (twice.position, twice.failures) == (NeedsList(), 1)
    assert twice.step(Listed("10")).step(HistoryLost()).failures == 2


def test_silence_in_a_steady_stream_is_a_first_failure() -> None:
    assert after(Failed(), Listed("5"), Steadied(), Failed()).failures == 1


class Watching(RuleBasedStateMachine):
    """A driver that does what the states ask for, and a server that does as it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = WatchState()
        self.version = 0
        self.known = 0
        self.following = False
        self.unpaused = 0
        """Requests since the last wait or steady stream."""

    def _request_ended(self, outcome: Outcome) -> None:
        before = self.state.failures
        self.state = self.state.step(outcome)
        waited = self.state.failures > before
        self.unpaused = 0 if waited else self.unpaused + 1
        self.following = isinstance(outcome, Listed)

    @precondition(lambda self: not self.following)
    @rule(grows=st.integers(0, 3))
    def lists(self, grows: int) -> None:
        """A list is only answered when one is asked for."""
        self.version += grows
        if self.state.position == NeedsList():
            self._request_ended(Listed(str(self.version)))
            self.known = self.version
        self.following = True

    @precondition(lambda self: not self.following)
    @rule()
    def refuses(self) -> None:
        """No list, or no stream."""
        self._request_ended(Failed())

    @precondition(lambda self: self.following)
    @rule(grows=st.integers(1, 3))
    def tells(self, grows: int) -> None:
        """An event or a bookmark."""
        self.version += grows
        self.state = self.state.step(Progressed(str(self.version)))
        self.known = self.version

    @precondition(lambda self: self.following)
    @rule()
    def lasts(self) -> None:
        """Two seconds pass."""
        self.state = self.state.step(Steadied())
        self.unpaused = 0
        assert (self.state.failures, self.state.losses) == (0, 0)

    @precondition(lambda self: self.following)
    @rule(end=st.sampled_from([Ended(), Failed(), HistoryLost()]))
    def ends(self, end: Outcome) -> None:
        """The stream ends in one way or another."""
        self._request_ended(end)
        assert isinstance(self.state.position, NeedsList) == (end == HistoryLost())

    @invariant()
    def never_a_tight_loop(self) -> None:
        """At most three requests without a wait or a steady stream between them."""
        assert self.unpaused <= 3

    @invariant()
    def never_behind(self) -> None:
        """What it follows from is the last thing it was told."""
        if isinstance(self.state.position, Following):
            assert self.state.position.resource_version == str(self.known)


TestWatching = Watching.TestCase
