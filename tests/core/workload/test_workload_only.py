"""Kinds of which somebody else moves the jobs: we choose the worker, and follow the Workload alone."""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model.names import Json
from tests.core.building import ADAPTER, copy_of, snapshot, worker, workload
from tests.core.door import Snapshot, Worker, decide
from tests.core.wording import words

KIND = attrs.evolve(ADAPTER, workload_only=True)
ASSIGNED = workload(cluster="w1", check="Ready")


def seen(local: Json | None, *workers: Worker) -> Snapshot:
    """No job is ever seen of such a kind, here or there."""
    return snapshot(local, *workers, job={}, adapter=KIND)


def test_it_is_offered_without_its_job_being_known() -> None:
    shown = seen(workload(nominated=("w1", "w2")), worker("w1"), worker("w2"))
    assert words(shown) == ["create workload on w1", "create workload on w2"]


def test_the_worker_that_admits_it_has_it_at_once() -> None:
    """The controller that moves the job waits for `clusterName`."""
    local = workload(nominated=("w1", "w2"))
    shown = seen(local, worker("w1", copy_of(local, admitted=True)), worker("w2", copy_of(local)))

    assert words(shown) == ["admit on w1 as Ready", "tell", "count cq w1", "delete workload on w2"]


def test_while_it_runs_there_is_nothing_to_do() -> None:
    shown = seen(ASSIGNED, worker("w1", copy_of(ASSIGNED, admitted=True)))
    assert decide(shown).effects == ()


@pytest.mark.parametrize("reason", ["Succeeded", "Failed"])
def test_its_end_is_synced_with_the_workers_reason_and_message(reason: str) -> None:
    shown = seen(ASSIGNED, worker("w1", copy_of(ASSIGNED, admitted=True, finished=reason)))
    assert words(shown) == [f"finish {reason}"]


def test_it_is_retried_when_the_copy_is_gone() -> None:
    shown = seen(ASSIGNED, worker("w1"))
    assert words(shown) == ["retry: Admitting remote no longer exists"]


def test_an_eviction_stops_it_there_before_the_copy_goes() -> None:
    """The copy is what makes the worker's Kueue stop the job."""
    local = workload(cluster="w1", check="Ready", evicted="Preempted")
    running = seen(local, worker("w1", copy_of(local, admitted=True, owned=True)))
    assert words(running) == ["stop on w1"]

    stopped = seen(local, worker("w1", copy_of(local, evicted=True)))
    assert words(stopped) == ["delete workload on w1"]


def test_one_that_ends_while_it_is_evicted_has_ended() -> None:
    """What has run is not run again."""
    local = workload(cluster="w1", check="Ready", evicted="Preempted")
    shown = seen(local, worker("w1", copy_of(local, finished="Succeeded")))
    assert words(shown) == ["finish Succeeded"]


def test_a_deleted_workload_leaves_nothing() -> None:
    shown = seen(None, worker("w1", copy_of(ASSIGNED, admitted=True)))
    assert words(shown) == ["delete workload on w1"]
