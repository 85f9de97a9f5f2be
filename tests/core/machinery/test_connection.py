"""A worker's connection: what is told about it, and what survives a restart."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.machinery.connection import (
    CONNECTION_FAILED,
    Connection,
    Notice,
    active_status,
    notice,
)
from multikueue.core.machinery.connection_facts import FACTS, ConnectionFacts, connection_facts, facts_status
from multikueue.core.machinery.remembered_loss import NOTED_WITHIN, remembered_loss
from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.names import Json
from tests.core.door import NOW
from tests.examples import examples

LATER = NOW + timedelta(minutes=10)
LOST = Connection().failed("connection refused", NOW, failures=1, retry_in=600)


def cluster(*entries: Json | None) -> Json:
    """A MultiKueueCluster that has these conditions."""
    return {"metadata": {"generation": 2}, "status": {"conditions": [entry for entry in entries if entry is not None]}}


def facts_of(connection: Connection, active: Json | None) -> Json | None:
    return facts_status(cluster(None), active, connection.facts(), NOW)


def test_a_connected_worker_says_so() -> None:
    active = active_status(cluster(None), LOST.succeeded(), NOW)
    assert active is not None
    assert (active["status"], active["reason"], active["message"]) == ("True", "Active", "Connected")
    assert active["observedGeneration"] == 2


def test_a_lost_worker_says_why_and_when_it_is_tried_again() -> None:
    """In Kueue's form, which dashboards read."""
    active = active_status(cluster(None), LOST, NOW)
    assert active is not None
    assert (active["status"], active["reason"]) == ("False", "ClientConnectionFailed")
    assert active["message"] == (
        "connection refused; connection attempts: 1, next connection attempt: 2026-11-21T12:10:00Z"
    )


def test_a_cluster_that_is_not_tried_again_has_no_attempts() -> None:
    """A bad kubeconfig waits for its owner, not for a timer."""
    refused = Connection().failed("no such key", NOW, reason="BadKubeConfig")
    active = refused.active_condition(NOW, 1)
    assert (active["reason"], active["message"]) == ("BadKubeConfig", "no such key")


def test_the_first_loss_is_what_counts() -> None:
    """However often it fails after that: a job is given up by the time since then."""
    again = LOST.failed("timeout", LATER, failures=2)
    assert again.lost_since == NOW
    assert LOST.succeeded().lost_since is None


def test_a_worker_that_cannot_be_read_is_not_lost() -> None:
    """Its condition says so, and a restart does not take it for a loss."""
    full = LOST.unread("the list has more than 5 objects", LATER, failures=3, retry_in=60)
    assert (full.word, full.connected, full.lost_since) == ("unreadable", False, None)
    active = full.active_condition(LATER, 2)
    assert (active["status"], active["reason"]) == ("False", "AnswersUnreadable")
    assert active["message"].startswith("the list has more than 5 objects; connection attempts: 3")
    assert remembered_loss(cluster(active), LATER, None) is None
    happened = notice(None, active, full.facts())
    assert happened is not None
    assert (happened.type, happened.reason) == ("Warning", "AnswersUnreadable")
    assert full.failed("silent", LATER).lost_since == LATER


def test_the_time_of_loss_survives_a_restart_on_the_object() -> None:
    """A manager that restarts every ten minutes still gives up a worker lost for fifteen (item 39)."""
    active = LOST.active_condition(LATER, 2)
    assert active["lastTransitionTime"] == timestamp(NOW)
    assert remembered_loss(cluster(active), LATER, LATER) == NOW
    assert remembered_loss(cluster(LOST.succeeded().active_condition(NOW, 2)), LATER, LATER) is None
    assert remembered_loss(cluster(None), LATER, LATER) is None


def minutes(after: float) -> datetime:
    return NOW + timedelta(minutes=after)


def lost_until(due: float, reason: str = CONNECTION_FAILED) -> Json:
    """What a leader has noted: lost since `NOW`, and when it was to be tried next."""
    attempts = 1 if reason == CONNECTION_FAILED else 0
    lost = Connection().failed("timeout", NOW, failures=attempts, retry_in=60 * due, reason=reason)
    active = lost.active_condition(NOW, 2)
    return cluster(active, facts_of(lost, active))


