"""List and watch as a state machine."""

from __future__ import annotations

import functools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.machinery.watch import (
    Broke,
    Confirmed,
    Ended,
    Failed,
    FellSilent,
    Following,
    HistoryLost,
    Listed,
    NeedsList,
    Outcome,
    Progressed,
    Resuming,
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
    followed = (Listed("5"), Steadied(), Progressed("7"))
    assert after(*followed, Ended()).position == Following("7")
    for end in (Broke(), Failed()):
        assert after(*followed, end).position == Resuming("7")
        assert after(*followed, end, Confirmed("7")).position == Following("7")
    assert after(*followed, HistoryLost()).position == NeedsList()


def test_a_server_that_is_behind_what_is_known_is_read_anew() -> None:
    """Restored from a backup: it would accept a watch from there, and tell nothing until it has come that far."""
    broken = after(Listed("500"), Steadied(), Broke())
    assert broken.step(Confirmed("499")) == WatchState(NeedsList(), losses=1)
    assert broken.step(Confirmed("500")).position == broken.step(Confirmed("1000")).position == Following("500")
    assert broken.step(Confirmed("499")).step(Listed("499")).position == Following("499")


def test_what_is_followed_never_goes_back() -> None:
    """A late bookmark would make the next watch tell everything since then again, and a write look unseen."""
    assert after(Listed("9"), Progressed("10"), Progressed("8")).position == Following("10")
    assert after(Listed("9"), Progressed("soon")).position == Following("9")


def test_a_bookmark_without_a_version_changes_nothing() -> None:
    """A resume from nowhere would replay everything."""
    assert after(Listed("5"), Progressed("")).position == Following("5")


def test_the_end_of_a_steady_stream_is_no_failure() -> None:
    """Servers end every stream after half an hour or so."""
    assert after(Listed("5"), Steadied(), Ended()) == WatchState(Following("5"))


def test_a_reset_of_a_steady_stream_is_no_failure_but_casts_doubt() -> None:
    """A load balancer may have put another server in its place."""
    assert after(Listed("5"), Steadied(), Broke()) == WatchState(Resuming("5"))


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


def test_silence_in_a_steady_stream_is_a_failure_only_if_the_server_does_not_answer_either() -> None:
    """API servers send no bookmarks for kinds of which nothing ever changed."""
    quiet = after(Listed("5"), Steadied(), FellSilent())
    assert quiet == WatchState(Resuming("5", silent=True))
    assert quiet.step(Confirmed("5")).failures == 0
    assert quiet.step(Failed()).failures == 1


def test_after_silence_everything_is_read_again() -> None:
    """A proxy may hold up the events of every stream, and let all other answers pass."""
    quiet = after(Listed("5"), Steadied(), FellSilent())
    assert quiet.step(Confirmed("7")).position == NeedsList()
    assert quiet.step(Failed()).step(Confirmed("7")).position == NeedsList()


def test_a_stream_that_was_never_accepted_has_not_fallen_silent() -> None:
    assert after(Listed("5"), FellSilent()).failures == 1


ENDS: list[Outcome] = [Ended(), Broke(), FellSilent(), Failed(), HistoryLost()]


class Watching(RuleBasedStateMachine):
    """A driver that does what the states ask for, and a server that does as it likes: also go back in its history."""

    def __init__(self) -> None:
        super().__init__()
        self.state = WatchState()
        self.present = 10
        """Where the server's history is."""
        self.known: int | None = None
        """The last version the cache was told."""
        self.streaming = False
        self.unpaused = 0
        """Requests since the last wait or steady stream."""

    def _answered(self, outcome: Outcome) -> None:
        before = self.state.failures
        self.state = self.state.step(outcome)
        self.unpaused = 0 if self.state.failures > before else self.unpaused + 1

    def _asks(self, position: type[object]) -> bool:
        return isinstance(self.state.position, position) and not self.streaming

    @precondition(lambda self: self._asks(NeedsList))
    @rule()
    def lists(self) -> None:
        """A list is only answered when one is asked for."""
        self._answered(Listed(str(self.present)))
        self.known = self.present

    @precondition(lambda self: self._asks(Resuming))
    @rule()
    def confirms(self) -> None:
        """It says where it is. From then on it is followed, or read anew."""
        silent = isinstance(self.state.position, Resuming) and self.state.position.silent
        self._answered(Confirmed(str(self.present)))
        assert self.known is not None
        assert isinstance(self.state.position, NeedsList) == (silent or self.present < self.known)

    @precondition(lambda self: self._asks(Following))
    @rule()
    def opens(self) -> None:
        """The stream is accepted."""
        self.streaming = True

    @precondition(lambda self: not self.streaming)
    @rule()
    def refuses(self) -> None:
        """No answer, or a no."""
        self._answered(Failed())

    @precondition(lambda self: self.streaming)
    @rule(grows=st.integers(0, 3))
    def tells(self, grows: int) -> None:
        """An event or a bookmark; the same bookmark twice, too."""
        self.present += grows
        self.state = self.state.step(Progressed(str(self.present)))
        self.known = max(self.known or 0, self.present)

    @precondition(lambda self: self.streaming)
    @rule(behind=st.integers(0, 5))
    def repeats(self, behind: int) -> None:
        """A version that is known already; a proxy's cache may do that."""
        assert self.known is not None
        self.state = self.state.step(Progressed(str(max(1, self.known - behind))))

    @precondition(lambda self: self.streaming)
    @rule()
    def lasts(self) -> None:
        """Two seconds pass."""
        self.state = self.state.step(Steadied())
        self.unpaused = 0
        assert (self.state.failures, self.state.losses) == (0, 0)

    @precondition(lambda self: self.streaming)
    @rule(end=st.sampled_from(ENDS))
    def ends(self, end: Outcome) -> None:
        """The stream ends in one way or another."""
        self._ended(end)

    @precondition(lambda self: not self.streaming)
    @rule(ends=st.lists(st.sampled_from(ENDS), min_size=3, max_size=5))
    def dies_young(self, ends: list[Outcome]) -> None:
        """So do the next streams, at once, and everything else is answered at once."""
        for end in ends:
            if self._asks(Resuming):
                self.confirms()
            if self._asks(NeedsList):
                self.lists()
            self.never_a_tight_loop()
            self._ended(end)
            self.never_a_tight_loop()

    def _ended(self, end: Outcome) -> None:
        orderly = self.state.steady and end == Ended()
        self._answered(end)
        self.streaming = False
        assert isinstance(self.state.position, NeedsList) == (end == HistoryLost())
        assert isinstance(self.state.position, Following) == orderly

    @precondition(lambda self: self.streaming)
    @rule(lost=st.integers(1, 9))
    def is_restored(self, lost: int) -> None:
        """From a backup; connections break. What was known beyond it never happened there."""
        self.present = max(1, self.present - lost)
        self._ended(Broke())

    @rule(grows=st.integers(1, 9))
    def works(self, grows: int) -> None:
        """Others write meanwhile."""
        self.present += grows

    @invariant()
    def never_a_tight_loop(self) -> None:
        """At most four requests without a wait or a steady stream between them."""
        assert self.unpaused <= 4

    @invariant()
    def never_behind_and_never_back(self) -> None:
        """What it follows from, or resumes from, is the newest it was told."""
        if isinstance(self.state.position, Following | Resuming):
            assert self.state.position.resource_version == str(self.known)


Watching.TestCase.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
TestWatching = Watching.TestCase


def test_a_410_after_the_relist_that_silence_asked_for_is_a_failure() -> None:
    """The relist was the one that a steady stream pays for. A second one at once would be the fifth request."""
    machine = Watching()
    machine.lists()
    machine.opens()
    machine.lasts()
    machine.ends(FellSilent())
    machine.dies_young([HistoryLost(), Ended(), Ended()])
