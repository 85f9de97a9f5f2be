"""What workers answer, read out of the check's message, of conditions and of events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.testing import NOW
from multikueued.reports.answers import (
    Placement,
    asked_again,
    cluster_state,
    parts_of,
    placements,
    refusals,
    sent_back,
)
from multikueued.reports.events import EventReport
from tests.reports.objects import worker


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("", {}),
        ("Offered to w1, w2", {}),
        ("Offered to w1 — w1: insufficient quota", {"w1": "insufficient quota"}),
        (
            'Round 2 — w1: LocalQueue "a" doesn\'t exist · w2: said; w1: no · w10: x',
            {"w1": 'LocalQueue "a" doesn\'t exist', "w2": "said; w1: no", "w10": "x"},
        ),
        (
            'The workload was admitted on "w1" — '
            "w1 unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z",
            {"w1": "unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z"},
        ),
        ("Said by a dispatcher — nothing of ours", {}),
        ("No worker cluster takes it: w1: a; b: c; w2: d", {"w1": "a; b: c", "w2": "d"}),
        ("Offered to no worker cluster: w1: connecting", {"w1": "connecting"}),
    ],
)
def test_the_parts_of_a_message(message: str, parts: dict[str, str]) -> None:
    assert parts_of(message, ["w1", "w2", "w10"]) == parts


def test_no_worker_has_no_part() -> None:
    assert parts_of("a — b: c", []) == {}


def test_when_a_worker_that_refuses_is_asked_again() -> None:
    moment = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert asked_again("refuses it, is asked again at 2026-01-01T00:05:00Z: no: team") == ("no: team", moment)
    assert asked_again("insufficient quota") == ("insufficient quota", None)


def test_a_connected_worker_and_the_kinds_that_it_does_not_serve() -> None:
    unusable = {"Job.v1.batch": 'User "x" cannot list (at all)', "RayJob.v1.ray.io": "404, gone", "Pod.v1": "no"}
    said = cluster_state(worker("w", facts=ConnectionFacts(unusable=unusable)))
    assert (said.connected, said.error, said.attempts, said.unusable) == (True, "", 0, unusable)


def test_a_worker_that_is_tried_again() -> None:
    due = datetime(2026, 1, 1, 0, 2, 15, tzinfo=UTC)
    told = "Unauthorized; connection attempts: 5, next connection attempt: 2026-01-01T00:02:15Z"
    said = cluster_state(
        worker("w", told, reason="ClientConnectionFailed", facts=ConnectionFacts(5, due, "Unauthorized"))
    )
    assert (said.connected, said.error, said.attempts, said.since) == (False, "Unauthorized", 5, NOW)
    assert said.next_attempt == due


def test_a_worker_of_another_controller_says_what_stands_in_its_message() -> None:
    said = cluster_state(worker("w", "Unauthorized; connection attempts: 5", reason="ClientConnectionFailed"))
    assert (said.error, said.attempts, said.next_attempt) == ("Unauthorized; connection attempts: 5", 0, None)


def test_a_worker_that_nobody_has_tried() -> None:
    said = cluster_state({"metadata": {"name": "w"}})
    assert not said.connected
    assert "nobody has tried" in said.error


def event(note: str, minutes_ago: float = 1) -> EventReport:
    moment = NOW - timedelta(minutes=minutes_ago)
    return EventReport("workload/x", "Warning", "MultiKueue", note, moment, moment, 1, "multikueue")


def test_refusals_that_events_tell_the_newest_counts_and_old_ones_do_not() -> None:
    events = [
        event('worker cluster "w3" refuses jobs.batch "default/x": long ago', minutes_ago=6),
        event('worker cluster "w1" refuses jobs.batch "default/x": first', minutes_ago=3),
        event('worker cluster "w1" refuses jobs.batch "default/x": then', minutes_ago=2),
        event('jobs.batch "default/x" exists on worker cluster "w2" and is not known as a copy of ours: rename it'),
        event('The workload was admitted on "w2"'),
    ]
    assert refusals(events, NOW) == {
        "w1": 'jobs.batch "default/x": then',
        "w2": 'jobs.batch "default/x" exists on worker cluster "w2" and is not known as a copy of ours: rename it',
    }


@pytest.mark.parametrize(
    "message",
    [
        'Worker cluster "w1" refuses the job: quota "a" is used up, Previously: "Pending"',
        'Previously: Evicted due to AdmissionCheck in Retry state: "multikueue" '
        '(Worker cluster "w1" refuses the job: quota "a" is used up, Previously: "Pending")',
        'Worker cluster "w1" cannot run the job: quota "a" is used up',
    ],
)
def test_why_a_workload_was_sent_back(message: str) -> None:
    assert sent_back(message) == ("w1", 'quota "a" is used up')


def test_the_last_placements() -> None:
    noted = (
        '[{"worker": "w1", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z", "why": "lost"},'
        ' {"worker": "w2", "since": "2026-01-01T01:00:05Z", "until": null}]'
    )
    found = placements(_noted(noted))
    assert found == (
        Placement("w1", NOW, NOW + timedelta(hours=1), "lost"),
        Placement("w2", NOW + timedelta(hours=1, seconds=5), None, ""),
    )


@pytest.mark.parametrize("noted", ["", "no JSON", "{}", '"text"', "[1]", "null"])
def test_placements_that_cannot_be_read_are_none(noted: str) -> None:
    assert placements(_noted(noted)) == ()


def _noted(text: str) -> Json:
    return {"metadata": {"annotations": {PLACEMENTS_ANNOTATION: text}}}
