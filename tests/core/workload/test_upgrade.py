"""An upgrade from 267d433b in the middle of a removal: what that daemon leaves is read, and mended, by this one.

The other way, what it decides on what this one leaves, was tried with its own code: docs/upgrading.md, "Rolling back".
"""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model.labels import JOB_MARK_ANNOTATION, WORKLOAD_FINALIZER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value, without
from tests.core.building import EARLIER, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import CreateWorkload, DeleteJob, PatchWorkload, Syncing, decide, only, those
from tests.core.pods import copied, group, place, pod, seen
from tests.core.wording import words

AGAIN = workload(nominated=("w1", "w2"), evictions=1)
FINALIZERS = ("metadata", "finalizers")


def deleted_in_the_background(local: Json, attempt: str | None = None) -> Json:
    """A job copy that 267d433b has deleted, with its Workload copy; a finalizer of somebody else's holds it."""
    return with_value(job_copy_of(local, attempt=attempt, deleting=True), FINALIZERS, ["example.com/slow"])


def test_what_runs_on_under_a_foreign_finalizer_is_deleted_once_more_and_nobody_is_offered_it() -> None:
    """Its pods have run without quota since; the second deletion, in the foreground, ends them."""
    left = worker("w1", None, deleted_in_the_background(AGAIN, EARLIER))
    decided = decide(snapshot(AGAIN, left, worker("w2")))
    deletions = those(DeleteJob, decided.effects)
    assert decided.row.startswith("earlier run: ")
    assert [(effect.cluster, effect.propagation) for effect in deletions] == [("w1", "Foreground")]


def test_what_was_deleted_on_the_manager_meanwhile_is_deleted_once_more() -> None:
    left = worker("w1", None, deleted_in_the_background(AGAIN))
    assert words(snapshot(None, left, check=None, job={})) == ["delete job on w1"]
    foreground = worker("w1", None, job_copy_of(AGAIN, deleting=True))
    assert words(snapshot(None, foreground, check=None, job={})) == []


def test_a_running_copy_without_a_job_mark_is_believed() -> None:
    """Daemons before that mark knew the attempt only."""
    local = workload(cluster="w1", check="Ready")
    job = without(job_copy_of(local), [("metadata", "annotations", JOB_MARK_ANNOTATION)])
    runs = worker("w1", copy_of(local, admitted=True, owned=True), job)
    assert words(snapshot(local, runs)) == words(
        snapshot(local, worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local)))
    )


def test_a_groups_copy_without_kueues_finalizer_gets_it_before_anything_is_deleted() -> None:
    """Else its pods would be `Terminating` for ever; those that run meanwhile are not touched."""
    local = group("p0", "p1", cluster="w1", check="Pending")
    pods = [pod("p0"), pod("p1")]
    made = without(copy_of(local, admitted=True, owned=True), [FINALIZERS])
    there = place("w1", made, *(copied(local, pod) for pod in pods))
    running = seen(local, pods, there)
    assert not [word for word in words(running) if word.startswith(("delete", "stop"))]

    local["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    (first,) = (effect for effect in decide(attrs.evolve(running, workload=local)).effects if effect.cluster == "w1")
    assert isinstance(first, PatchWorkload)
    assert first.patch["metadata"]["finalizers"] == [WORKLOAD_FINALIZER]


def test_it_gets_it_though_its_pods_are_not_listed_yet() -> None:
    """After the start Workloads may be listed before pods: what that daemon had stopped was deleted without it."""
    local = group("p0", "p1", cluster="w1", evicted="Preempted", evictions=1)
    made = without(copy_of(local, admitted=True, owned=True, evicted=True, spec={"active": False}), [FINALIZERS])
    hidden = place("w1", made, kind=Syncing())
    (first,) = (
        effect for effect in decide(seen(local, [pod("p0"), pod("p1")], hidden)).effects if effect.cluster == "w1"
    )
    assert isinstance(first, PatchWorkload)
    assert first.patch["metadata"]["finalizers"] == [WORKLOAD_FINALIZER]


def test_what_it_has_asked_to_stop_is_deleted_in_the_foreground() -> None:
    """It deactivated the Workload copy, and ended before it deleted anything."""
    local = workload(cluster="w1", check="Ready", evicted="Preempted", evictions=1)
    asked = copy_of(local, admitted=True, owned=True, spec={"active": False})
    for suspended in (False, True):
        decided = decide(
            snapshot(local, worker("w1", asked, job_copy_of(local, suspended=suspended)), last_worker="w1")
        )
        deletion = only(DeleteJob, decided.effects)
        assert (decided.row, deletion.cluster, deletion.propagation) == ("evicted: is to stop", "w1", "Foreground")


@pytest.mark.parametrize("pods_end", [{"phase": "Running"}, {"phase": "Failed"}], ids=["run", "have ended"])
def test_a_group_whose_workload_copy_it_has_deleted_is_offered_to_nobody_while_its_pods_run(pods_end: Json) -> None:
    """That went at once, without Kueue's finalizer, and Kueue will not let go of the pods (doctor names those)."""
    local, pods = group("p0", "p1", nominated=("w1", "w2"), evictions=1), [pod("p0"), pod("p1")]
    stranded = [copied(local, pod, pods_end, deleting=True, stale=True) for pod in pods]
    decided = decide(seen(local, pods, place("w1", None, *stranded), place("w2", None)))
    offered = those(CreateWorkload, decided.effects)
    assert bool(offered) == (pods_end["phase"] == "Failed")