@pytest.mark.parametrize(
    ("noted", "led_until", "since"),
    [
        (lost_until(5), 5, 25),
        (lost_until(5), 30, 30),
        (lost_until(5), 40, 30),
        (lost_until(5), None, 30),
        (lost_until(5), 8.1, 30),
        (lost_until(5, "BadKubeConfig"), 25, 5),
        (lost_until(5), -1, 30),
        (cluster({"type": "Active", "status": "False"}), 5, 30),
    ],
    ids=[
        "five minutes were watched",
        "the loss had ended when the other leader left",
        "its clock is ahead",
        "nobody knows when anybody watched",
        "an attempt that was due and did not fail",
        "a kubeconfig is not tried again",
        "the lease is older than the loss",
        "no time",
    ],
)
def test_only_time_in_which_a_leader_watched_counts(noted: Json, led_until: float | None, since: float) -> None:
    """We were away as long as the worker: its jobs were sent elsewhere in the second of the start."""
    led = None if led_until is None else minutes(led_until)
    assert remembered_loss(noted, minutes(30), led) == minutes(since)


def test_what_this_process_has_noted_is_taken_as_it_is() -> None:
    assert remembered_loss(lost_until(5), minutes(-1), minutes(-10)) == NOW


def test_the_counted_time_is_written_before_another_restart_adds_to_it() -> None:
    """Nothing else is told before the first answer or failure."""
    lost = lost_until(5)
    active = active_status(lost, Connection(lost_since=minutes(25)), minutes(30))
    assert active == {**lost["status"]["conditions"][0], "lastTransitionTime": timestamp(minutes(25))}
    assert active_status(cluster(active), Connection(lost_since=minutes(25)), minutes(30)) is None
    assert notice(lost["status"]["conditions"][0], active, ConnectionFacts()) is None
    up = cluster(LOST.succeeded().active_condition(NOW, 2))
    assert active_status(up, Connection(), LATER) is None
    assert active_status(cluster(None), Connection(), LATER) is None


def test_a_loss_begins_with_the_last_answer() -> None:
    lost = Connection(connected=True).failed("no answer", LATER, silent_for=20.0)
    assert lost.lost_since == LATER - timedelta(seconds=20)
    assert lost.failed("no answer", LATER, silent_for=3_600.0).lost_since == lost.lost_since


def test_every_attempt_is_written_since_the_next_one_is_named() -> None:
    """At most one a minute once it has been away for a while; the time of the loss stays."""
    lost = cluster(LOST.active_condition(NOW, 2))
    active = active_status(lost, LOST.failed("connection refused", LATER, failures=7), LATER)
    assert active is not None
    assert "; connection attempts: 7, next" in active["message"]
    assert active["lastTransitionTime"] == timestamp(NOW)


def test_what_is_said_already_is_not_written() -> None:
    assert active_status(cluster(LOST.active_condition(NOW, 2)), LOST, LATER) is None


def test_the_kinds_a_worker_lacks_are_named_while_it_is_connected() -> None:
    """It is active, and everything else goes there."""
    up = LOST.succeeded()
    active = active_status(
        cluster(None), up, NOW, {"JobSet.v1alpha2.jobset.x-k8s.io": "not found", "Job.v1.batch": "no"}
    )
    assert active is not None
    assert (active["status"], active["reason"]) == ("True", "Active")
    assert active["message"] == (
        "Connected; not usable for: Job.v1.batch (no), JobSet.v1alpha2.jobset.x-k8s.io (not found)"
    )
    assert active_status(cluster(active), up, LATER) is not None
    assert "not usable" not in LOST.active_condition(NOW, 2, {"Job.v1.batch": "no"})["message"]


def test_events_are_for_what_happens_and_not_for_every_attempt() -> None:
    retried, refused = LOST.failed("timeout", LATER, failures=2), LOST.failed("no key", LATER, reason="BadKubeConfig")
    flawed = {"Job.v1.batch": "no"}
    lost, up = LOST.active_condition(NOW, 2), LOST.succeeded().active_condition(NOW, 2)
    degraded = LOST.succeeded().active_condition(NOW, 2, flawed)

    def happens(before: Json | None, connection: Connection, unusable: dict[str, str] | None = None) -> Notice | None:
        return notice(before, connection.active_condition(LATER, 2, unusable), connection.facts(unusable))

    assert happens(None, LOST) == happens(up, LOST) == Notice("Warning", "ClusterLost", "connection refused")
    assert happens(lost, retried) is None
    assert happens(lost, refused) == Notice("Warning", "BadKubeConfig", "no key")
    connected = Notice("Normal", "ClusterConnected", "Connected")
    assert happens(lost, LOST.succeeded()) == happens(degraded, LOST.succeeded()) == connected
    assert happens(up, LOST.succeeded(), flawed) == Notice("Warning", "KindsNotUsable", degraded["message"])


