"""List and watch as a state machine."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.machinery.watch import (
    Disconnected,
    Established,
    EventReceived,
    EventUnreadable,
    Failed,
    Listed,
    Listing,
    Outcome,
    Probed,
    ProbeRefused,
    Probing,
    TimedOut,
    VersionExpired,
    WatchEnded,
    Watching,
    WatchState,
    outcome_of,
)
from multikueue.errors import ApiError, DeadlineExceeded, Expired, NotSent, Unreadable
from tests.examples import examples


def after(*outcomes: Outcome) -> WatchState:
    """The state after these, from the start."""
    return functools.reduce(lambda state, outcome: state.step(outcome), outcomes, WatchState())


def test_it_begins_with_a_list() -> None:
    assert WatchState().phase == Listing()


def test_it_resumes_from_the_last_version_whatever_ended_the_watch() -> None:
    """Only a 410 causes a relist."""
    watched = (Listed("5"), Established(), EventReceived("7"))
    assert after(*watched, WatchEnded()).phase == Watching("7")
    for end in (Disconnected(), Failed()):
        assert after(*watched, end).phase == Probing("7")
        assert after(*watched, end, Probed("7")).phase == Watching("7")
    assert after(*watched, VersionExpired()).phase == Listing()


def test_a_server_that_went_backwards_is_listed_again() -> None:
    """Restored from a backup: it would accept a watch from there, and send nothing until it has caught up."""
    broken = after(Listed("500"), Established(), Disconnected())
    assert broken.step(Probed("499")) == WatchState(Listing(), relisted=True)
    assert broken.step(Probed("500")).phase == broken.step(Probed("1000")).phase == Watching("500")
    assert broken.step(Probed("499")).step(Listed("499")).phase == Watching("499")


def test_the_version_never_decreases() -> None:
    """A late bookmark would make the next watch repeat everything since then, and a write look unseen."""
    assert after(Listed("9"), EventReceived("10"), EventReceived("8")).phase == Watching("10")
    assert after(Listed("9"), EventReceived("soon")).phase == Watching("9")


def test_a_bookmark_without_a_version_changes_nothing() -> None:
    """A resume from nowhere would replay everything."""
    assert after(Listed("5"), EventReceived("")).phase == Watching("5")


def test_the_end_of_an_established_watch_is_no_failure() -> None:
    """API servers end every watch after 30 to 60 minutes."""
    assert after(Listed("5"), Established(), WatchEnded()) == WatchState(Watching("5"))


def test_after_a_reset_of_an_established_watch_the_server_is_probed() -> None:
    """It is no failure, but a load balancer may have put another server in its place."""
    assert after(Listed("5"), Established(), Disconnected()) == WatchState(Probing("5"))


def test_watches_that_end_early_are_failures() -> None:
    """A proxy that accepts and drops watches causes no tight loop."""
    assert after(Listed("5"), WatchEnded(), WatchEnded(), WatchEnded()).failures == 3


def test_a_list_does_not_reset_the_failures() -> None:
    """A server may answer lists and refuse watches."""
    assert after(Failed(), Failed(), Listed("5")).failures == 2
    assert after(Failed(), Failed(), Listed("5"), Established()).failures == 0


def test_after_a_first_410_it_lists_at_once_and_a_second_is_a_failure() -> None:
    """History expires; that of a fresh list does not."""
    once = after(Listed("5"), Established(), VersionExpired())
    assert (once.phase, once.failures) == (Listing(), 0)
    twice = after(Listed("5"), Established(), VersionExpired(), Listed("9"), VersionExpired())
    assert (twice.phase, twice.failures) == (Listing(), 1)
    assert twice.step(Listed("10")).step(VersionExpired()).failures == 2


def test_a_silent_watch_is_a_failure_only_if_the_probe_fails_too() -> None:
    """API servers send no bookmarks for a kind that has not changed since they started."""
    quiet = after(Listed("5"), Established(), TimedOut())
    assert quiet == WatchState(Probing("5", silent=True))
    assert quiet.step(Probed("5")).failures == 0
    assert quiet.step(Failed()).failures == 1


def test_after_silence_it_lists_again() -> None:
    """A proxy may hold back the events of every watch, and let all other answers pass."""
    quiet = after(Listed("5"), Established(), TimedOut())
    assert quiet.step(Probed("7")).phase == Listing()
    assert quiet.step(Failed()).phase == Listing()


def test_a_server_that_left_a_probe_unanswered_is_listed_once_it_answers() -> None:
    """What happened while it was away may come late by a watch, which counts as established after two seconds."""
    away = after(Listed("5"), Established(), Disconnected(), Failed())
    assert away == WatchState(Listing(), failures=1)
    assert away.step(Failed()).step(Listed("9")) == WatchState(Watching("9"), failures=2)


def test_a_server_that_answers_a_probe_with_a_refusal_is_probed_again() -> None:
    """One that has too much to do was asked for whole lists instead."""
    busy = after(Listed("5"), Established(), Disconnected(), ProbeRefused())
    assert busy == WatchState(Probing("5"), failures=1)
    assert busy.step(Probed("5")).phase == Watching("5")


def test_a_watch_that_was_never_established_and_times_out_is_a_failure() -> None:
    assert after(Listed("5"), TimedOut()).failures == 1


def test_an_event_that_cannot_be_read_leads_to_a_list() -> None:
    """A watch from the same version would send it again. If the next watch has one, too, it is a failure."""
    once = after(Listed("5"), Established(), EventReceived("7"), EventUnreadable())
    assert (once.phase, once.failures) == (Listing(), 0)
    assert once.step(Listed("9")).phase == Watching("9")
    assert after(Listed("5"), Established(), EventUnreadable(), Listed("9"), EventUnreadable()).failures == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, WatchEnded()),
        (Unreadable("too long"), EventUnreadable()),
        (Expired("too old"), VersionExpired()),
        (DeadlineExceeded("silent"), TimedOut()),
        (NotSent("refused"), Disconnected()),
    ],
)
def test_how_a_watch_ended_follows_from_the_error(error: ApiError | None, outcome: Outcome) -> None:
    assert outcome_of(error) == outcome


ENDS: list[Outcome] = [WatchEnded(), Disconnected(), TimedOut(), Failed(), VersionExpired(), EventUnreadable()]
RELISTED = (VersionExpired(), EventUnreadable())


class WatchMachine(RuleBasedStateMachine):
    """A driver that sends the requests the phases ask for, and a server that does anything: also go backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.state = WatchState()
        self.present = 10
        """The server's resourceVersion."""
        self.known: int | None = None
        """The highest resourceVersion the driver has read."""
        self.streaming = False
        self.unpaused = 0
        """Requests since the last wait or established watch."""

    def _answered(self, outcome: Outcome) -> None:
        before = self.state.failures
        self.state = self.state.step(outcome)
        self.unpaused = 0 if self.state.failures > before else self.unpaused + 1

    def _asks(self, position: type[object]) -> bool:
        return isinstance(self.state.phase, position) and not self.streaming

    @precondition(lambda self: self._asks(Listing))
    @rule()
    def lists(self) -> None:
        """The server answers a list."""
        self._answered(Listed(str(self.present)))
        self.known = self.present

    @precondition(lambda self: self._asks(Probing))
    @rule()
    def probes(self) -> None:
        """The server answers a probe. A watch or a relist follows."""
        silent = isinstance(self.state.phase, Probing) and self.state.phase.silent
        self._answered(Probed(str(self.present)))
        assert self.known is not None
        assert isinstance(self.state.phase, Listing) == (silent or self.present < self.known)

    @precondition(lambda self: self._asks(Watching))
    @rule()
    def opens(self) -> None:
        """The server accepts a watch."""
        self.streaming = True

    @precondition(lambda self: not self.streaming)
    @rule()
    def refuses(self) -> None:
        """No answer, or a refusal."""
        self._answered(Failed())

    @precondition(lambda self: self.streaming)
    @rule(grows=st.integers(0, 3))
    def sends(self, grows: int) -> None:
        """An event or a bookmark, which may repeat a version."""
        self.present += grows
        self.state = self.state.step(EventReceived(str(self.present)))
        self.known = max(self.known or 0, self.present)

    @precondition(lambda self: self.streaming)
    @rule(behind=st.integers(0, 5))
    def repeats(self, behind: int) -> None:
        """An old version, as from a proxy's cache."""
        assert self.known is not None
        self.state = self.state.step(EventReceived(str(max(1, self.known - behind))))

    @precondition(lambda self: self.streaming)
    @rule()
    def lasts(self) -> None:
        """The watch has been open for the reset time."""
        self.state = self.state.step(Established())
        self.unpaused = 0
        assert (self.state.failures, self.state.relisted) == (0, False)

    @precondition(lambda self: self.streaming)
    @rule(end=st.sampled_from(ENDS))
    def ends(self, end: Outcome) -> None:
        """The watch ends in any way."""
        self._ended(end)

    @precondition(lambda self: not self.streaming)
    @rule(ends=st.lists(st.sampled_from(ENDS), min_size=3, max_size=5))
    def ends_early(self, ends: list[Outcome]) -> None:
        """The next watches end at once, and the server answers everything else."""
        for end in ends:
            if self._asks(Probing):
                self.probes()
            if self._asks(Listing):
                self.lists()
            self.never_a_tight_loop()
            self._ended(end)
            self.never_a_tight_loop()

    def _ended(self, end: Outcome) -> None:
        orderly = isinstance(self.state.phase, Watching) and self.state.phase.established and end == WatchEnded()
        self._answered(end)
        self.streaming = False
        assert isinstance(self.state.phase, Listing) == (end in RELISTED)
        assert isinstance(self.state.phase, Watching) == orderly

    @precondition(lambda self: self.streaming)
    @rule(lost=st.integers(1, 9))
    def is_restored(self, lost: int) -> None:
        """From a backup. Connections break, and the server no longer has the newest versions."""
        self.present = max(1, self.present - lost)
        self._ended(Disconnected())

    @rule(grows=st.integers(1, 9))
    def grows(self, grows: int) -> None:
        """Others write."""
        self.present += grows

    @invariant()
    def never_a_tight_loop(self) -> None:
        """At most four requests without a wait or an established watch between them."""
        assert self.unpaused <= 4

    @invariant()
    def always_the_highest_version(self) -> None:
        """It watches and resumes from the highest version it has read."""
        if isinstance(self.state.phase, Watching | Probing):
            assert self.state.phase.resource_version == str(self.known)


