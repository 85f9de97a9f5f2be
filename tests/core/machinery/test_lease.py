"""What a candidate may do about a Lease."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.machinery.lease import JITTER, LeaseAction, LeaseCandidate, LeaseSettings, micro_time
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import SettingsError

KEY = ObjectKey("kueue-system", "multikueue")
WALL = datetime(2026, 1, 2, 3, 4, 5, 60, UTC)


def stored(lease: Json, version: int = 1) -> Json:
    """The lease as the server answers it."""
    return {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(version)}}


def leading(identity: str = "a", at: float = 0.0) -> LeaseCandidate:
    candidate = LeaseCandidate(KEY, identity)
    candidate.observe(None, at)
    candidate.wrote(stored(candidate.next_lease(WALL)), at)
    return candidate


def test_without_a_lease_anybody_may_make_one() -> None:
    candidate = LeaseCandidate(KEY, "a")
    candidate.observe(None, 0.0)

    assert candidate.decide(0.0) is LeaseAction.ACQUIRE
    assert candidate.next_lease(WALL) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "kueue-system", "name": "multikueue"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-02T03:04:05.000060Z",
            "renewTime": "2026-01-02T03:04:05.000060Z",
            "leaseTransitions": 0,
        },
    }


def test_its_repr_says_who_holds_the_lease() -> None:
    assert repr(LeaseCandidate(KEY, "b")) == "<Candidate b: Lease kueue-system/multikueue, held by nobody>"
    assert repr(leading("a")) == "<Candidate a: Lease kueue-system/multikueue, held by a>"


def test_a_lease_of_another_is_waited_for_until_it_was_seen_unchanged_for_its_duration() -> None:
    lease = stored(leading("a").next_lease(WALL))
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(lease, 100.0)
    candidate.observe(lease, 114.9)

    assert candidate.decide(114.9) is LeaseAction.WAIT
    assert candidate.decide(115.0) is LeaseAction.ACQUIRE


def test_a_renewal_seen_starts_the_wait_again() -> None:
    holder = leading("a")
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(stored(holder.next_lease(WALL)), 100.0)
    candidate.observe(stored(holder.next_lease(WALL + timedelta(seconds=2)), 2), 110.0)

    assert candidate.decide(124.9) is LeaseAction.WAIT
    assert candidate.decide(125.0) is LeaseAction.ACQUIRE


def test_an_edited_label_is_not_a_renewal() -> None:
    lease = stored(leading("a").next_lease(WALL))
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(lease, 100.0)
    candidate.observe({**lease, "metadata": {**lease["metadata"], "labels": {"x": "y"}, "resourceVersion": "2"}}, 110.0)

    assert candidate.decide(115.0) is LeaseAction.ACQUIRE
    assert candidate.next_lease(WALL)["metadata"]["resourceVersion"] == "2"
    assert candidate.next_lease(WALL)["metadata"]["labels"] == {"x": "y"}


def test_the_holders_own_duration_counts() -> None:
    """Replicas with other settings, as during a roll-out, do not overlap."""
    lease = stored(leading("a").next_lease(WALL))
    lease["spec"]["leaseDurationSeconds"] = 60
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(lease, 0.0)

    assert candidate.decide(59.0) is LeaseAction.WAIT
    assert candidate.decide(60.0) is LeaseAction.ACQUIRE


def test_times_written_in_the_lease_decide_nothing() -> None:
    """A leader whose clock is years behind or ahead is believed all the same."""
    for year in (1999, 2077):
        lease = stored(leading("a").next_lease(WALL.replace(year=year)))
        candidate = LeaseCandidate(KEY, "b")
        candidate.observe(lease, 0.0)

        assert candidate.decide(14.0) is LeaseAction.WAIT


def test_it_knows_when_the_lease_was_renewed_last() -> None:
    """For those who ask how long nobody was at work; also of one that was deleted since."""
    candidate = LeaseCandidate(KEY, "a")
    assert candidate.led_until is None
    candidate.observe(stored(leading("b").next_lease(WALL)), 0.0)
    assert candidate.led_until == WALL
    candidate.observe(None, 1.0)
    assert candidate.led_until == WALL


def test_a_write_that_acquires_says_until_when_somebody_led() -> None:
    """It may take effect without an answer, for as long as it likes: nobody leads then."""
    before = stored(leading("b").next_lease(WALL))
    candidate = LeaseCandidate(KEY, "a")
    candidate.observe(before, 0.0)
    for seconds in (20, 40, 60):
        later = WALL + timedelta(seconds=seconds)
        candidate.observe(stored(candidate.next_lease(later, leading=False), seconds), float(seconds))
        assert candidate.led_until == WALL
    released = stored(candidate.released_lease(WALL + timedelta(seconds=70)), 70)
    other = LeaseCandidate(KEY, "c")
    other.observe(released, 71.0)
    assert other.led_until == WALL
    candidate.observe(stored(candidate.next_lease(WALL + timedelta(seconds=80)), 80), 80.0)
    assert candidate.led_until == WALL + timedelta(seconds=80), "it leads"


def test_where_nobody_has_led_a_write_that_acquires_says_so() -> None:
    candidate = LeaseCandidate(KEY, "a")
    candidate.observe(None, 0.0)
    candidate.observe(stored(candidate.next_lease(WALL, leading=False)), 0.0)
    assert candidate.led_until is None


def test_a_release_says_when_its_holder_led_last() -> None:
    """The last renewals may have been unanswered, so it has stopped before."""
    released = stored(leading("a").released_lease(WALL + timedelta(seconds=30), WALL + timedelta(seconds=10)), 2)
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(released, 0.0)
    assert candidate.led_until == WALL + timedelta(seconds=10)


def test_a_released_lease_is_free_at_once_and_counts_a_transition() -> None:
    released = stored(leading("a").released_lease(WALL), 2)
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(released, 0.0)
    lease = candidate.next_lease(WALL)

    assert released["spec"]["holderIdentity"] == ""
    assert candidate.decide(0.0) is LeaseAction.ACQUIRE
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("b", 1)


def test_a_renewal_keeps_acquire_time_transitions_and_unknown_fields() -> None:
    holder = leading("a")
    seen = stored(holder.next_lease(WALL), 5)
    seen["spec"] |= {"leaseTransitions": 7, "strategy": "OldestEmulationVersion"}
    holder.observe(seen, 2.0)
    lease = holder.next_lease(WALL + timedelta(seconds=2))

    assert holder.decide(2.0) is LeaseAction.RENEW
    assert lease["spec"] == {**seen["spec"], "renewTime": "2026-01-02T03:04:07.000060Z"}
    assert lease["metadata"]["resourceVersion"] == "5"


def test_a_leader_that_sees_another_holder_leads_no_longer() -> None:
    holder = leading("a", at=50.0)
    assert holder.leads_until == 60.0

    other = stored(leading("b").next_lease(WALL), 9)
    holder.observe(other, 51.0)

    assert holder.leads_until < 51.0
    assert holder.decide(51.0) is LeaseAction.WAIT


def test_a_deleted_lease_stays_taken_until_its_last_sight_expires() -> None:
    candidate = LeaseCandidate(KEY, "b")
    candidate.observe(stored(leading("a").next_lease(WALL)), 0.0)
    candidate.observe(None, 5.0)

    assert candidate.decide(14.0) is LeaseAction.WAIT
    assert candidate.decide(15.0) is LeaseAction.ACQUIRE
    assert "resourceVersion" not in candidate.next_lease(WALL)["metadata"]


def test_the_leader_of_a_deleted_lease_makes_it_again() -> None:
    holder = leading("a")
    holder.observe(None, 2.0)

    assert holder.decide(2.0) is LeaseAction.ACQUIRE
    assert holder.next_lease(WALL)["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"duration": 10.0}, "leaseDuration"),
        ({"renew_deadline": 2.5}, "renewDeadline"),
        ({"retry_period": 0.0}, "retryPeriod"),
    ],
)
def test_settings_that_leave_no_room_are_refused_by_name(settings: dict[str, float], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        LeaseSettings(**settings)


def test_a_fraction_of_a_second_is_rounded_up_on_the_wire() -> None:
    """The server keeps whole seconds; others must not wait for less than the leader counts on."""
    lease = LeaseCandidate(KEY, "a", LeaseSettings(duration=10.2)).next_lease(WALL)

    assert lease["spec"]["leaseDurationSeconds"] == 11


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_retries_are_spread_but_never_early(fraction: float) -> None:
    delay = LeaseCandidate(KEY, "a").retry_delay(fraction)

    assert 2.0 <= delay <= 2.0 * (1 + JITTER)


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=5, minutes=30)))).filter(lambda moment: moment.year > 1))
def test_micro_times_are_utc_with_six_decimals(moment: datetime) -> None:
    """kube-apiserver refuses any other form of a MicroTime."""
    assert re.fullmatch(r"\d{1,4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", micro_time(moment))


@attrs.define
class World:
    """One server, two candidates whose clocks are apart, and requests that succeed, fail or lose their answer."""

    offsets: tuple[float, float]
    now: float = 0.0
    version: int = 0
    lease: Json | None = None
    candidates: list[LeaseCandidate] = attrs.field(factory=lambda: [LeaseCandidate(KEY, "a"), LeaseCandidate(KEY, "b")])

    def clock(self, index: int) -> float:
        return self.now + self.offsets[index]

    def act(self, index: int, *, latency: float, answered: bool) -> None:
        candidate = self.candidates[index]
        candidate.observe(self.lease, self.clock(index))
        began = self.clock(index)
        if candidate.decide(began) is LeaseAction.WAIT:
            return
        written = candidate.next_lease(WALL + timedelta(seconds=self.now, microseconds=index))
        self.now += latency
        self.version += 1
        self.lease = stored(written, self.version)
        if answered:
            candidate.wrote(self.lease, began)

    def leaders(self) -> list[str]:
        return [
            candidate.identity
            for index, candidate in enumerate(self.candidates)
            if self.clock(index) < candidate.leads_until
        ]


steps = st.tuples(st.integers(0, 1), st.floats(0.0, 12.0), st.floats(0.0, 9.0), st.booleans())


@given(offsets=st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), run=st.lists(steps, max_size=40))
def test_two_candidates_never_lead_at_once(
    offsets: tuple[float, float], run: list[tuple[int, float, float, bool]]
) -> None:
    """Whatever their clocks show, however slow the server, and whichever answers are lost."""
    world = World(offsets)
    for index, pause, latency, answered in run:
        world.now += pause
        world.act(index, latency=latency, answered=answered)

        assert len(world.leaders()) <= 1


def test_an_identity_is_not_empty() -> None:
    """A Lease without a holder is free: two processes of no identity led at once."""
    with pytest.raises(SettingsError, match="identity"):
        LeaseCandidate(KEY, "")


def test_times_are_seconds() -> None:
    """The manager's settings take a timedelta."""
    with pytest.raises(TypeError, match=r"is a number of seconds, not .*: give its total_seconds"):
        LeaseSettings(duration=cast("float", timedelta(seconds=15)))