@pytest.mark.parametrize(
    "facts",
    [
        LOST.facts(),
        LOST.facts(lost_after=timedelta(minutes=15)),
        LOST.failed("no key", NOW, reason="BadKubeConfig").facts(),
        LOST.succeeded().facts(),
        LOST.succeeded().facts({"Job.v1.batch": "not (found), RayJob.v1.ray.io (no)"}),
    ],
    ids=["lost", "moving", "refused", "connected", "degraded"],
)
def test_programs_read_facts_and_not_the_message(facts: ConnectionFacts) -> None:
    """Whatever a worker's words are made of: they were taken apart by regexes."""
    active = LOST.active_condition(NOW, 2)
    written = facts_status(cluster(active), active, facts, NOW)
    assert connection_facts(cluster(active, written)) == facts
    assert facts_status(cluster(active, written), active, facts, LATER) is None, "it says the same already"


def test_when_the_jobs_of_a_lost_worker_move_is_a_fact() -> None:
    assert LOST.facts(lost_after=timedelta(minutes=3)).moves_at == NOW + timedelta(minutes=3)
    assert LOST.facts().moves_at is None
    assert LOST.succeeded().facts(lost_after=timedelta(minutes=3)).moves_at is None
    unread = Connection().unread("too much", NOW, failures=1, retry_in=5)
    assert unread.facts(lost_after=timedelta(minutes=3)).moves_at is None, "no time runs while it answers"


def test_facts_beside_an_active_of_another_controller_are_out_of_date() -> None:
    """Kueue's own controller, after a way back, leaves our condition where it is."""
    active = LOST.active_condition(NOW, 2)
    written = facts_status(cluster(active), active, LOST.facts(), NOW)
    assert connection_facts(cluster({**active, "message": "no such host"}, written)) is None
    assert connection_facts(cluster({**active, "lastTransitionTime": timestamp(LATER)}, written)) == LOST.facts()


@pytest.mark.parametrize("message", ["", "Connected", "[1]", '{"failures": "x", "nextAttempt": 3, "unusable": []}'])
def test_facts_that_cannot_be_read_are_unknown(message: str) -> None:
    facts = connection_facts(cluster({"type": FACTS, "status": "True", "message": message}))
    assert facts in (None, ConnectionFacts())


def test_facts_fit_into_a_condition() -> None:
    """A message that were cut would be no JSON."""
    flawed = {f"Kind{number}.v1.example.com": "x" * 10_000 for number in range(80)}
    written = facts_status(cluster(None), None, LOST.succeeded().facts(flawed), NOW)
    assert len((connection_facts(cluster(written)) or ConnectionFacts()).unusable) == 50


def test_a_new_error_is_written_and_keeps_the_time() -> None:
    lost = cluster(LOST.active_condition(NOW, 2))
    active = active_status(lost, LOST.failed("certificate expired", LATER, failures=2), LATER)
    assert active is not None
    assert active["message"].startswith("certificate expired; connection attempts: 2")
    assert active["lastTransitionTime"] == timestamp(NOW)


def test_a_change_to_connected_and_back_moves_the_time() -> None:
    up = LOST.succeeded().active_condition(LATER, 2)
    assert up["lastTransitionTime"] == timestamp(LATER)
    down = active_status(cluster(up), Connection(connected=True).failed("e", LATER, failures=1), LATER)
    assert down is not None
    assert down["lastTransitionTime"] == timestamp(LATER)


def test_no_word_yet_is_told_without_a_time_of_loss() -> None:
    """A connection that was never tried has lost nothing."""
    assert Connection().active_condition(NOW, None)["lastTransitionTime"] == timestamp(NOW)