WatchMachine.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=20, deadline=None)
TestWatching = WatchMachine.TestCase


def test_a_410_after_the_relist_of_a_silent_watch_is_a_failure() -> None:
    """Probe, list, watch, list, watch: five requests without a wait. The second list now waits."""
    machine = WatchMachine()
    machine.lists()
    machine.opens()
    machine.lasts()
    machine.ends(TimedOut())
    machine.ends_early([VersionExpired(), WatchEnded(), WatchEnded()])


def test_however_requests_end_there_are_at_most_four_without_a_wait() -> None:
    """Every state that can be reached, with a server that has one of two versions, instead of examples of them."""
    start = Run()
    reached, left = {start}, [start]
    while left:
        run = left.pop()
        assert run.unpaused <= 4, run
        new = set(run.followed_by()) - reached
        reached |= new
        left += new
    assert len(reached) > 100


@attrs.frozen
class Run:
    """A state, what the server has, and the requests since the last wait or established watch."""

    state: WatchState = attrs.field(factory=WatchState)
    present: str = "10"
    streaming: bool = False
    unpaused: int = 0

    def followed_by(self) -> Iterator[Run]:
        """The next ones: the request ends in any way, or the server is restored or written to."""
        yield attrs.evolve(self, present="5" if self.present == "10" else "10")
        if self.streaming:
            yield attrs.evolve(self, state=self.state.step(Established()), unpaused=0)
            yield attrs.evolve(self, state=self.state.step(EventReceived(self.present)))
            yield from map(self._ended, ENDS)
            return
        yield self._ended(Failed())
        yield self._ended(VersionExpired())
        match self.state.phase:
            case Listing():
                yield self._ended(Listed(self.present))
            case Probing():
                yield self._ended(Probed(self.present))
            case Watching():
                yield attrs.evolve(self, streaming=True)

    def _ended(self, outcome: Outcome) -> Run:
        state = self.state.step(outcome)
        waits = state.failures > self.state.failures
        counted = attrs.evolve(state, failures=min(state.failures, 1))  # how many there are changes nothing
        return Run(counted, self.present, unpaused=0 if waits else self.unpaused + 1)
