"""Which Workloads a job copy belongs to, and which of its changes they hear of."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest

from multikueue.adapters import SafeAdapter
from multikueue.adapters.job import KINDS as JOBS
from multikueue.adapters.sets import LEADER_WORKER_SET
from multikueue.core.model.adapter import Outcome
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.runtime.job_event_handlers import (
    STATUS_BATCH,
    concerned,
    copy_handler,
    delay_of,
    is_of_status_only,
)

JOB = SafeAdapter(JOBS[0])
SET = SafeAdapter(LEADER_WORKER_SET)
NAMED: Json = {
    "metadata": {"name": "j", "namespace": "ns", "annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "wl"}}
}
OF_TWO: Json = {
    "metadata": {"name": "l", "namespace": "ns", "annotations": {"kueue.x-k8s.io/multikueue-origin-uid": "uid"}},
    "spec": {"replicas": 2},
}


def keys(entries: list[str] | None) -> list[ObjectKey]:
    assert entries is not None
    return [ObjectKey("ns", entry.removeprefix("ns/")) for entry in entries]


def test_a_copy_belongs_to_the_workload_it_names() -> None:
    """One that names none, to nobody."""
    assert concerned(JOB, None, NAMED) == ([ObjectKey("ns", "wl")], True)
    assert JOB.copy_entries(NAMED) == JOB.copy_entries(NAMED, noted=True) == ["ns/wl"]
    assert JOB.copy_entries({"metadata": {"name": "j"}}) == []


def test_a_set_belongs_to_the_workload_of_each_replica() -> None:
    """When its number changes, to those it had and those it has."""
    both = keys(SET.copy_entries(OF_TWO))
    assert len(both) == 2
    three = with_value(OF_TWO, ("spec", "replicas"), 3)
    all_three = keys(SET.copy_entries(three))
    assert len(all_three) == 3
    assert concerned(SET, three, OF_TWO) == concerned(SET, OF_TWO, three) == (all_three, True)
    assert concerned(SET, None, OF_TWO) == concerned(SET, OF_TWO, None) == (both, True)


def test_a_status_that_stays_there_wakes_nobody() -> None:
    """A large set would wake a Workload per replica with each of its pods; one that the manager shows is told."""
    assert concerned(SET, OF_TWO, {**OF_TWO, "status": {"readyReplicas": 1}}) == ([], True)
    assert concerned(JOB, NAMED, {**NAMED, "status": {"active": 1}}) == ([ObjectKey("ns", "wl")], True)


def test_one_that_is_being_deleted_or_was_made_again_is_news() -> None:
    """Whoever runs in it must know."""
    for field in ("deletionTimestamp", "uid"):
        workloads, whole = concerned(SET, OF_TWO, with_value(OF_TWO, ("metadata", field), "x"))
        assert (len(workloads), whole) == (2, True)


def test_only_the_numbers_of_a_running_job_may_wait() -> None:
    """Its start, its end and whatever else changes of it are acted on at once."""
    running = {**NAMED, "status": {"active": 1}}
    assert delay_of(JOB, running, {**NAMED, "status": {"active": 2}}) == STATUS_BATCH

    ended = {**NAMED, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    renamed = {**with_value(running, ("metadata", "annotations"), {}), "status": {"active": 2}}
    for old, new in ((NAMED, running), (running, ended), (running, renamed), (None, running), (running, None)):
        assert delay_of(JOB, old, new) == 0.0


FIRST: Json = {**with_value(NAMED, ("metadata", "uid"), "1"), "status": {"active": 1}}
GOES: Json = with_value(FIRST, ("metadata", "finalizers"), ["foregroundDeletion"])
HELD: Json = with_value(FIRST, ("metadata", "finalizers"), ["example.com/held"])
SECOND: Json = {**with_value(NAMED, ("metadata", "uid"), "2")}


@pytest.mark.parametrize(
    ("seen", "leaves"),
    [
        ((FIRST, None), True),
        ((FIRST, GOES, None), False),
        ((FIRST, GOES, HELD, None), False),
        ((FIRST, SECOND, None), True),
        ((FIRST, GOES, SECOND), False),
        (({**FIRST, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, None), False),
    ],
    ids=["at once", "in the foreground", "held after that", "made again", "in order, made again", "ended"],
)
def test_what_goes_at_once_may_leave_pods(seen: tuple[Json | None, ...], leaves: bool) -> None:
    """Also one of which nobody has seen that it was gone: another has its name, as after a watch that broke."""
    left: list[ObjectKey] = []
    handler = copy_handler(JOB, lambda *_: None, lambda *_: None, left.append)
    for old, new in pairwise((None, *seen)):
        handler(ObjectKey("ns", "j"), old, new)
    assert (ObjectKey("ns", "wl") in left) == leaves


def test_one_that_went_in_the_foreground_is_known_by_what_was_seen_of_it_last() -> None:
    """Its worker is connected to anew meanwhile: what an earlier watch has seen is forgotten."""
    left: list[ObjectKey] = []
    copy_handler(JOB, lambda *_: None, lambda *_: None, left.append)(ObjectKey("ns", "j"), GOES, None)
    assert not left


def test_a_rule_that_raises_whatever_it_likes_stops_no_watch() -> None:
    """It may be another package's. The reconcile that follows at once says what is wrong, and of which job."""

    def finished(job: Json) -> Outcome | None:
        raise KeyError("state")

    odd = SafeAdapter(attrs.evolve(JOBS[0], status=attrs.evolve(JOBS[0].status, finished=finished)))
    assert delay_of(odd, {**NAMED, "status": {"active": 1}}, {**NAMED, "status": {"active": 2}}) == 0.0


def test_an_object_that_is_nested_too_deep_to_compare_stops_no_watch() -> None:
    """Argo's definitions, for one, take whatever is written into a spec.

    A thousand levels, the most that the JSON parser takes, are too deep for Python 3.11 only; these are for all.
    """

    def nested() -> Json:
        spec: Json = {}
        for _ in range(100_000):
            spec = {"a": spec}
        return {**NAMED, "spec": spec}

    assert not is_of_status_only(nested(), nested())