ERRORS = st.sampled_from(["connection refused", "no answer in time"])
KINDS = st.dictionaries(st.sampled_from(["Job.v1.batch", "JobSet.v1alpha2.jobset.x-k8s.io"]), st.just("not found"))


class Connecting(RuleBasedStateMachine):
    """A worker that comes and goes, a process that restarts, and the MultiKueueCluster that remembers.

    The model is three variables: since when the worker is lost, whether it is connected, and what was told last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.connection = Connection()
        self.object = cluster(None)
        self.unusable: dict[str, str] = {}
        self.lost: datetime | None = None
        self.attempts = 0
        self.due: datetime | None = None
        """When the next attempt is made, as told."""
        self.notices: list[Notice] = []
        self.is_written = True
        """Whether the last word has been written."""

    @rule()
    def write(self) -> None:
        """What the reconciler does after a word, and at a start."""
        self.is_written = True
        entry = condition(self.object, "Active")
        wanted = active_status(self.object, self.connection, self.now, self.unusable)
        facts = None if self.connection.unheard else self.connection.facts(self.unusable)
        known = facts_status(self.object, wanted or entry, facts, self.now) if facts is not None else None
        if wanted is not None:
            event = notice(entry, wanted, facts or ConnectionFacts())
            self.notices += [event] if event is not None else []
        self.object = cluster(wanted or entry, known or condition(self.object, FACTS))

    @rule(seconds=st.integers(0, 1000))
    def passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(error=ERRORS)
    def fails(self, error: str) -> None:
        """One more attempt; only the first since it was connected is the loss. It may be written later."""
        self.attempts += 1
        self.lost, self.due = self.lost or self.now, self.now + timedelta(seconds=5)
        self.connection = self.connection.failed(error, self.now, failures=self.attempts, retry_in=5)
        self.is_written = False

    @rule(reason=st.sampled_from(["BadKubeConfig", "InsecureKubeConfig"]))
    def is_refused(self, reason: str) -> None:
        """Its kubeconfig cannot be used any more."""
        self.lost, self.attempts, self.due = self.lost or self.now, 0, None
        self.connection = self.connection.failed("no", self.now, reason=reason)
        self.write()

    @rule(unusable=KINDS)
    def connects(self, unusable: dict[str, str]) -> None:
        """With some kinds missing, or none."""
        self.lost, self.attempts, self.unusable = None, 0, unusable
        self.connection = self.connection.succeeded()
        self.write()

    @precondition(lambda self: self.is_written and condition(self.object, "Active") is not None)
    @rule(away=st.integers(0, 1000))
    def restarts(self, away: int) -> None:
        """Another process takes over: it knows what the object says, and has not asked the worker yet.

        The time without either does not count. Nor does a loss whose next attempt was due for long when the one before
        was still at work: that attempt did not fail.
        """
        led_until, self.now = self.now, self.now + timedelta(seconds=away)
        self.connection = Connection(lost_since=remembered_loss(self.object, self.now, led_until))
        if self.lost is not None:
            ended = self.due is not None and led_until - self.due > NOTED_WITHIN
            self.lost = self.now if ended else self.lost + timedelta(seconds=away)
        self.attempts = 0
        self.write()

    @invariant()
    def the_loss_is_the_first_one_and_survives(self) -> None:
        """The grace of what runs there is counted from it (item 39)."""
        assert self.connection.lost_since == self.lost

    @invariant()
    def the_object_tells_it(self) -> None:
        active = condition(self.object, "Active")
        if active is None or not self.is_written:
            return
        assert (active["status"] == "True") == (self.lost is None)
        if self.lost is not None:
            assert active["lastTransitionTime"] == timestamp(self.lost)

    @invariant()
    def nothing_is_written_twice(self) -> None:
        """The same word again changes nothing."""
        if self.is_written and (self.connection.connected or self.connection.error):
            assert active_status(self.object, self.connection, self.now, self.unusable) is None

    @invariant()
    def events_tell_changes_only(self) -> None:
        """Never the same one twice in a row."""
        pairs = zip(self.notices, self.notices[1:], strict=False)
        assert all((first.reason, first.note) != (second.reason, second.note) for first, second in pairs)


Connecting.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=20, deadline=None)
TestConnecting = Connecting.TestCase
