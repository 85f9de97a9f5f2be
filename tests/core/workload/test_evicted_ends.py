"""A Workload copy that is evicted and Finished as well: whether its job has run to its end."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from tests.core.building import copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import FINISHING, Snapshot
from tests.core.pods import DONE, copied, group, place, pod, seen
from tests.core.wording import words
from tests.core.workload.test_ending import COMPLETE

HERE: Json = {"cluster": "w1", "check": "Ready"}
STATES = {"runs here": HERE, "is evicted here": {**HERE, "evicted": "Preempted"}}
RETRIED = 'retry: Workload evicted on worker cluster: "w1"'
states = pytest.mark.parametrize("local", STATES.values(), ids=list(STATES))


def finished(local: Json, reason: str, status: Json, **facts: Any) -> Snapshot:
    """Its worker has evicted it, and then finished it; the job there shows a status."""
    there = worker(
        "w1", copy_of(local, admitted=True, evicted=True, finished=reason), job_copy_of(local, status=status)
    )
    return snapshot(local, there, **facts)


@states
def test_a_job_that_succeeds_while_it_is_evicted_has_ended(local: dict[str, Any]) -> None:
    """Its Kueue says so because the job does. What has run is not run again."""
    assert words(finished(workload(**local), "Succeeded", COMPLETE, job=job(suspended=False))) == ["copy job status"]
    shown = job(suspended=False, status=COMPLETE)
    steps = words(finished(workload(**local), "Succeeded", COMPLETE, job=shown, quiet_for=FINISHING))
    assert steps == ["finish Succeeded"]


@pytest.mark.parametrize("reason", ["Failed", "OwnerNotFound", "OutOfSync"])
def test_what_its_kueue_says_of_one_that_it_stops_is_no_end(reason: str) -> None:
    """A controller may say of a job that it has stopped that it failed."""
    assert RETRIED in words(finished(workload(**HERE), reason, {"active": 0}))


@states
def test_pods_that_end_well_on_their_way_out_have_not_ended(local: dict[str, Any]) -> None:
    """They exit 0 on SIGTERM, and Kueue says of the evicted group that it has succeeded."""
    whole, pods = group("a", "b", **local), [pod("a"), pod("b")]
    copies = [copied(whole, pod, DONE, deleting=True) for pod in pods]
    there = place("w1", copy_of(whole, admitted=True, owned=True, evicted=True, finished="Succeeded"), *copies)
    steps = words(seen(whole, pods, there, quiet_for=FINISHING))
    assert not [word for word in steps if word.startswith("finish")]
    if "evicted" not in local:
        assert RETRIED in steps
