"""What workers answer, read out of the check's message, of conditions and of events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.testing import NOW
from multikueued.reports.cluster_answers import cluster_answer
from multikueued.reports.events import EventReport
from multikueued.reports.jobs import ReportedPlacement, placements
from multikueued.reports.worker_answers import ReportedRefusal, refusals
from tests.reports.objects import worker


def test_a_connected_worker_and_the_kinds_that_it_does_not_serve() -> None:
    unusable = {"Job.v1.batch": 'User "x" cannot list (at all)', "RayJob.v1.ray.io": "404, gone", "Pod.v1": "no"}
    said = cluster_answer(worker("w", facts=ConnectionFacts(unusable=unusable)))
    assert (said.connected, said.error, said.failures, said.unusable) == (True, "", 0, unusable)


def test_a_worker_that_is_tried_again() -> None:
    due = datetime(2026, 1, 1, 0, 2, 15, tzinfo=UTC)
    error = "Unauthorized; connection attempts: 5, next connection attempt: 2026-01-01T00:02:15Z"
    said = cluster_answer(
        worker("w", error, reason="ClientConnectionFailed", facts=ConnectionFacts(5, due, "Unauthorized"))
    )
    assert (said.connected, said.error, said.failures, said.since) == (False, "Unauthorized", 5, NOW)
    assert said.next_attempt == due


def test_a_worker_of_another_controller_says_what_stands_in_its_message() -> None:
    said = cluster_answer(worker("w", "Unauthorized; connection attempts: 5", reason="ClientConnectionFailed"))
    assert (said.error, said.failures, said.next_attempt) == ("Unauthorized; connection attempts: 5", 0, None)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("BadKubeConfig", "KubeconfigRefused"),
        ("MultiKueueClusterProfileFeatureDisabled", "ClusterProfilesOff"),
        ("ClientConnectionFailed", ""),
        ("OfAnotherVersion", ""),
    ],
)
def test_of_another_controller_the_reason_is_the_cause_if_it_is_one(reason: str, cause: str) -> None:
    assert cluster_answer(worker("w", "words", reason=reason)).cause == cause


def test_a_worker_that_nobody_has_tried() -> None:
    said = cluster_answer({"metadata": {"name": "w"}})
    assert not said.connected
    assert "no attempt to connect to it has ended" in said.error


def event(worker: str, note: str, minutes_ago: float = 1) -> EventReport:
    moment = NOW - timedelta(minutes=minutes_ago)
    return EventReport("workload/x", "Warning", "MultiKueue", note, moment, moment, 1, "multikueue", worker)


def test_refusals_that_events_tell_the_newest_counts_and_old_ones_do_not() -> None:
    events = [
        event("w3", "refuses it: long ago", minutes_ago=6),
        event("w1", "refuses it: first", minutes_ago=3),
        event("w1", "refuses it: then", minutes_ago=2),
        event("", 'The workload was admitted on "w2"'),
    ]
    assert refusals({}, events, {}, NOW) == {"w1": ReportedRefusal("refuses it: then")}


def test_a_refusal_that_may_pass_counts_until_the_worker_is_asked_again() -> None:
    """It is tried in place, and the check does not tell of it yet: what does not come again has passed."""
    due = NOW - timedelta(minutes=1) + timedelta(seconds=50)
    failed = attrs.evolve(event("w1", "no endpoints available"), asked_again=due)
    assert refusals({}, [failed], {}, due) == {"w1": ReportedRefusal("no endpoints available", due)}
    assert refusals({}, [failed], {}, due + timedelta(seconds=31)) == {}
    assert list(refusals({}, [failed], {"w1": "denied"}, due + timedelta(seconds=31))) == ["w1"], "the check tells it"


def test_a_refusal_that_the_check_tells_of_lasts_until_the_worker_is_asked_again() -> None:
    events = [event("w1", "refuses it", minutes_ago=50), event("w2", "refuses it", minutes_ago=70)]
    assert refusals({}, events, {"w1": "denied", "w2": "denied"}, NOW) == {"w1": ReportedRefusal("refuses it")}


def test_a_worker_that_refused_the_job_of_a_workload_that_was_sent_back() -> None:
    """It stands at the placement that is over, whatever language that is told in."""
    over = '[{"worker": "w1", "why": "quota used up", "cause": "Refused"}]'
    assert refusals(_noted(over), (), {}, NOW) == {"w1": ReportedRefusal("quota used up")}
    assert refusals(_noted('[{"worker": "w1", "why": "lost"}]'), (), {}, NOW) == {}


def test_the_last_placements() -> None:
    noted = (
        '[{"worker": "w1", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z", "why": "lost"},'
        ' {"worker": "w2", "since": "2026-01-01T01:00:05Z", "until": null}]'
    )
    last = placements(_noted(noted))
    assert last == (
        ReportedPlacement("w1", NOW, NOW + timedelta(hours=1), "lost"),
        ReportedPlacement("w2", NOW + timedelta(hours=1, seconds=5), None, ""),
    )


@pytest.mark.parametrize("noted", ["", "no JSON", "{}", '"text"', "[1]", "null"])
def test_placements_that_cannot_be_read_are_none(noted: str) -> None:
    assert placements(_noted(noted)) == ()


def _noted(text: str) -> Json:
    return {"metadata": {"annotations": {PLACEMENTS_ANNOTATION: text}}}
