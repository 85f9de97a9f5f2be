"""The connections to a cluster as a state machine: which is used, which is tried, and what is known meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from multikueue.core.machinery.cluster_state import (
    CRASHED,
    REPAIR,
    TRIAL_FAILURES,
    AdoptKnowledge,
    Assigned,
    BackOff,
    BackOffEnded,
    ClientFailed,
    ClusterState,
    Command,
    ConnectionEnded,
    Crashed,
    Event,
    Forget,
    Link,
    Notify,
    Open,
    Phase,
    Refused,
    Reported,
    Retire,
    Serving,
    Stop,
    Unconfigured,
)
from multikueue.core.machinery.connection import Connection, Failing, Health, OpeningWatch, OpenWatch, Watch
from multikueue.errors import Cause
from tests.core.door import NOW
from tests.examples import examples

LATER = NOW + timedelta(minutes=10)


@attrs.frozen
class Config:
    """A server and a token for it."""

    server: str
    token: str


OLD, NEW, ELSEWHERE = Config("a", "old"), Config("a", "new"), Config("b", "old")
READ = Health(OpenWatch(), complete=True)
PARTLY_READ = Health(OpenWatch(), complete=False)
NOT_READ = Health(OpeningWatch(), complete=False)


def failing(times: int, *, complete: bool = False) -> Health:
    return Health(Failing(times, "refused", 5.0), complete)


def after(*events: Event[Config]) -> ClusterState[Config]:
    """The state after these, from the start."""
    state = ClusterState[Config]()
    for event in events:
        state, _ = state.step(event, NOW)
    return state


CONNECTED = after(Assigned(OLD), Reported(1, READ))
TRYING = after(Assigned(OLD), Reported(1, READ), Assigned(NEW))
LOST = after(Assigned(OLD), Reported(1, READ), Reported(1, failing(1, complete=True)))
TRYING_WHILE_LOST, _ = LOST.step(Assigned(NEW), NOW)
AFTER_CRASH, _ = CONNECTED.step(Crashed(1), NOW)
FIRST, SECOND = Link(1, OLD), Link(2, NEW)

Row: TypeAlias = tuple[ClusterState[Config], Event[Config], Phase[Config], Sequence[Command[Config]]]
TABLE: dict[str, Row] = {
    "the first configuration is connected to": (ClusterState(), Assigned(OLD), Serving(FIRST), [Open(FIRST)]),
    "the same one again changes nothing": (CONNECTED, Assigned(OLD), Serving(FIRST), []),
    "one for the same server is tried beside": (CONNECTED, Assigned(NEW), Serving(FIRST, SECOND), [Open(SECOND)]),
    "so is one while the cluster is lost": (LOST, Assigned(NEW), Serving(FIRST, SECOND), [Open(SECOND)]),
    "one that nothing was read with is replaced at once": (
        after(Assigned(OLD)),
        Assigned(NEW),
        Serving(SECOND),
        [Stop(1), Open(SECOND)],
    ),
    "going back to what works ends the trial": (TRYING, Assigned(OLD), Serving(FIRST), [Stop(2)]),
    "a third one takes the place of the second": (
        TRYING,
        Assigned(Config("a", "third")),
        Serving(FIRST, Link(3, Config("a", "third"))),
        [Stop(2), Open(Link(3, Config("a", "third")))],
    ),
    "another server takes effect at once": (
        TRYING,
        Assigned(ELSEWHERE),
        Serving(Link(3, ELSEWHERE)),
        [Stop(1), Stop(2), Open(Link(3, ELSEWHERE)), Forget(), Notify()],
    ),
    "what was read first is what is known": (
        after(Assigned(OLD)),
        Reported(1, NOT_READ),
        Serving(FIRST),
        [AdoptKnowledge(1), Notify()],
    ),
    "a trial is waited for": (TRYING, Reported(2, PARTLY_READ), Serving(FIRST, SECOND), []),
    "a trial that is complete takes over": (
        TRYING,
        Reported(2, READ),
        Serving(SECOND),
        [Retire(1), AdoptKnowledge(2), Notify()],
    ),
    "so does one that was read and cannot be followed": (
        TRYING,
        Reported(2, failing(1, complete=True)),
        Serving(SECOND),
        [Retire(1), AdoptKnowledge(2), Notify()],
    ),
    "a trial that fails once may be unlucky": (
        TRYING,
        Reported(2, failing(TRIAL_FAILURES - 1)),
        Serving(FIRST, SECOND),
        [],
    ),
    "a trial that goes on failing must be seen to": (
        TRYING,
        Reported(2, failing(TRIAL_FAILURES)),
        Serving(SECOND),
        [Retire(1), Notify()],
    ),
    "while nothing works a failure is enough": (
        TRYING_WHILE_LOST,
        Reported(2, failing(1)),
        Serving(SECOND),
        [Retire(1), Notify()],
    ),
    "the connection in use goes on deciding": (TRYING, Reported(1, READ), Serving(FIRST, SECOND), [Notify()]),
    "last words of one that was replaced": (
        after(Assigned(OLD), Assigned(NEW)),
        Reported(1, READ),
        Serving(SECOND),
        [],
    ),
    "a refused configuration closes everything": (
        TRYING,
        Refused("no key", "BadKubeConfig"),
        Unconfigured(),
        [Stop(1), Stop(2), Notify()],
    ),
    "the same refusal again changes nothing": (
        after(Refused("no key", "BadKubeConfig")),
        Refused("no key", "BadKubeConfig"),
        Unconfigured(),
        [],
    ),
    "a client that cannot be made closes everything": (
        TRYING,
        ClientFailed(2, "no PEM"),
        ConnectionEnded(SECOND),
        [Stop(1), Stop(2), Notify()],
    ),
    "a crash is followed by a back-off": (
        CONNECTED,
        Crashed(1),
        ConnectionEnded(FIRST),
        [BackOff(1, REPAIR), Stop(1), Notify()],
    ),
    "a crash of the connection in use, too, while another is tried": (
        TRYING,
        Crashed(1),
        ConnectionEnded(SECOND),
        [BackOff(2, REPAIR), Stop(1), Stop(2), Notify()],
    ),
    "a crash of one that was replaced": (after(Assigned(OLD), Assigned(NEW)), Crashed(1), Serving(SECOND), []),
    "after the back-off it is connected to again": (
        AFTER_CRASH,
        BackOffEnded(1),
        Serving(Link(2, OLD)),
        [Open(Link(2, OLD))],
    ),
    "a new configuration does not wait for that": (AFTER_CRASH, Assigned(NEW), Serving(SECOND), [Open(SECOND)]),
    "and is not disturbed by its end": (
        AFTER_CRASH.step(Assigned(NEW), NOW)[0],
        BackOffEnded(1),
        Serving(SECOND),
        [],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_table(case: str) -> None:
    """From a state, by an event: the connections there are then, and what is to be done."""
    state, event, phase, commands = TABLE[case]
    stepped, done = state.step(event, LATER)
    assert stepped.phase == phase
    assert done == commands


def test_it_is_connected_once_the_deciding_watch_is_open() -> None:
    """The first connection need not have read everything; whoever takes over must have."""
    assert after(Assigned(OLD)).connection.unheard
    assert after(Assigned(OLD), Reported(1, PARTLY_READ)).connection.connected
    taken_over: list[Event[Config]] = [Assigned(OLD), Reported(1, failing(1)), Assigned(NEW), Reported(2, failing(1))]
    assert not after(*taken_over, Reported(2, PARTLY_READ)).connection.connected
    assert after(*taken_over, Reported(2, READ)).connection.connected


def test_a_failed_takeover_keeps_what_is_known_and_nothing_can_be_sent() -> None:
    state, _ = TRYING.step(Reported(2, failing(TRIAL_FAILURES)), LATER)
    assert (state.known, state.usable) == (FIRST, False)
    assert state.connection == Connection(
        lost_since=LATER, failures=3, next_attempt=LATER + timedelta(seconds=5), error="refused"
    )


def test_the_same_failure_told_again_does_not_put_off_the_next_attempt() -> None:
    """Each change of any watch is a report, and that of the deciding one may be minutes old."""
    again, _ = LOST.step(Reported(1, failing(1, complete=True)), LATER)
    more, _ = LOST.step(Reported(1, failing(2, complete=True)), LATER)
    assert again.connection.next_attempt == NOW + timedelta(seconds=5)
    assert more.connection.next_attempt == LATER + timedelta(seconds=5)
    assert more.connection.lost_since == NOW


def test_the_time_of_loss_that_an_earlier_process_noted_stays() -> None:
    """Also when the cluster moves to another server, until that one answers."""
    state = ClusterState[Config](Connection(lost_since=NOW))
    for event in (Assigned(OLD), Reported(1, failing(1)), Assigned(ELSEWHERE)):
        state, _ = state.step(event, LATER)
        assert state.connection.lost_since == NOW
    assert state.connection.unheard
    assert state.step(Reported(2, PARTLY_READ), LATER)[0].connection == Connection(connected=True)


@pytest.mark.parametrize(
    ("state", "number"),
    [
        (TRYING_WHILE_LOST, 2),
        (after(Assigned(OLD), Reported(1, READ), Crashed(1), BackOffEnded(1)), 2),
    ],
    ids=["through new credentials", "after a crash"],
)
def test_any_sight_of_a_worker_ends_the_loss(state: ClusterState[Config], number: int) -> None:
    """Its Workloads were read, and not everything is yet: a job there was given up in that minute."""
    seen, commands = state.step(Reported(number, PARTLY_READ), LATER)
    assert (state.connection.lost_since, seen.connection.lost_since) == (NOW, None)
    assert not seen.connection.connected
    assert commands == [Notify()]
    again = seen.step(Reported(number, failing(TRIAL_FAILURES)), LATER)[0]
    assert again.connection.lost_since == LATER


def test_the_loss_begins_with_the_last_answer_and_its_cause_is_told() -> None:
    hung = Health(Failing(1, "no answer to anything", 5.0, silent_for=20.0, cause=Cause.NO_ANSWER), complete=True)
    lost = CONNECTED.step(Reported(1, hung), LATER)[0].connection
    assert (lost.lost_since, lost.facts().cause) == (LATER - timedelta(seconds=20), Cause.NO_ANSWER)
    assert lost.succeeded().facts().cause == ""


def test_the_cause_of_a_configuration_that_is_refused_is_told() -> None:
    refused = CONNECTED.step(Refused("no key", "BadKubeConfig", Cause.KEY_MISSING), LATER)[0].connection
    assert refused.facts().cause == Cause.KEY_MISSING


def test_a_crash_is_told_as_what_it_is() -> None:
    retry_at = NOW + timedelta(seconds=REPAIR)
    assert AFTER_CRASH.connection == Connection(lost_since=NOW, failures=1, next_attempt=retry_at, error=CRASHED)
    assert AFTER_CRASH.known == FIRST


WATCHES: st.SearchStrategy[Watch] = st.one_of(
    st.just(OpeningWatch()),
    st.just(OpenWatch()),
    st.builds(Failing, st.integers(1, 4), st.just("refused"), st.just(5.0)),
)
CONFIGS = st.builds(Config, st.sampled_from("ab"), st.sampled_from("xyz"))
NUMBERS = st.integers(1, 8)


def _shows_a_worker(event: Event[Config], before: ClusterState[Config]) -> bool:
    """Whether its Workloads were read through a connection that is open."""
    numbers = [link.number for link in before.links]
    return isinstance(event, Reported) and event.number in numbers and isinstance(event.health.watch, OpenWatch)


class Connecting(RuleBasedStateMachine):
    """Whatever happens in whatever order, and a pool that does as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState[Config]()
        self.now = NOW
        self.wanted: Config | None = None
        self.open: dict[int, Config] = {}
        self.known: int | None = None
        self.servers: dict[int, str] = {}
        self.timers: list[int] = []
        self.lost_since = self.state.connection.lost_since

    def happens(self, event: Event[Config]) -> None:
        before = self.state
        self.state, commands = self.state.step(event, self.now)
        for command in commands:
            self.perform(command)
        assert Notify() not in commands[:-1], "whoever is told may send the next event at once"
        before_step = (before.connection, before.known) == (self.state.connection, self.state.known)
        assert before_step or Notify() in commands, "nobody is told of a change"
        if self.state.connection.connected or _shows_a_worker(event, before):
            self.lost_since = None
        elif self.state.connection.error and self.state.connection != before.connection:
            self.lost_since = self.lost_since or self.now

    def perform(self, command: Command[Config]) -> None:
        match command:
            case Open(Link(number, config)):
                assert number not in self.servers, "numbers are never used twice"
                self.open[number] = config
                self.servers[number] = config.server
            case Retire(number) | Stop(number):
                del self.open[number]
            case AdoptKnowledge(number):
                assert number in self.open
                self.known = number
            case Forget():
                self.known = None
            case BackOff(number, _):
                self.timers.append(number)
            case Notify():
                pass

    @rule(seconds=st.integers(0, 100))
    def passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(config=CONFIGS)
    def is_assigned(self, config: Config) -> None:
        self.wanted = config
        self.happens(Assigned(config))

    @rule(reason=st.sampled_from(["BadKubeConfig", "InsecureKubeConfig"]))
    def is_refused(self, reason: str) -> None:
        self.wanted = None
        self.happens(Refused("no", reason))

    @rule(number=NUMBERS, watch=WATCHES, complete=st.booleans())
    def reports(self, number: int, watch: Watch, complete: bool) -> None:
        """Also of connections that were closed, or never were."""
        self.happens(Reported(number, Health(watch, complete)))

    @rule(number=NUMBERS)
    def cannot_make_a_client(self, number: int) -> None:
        self.happens(ClientFailed(number, "no PEM"))

    @rule(number=NUMBERS)
    def crashes(self, number: int) -> None:
        self.happens(Crashed(number))

    @rule()
    def backs_off_no_longer(self) -> None:
        if self.timers:
            self.happens(BackOffEnded(self.timers.pop(0)))

    @invariant()
    def what_is_open_is_what_is_meant_to_be(self) -> None:
        """Nothing is left open, and the wanted configuration is in use, being tried, or has ended with an error."""
        assert self.open == {link.number: link.config for link in self.state.links}
        assert len(self.open) <= 2
        assert self.state.wanted == self.wanted
        assert self.open == {} or self.wanted in self.open.values()

    @invariant()
    def what_is_known_is_of_the_wanted_server(self) -> None:
        assert self.known == (self.state.known.number if self.state.known is not None else None)
        if self.known is not None and self.wanted is not None:
            assert self.servers[self.known] == self.wanted.server

    @invariant()
    def a_cluster_is_connected_through_what_is_known(self) -> None:
        if self.state.connection.connected:
            assert self.state.usable
        assert not self.state.usable or self.known in self.open

    @invariant()
    def the_loss_is_the_first_one(self) -> None:
        assert self.state.connection.lost_since == self.lost_since

    @invariant()
    def whoever_crashed_is_connected_to_again(self) -> None:
        """Unless its configuration is replaced, or no client can be made from it."""
        if isinstance(self.state.phase, ConnectionEnded) and self.state.connection.error == CRASHED:
            assert self.state.phase.link.number in self.timers


Connecting.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=30, deadline=None)
TestConnecting = Connecting.TestCase
