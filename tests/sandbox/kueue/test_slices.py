"""Slices of elastic jobs, as the small Kueue handles them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.eviction import with_condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.kueue.deciding_jobs import JobSituation, decide_job
from multikueue.sandbox.kueue.effects import NOTHING, ApplyStatus, Create, Replace, Step
from multikueue.sandbox.kueue.scheduling.podsets import injections
from multikueue.sandbox.kueue.slices import announced, current_slice, placed, replaced_by, replaced_key
from tests.sandbox.kueue.objects import job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADMITTED = ("QuotaReserved", "Admitted", "PodsReady")


def running(parallelism: int, generation: int = 1) -> Json:
    """An elastic job that Kueue has started."""
    annotations = {"kueue.x-k8s.io/elastic-job": "true"}
    running_job = job(annotations=annotations, suspend=False, parallelism=parallelism, completions=9)
    running_job["metadata"].update(uid="u", generation=generation)
    running_job["spec"]["template"].setdefault("metadata", {})["annotations"] = {"kueue.x-k8s.io/workload": "wl"}
    return {**running_job, "status": {"active": parallelism, "ready": parallelism}}


def slice_of(job: Json, *kinds: str, replaces: Json | None = None, **status: Any) -> Json:
    """The Workload for a job of this size."""
    made = build_workload(BATCH_JOB, job, 0, replaces=replaces)
    listed = [{"type": kind, "status": "True", "reason": "Started", "message": ""} for kind in kinds]
    return {**made, "status": {"conditions": listed, "admission": {"clusterQueue": "cq"}, **status}}


def evicted(workload: Json) -> Json:
    return with_condition(workload, "Evicted", True, "Preempted", "", NOW)


def without_quota(workload: Json) -> Json:
    return with_condition(workload, "QuotaReserved", False, "Pending", "", NOW)


def decide(job: Json, workload: Json) -> Any:
    decision = decide_job(JobSituation(BATCH_JOB, job, workload, NOW))
    return decision.request if isinstance(decision, Step) else decision


def test_a_job_that_grows_gets_a_second_workload_and_runs_on() -> None:
    """The name tells its sizes apart: it holds the job's generation."""
    small = slice_of(running(1), *ADMITTED)
    grown = running(3, generation=2)
    made = decide(grown, small)
    assert isinstance(made, Create)
    assert dig(made.object, "spec", "podSets")[0]["count"] == 3
    assert made.object["metadata"]["name"] != small["metadata"]["name"]
    assert replaced_key(made.object) == ObjectKey.of(small)
    assert decide(grown, slice_of(grown, replaces=small)) is NOTHING, "it is not stopped until that is admitted"


def test_a_job_that_grows_between_admission_and_start_gets_one_too() -> None:
    """Its quota is not given back for that."""
    suspended = running(3, generation=2)
    suspended["spec"]["suspend"] = True
    assert isinstance(decide(suspended, slice_of(running(1), *ADMITTED)), Create)


def test_a_job_that_shrinks_keeps_its_workload() -> None:
    changed = decide(running(1, generation=2), slice_of(running(3), *ADMITTED))
    assert isinstance(changed, Replace)
    assert dig(changed.object, "spec", "podSets")[0]["count"] == 1


def test_a_suspended_job_that_shrinks_keeps_a_slice_that_is_not_admitted_yet() -> None:
    """Kueue never deletes it, so what is recorded of it stays known."""
    small, big = slice_of(running(1), *ADMITTED), running(3, generation=2)
    waiting = slice_of(big, "QuotaReserved", replaces=small)
    suspended = running(2, generation=3)
    suspended["spec"]["suspend"] = True
    changed = decide(suspended, waiting)
    assert isinstance(changed, Replace)
    assert dig(changed.object, "spec", "podSets")[0]["count"] == 2


@pytest.mark.parametrize("lost", [evicted, without_quota], ids=["evicted", "without quota"])
def test_a_slice_that_is_to_be_replaced_does_not_come_back(lost: Callable[[Json], Json]) -> None:
    """As Kueue's `EnsureWorkloadSlices`: it would hold its quota for ever, since the job follows the newer one."""
    small = slice_of(running(1), *ADMITTED)
    big = slice_of(running(3, generation=2), replaces=small)
    situation = JobSituation(BATCH_JOB, running(3, generation=2), big, NOW)
    assert decide_job(attrs.evolve(situation, replaced=small)) is NOTHING
    decision = decide_job(attrs.evolve(situation, replaced=lost(small)))
    assert isinstance(decision, Step)
    assert isinstance(decision.request, ApplyStatus)
    assert (decision.request.object["metadata"]["name"]) == small["metadata"]["name"]
    assert (condition(decision.request.object, "Finished") or {})["reason"] == "OutOfSync"


def test_an_evicted_job_that_changes_its_size_keeps_its_workload_or_gets_a_slice() -> None:
    """It is never deleted: a job whose status says that it is active would get no new one."""
    changed = decide(running(3, generation=2), without_quota(evicted(slice_of(running(1), *ADMITTED))))
    assert isinstance(changed, Replace)
    assert dig(changed.object, "spec", "podSets")[0]["count"] == 3
    assert isinstance(decide(running(3, generation=2), evicted(slice_of(running(1), *ADMITTED))), Create)


def test_a_job_that_has_grown_starts_again_after_an_eviction() -> None:
    """The pod sets of its Workload name the one before: they were made of templates that ran. See Kueue #12993."""
    grown = running(3, generation=2)
    made = slice_of(grown, *ADMITTED, replaces=slice_of(running(1), *ADMITTED))
    made["status"]["admission"]["podSetAssignments"] = [{"name": "main", "flavors": {}, "count": 3}]
    grown["spec"]["suspend"] = True
    situation = JobSituation(BATCH_JOB, grown, made, NOW, injections=lambda: injections(made, {}))
    decision = decide_job(situation)
    assert isinstance(decision, Step)
    assert isinstance(decision.request, Replace)
    noted = dig(decision.request.object, "spec", "template", "metadata", "annotations")
    assert noted == {"kueue.x-k8s.io/workload": made["metadata"]["name"]}


def test_the_slice_that_nothing_replaces_is_the_jobs() -> None:
    """Until the old one is finished there are two."""
    small = slice_of(running(1))
    big = slice_of(running(3, generation=2), replaces=small)
    assert current_slice([small, big]) is big
    assert current_slice([big, small]) is big
    assert current_slice([]) is None


def test_a_slice_goes_to_the_worker_of_the_one_it_replaces() -> None:
    """The job runs there: nobody else may get the bigger one."""
    small = slice_of(running(1), clusterName="worker1")
    big = slice_of(running(3, generation=2), replaces=small)
    nominated = announced(big, small)
    assert nominated is not None
    assert dig(nominated, "status", "nominatedClusterNames") == ["worker1"]
    assert announced(nominated, small) is None
    there = placed(nominated, small)
    assert (dig(there, "status", "clusterName"), dig(there, "status", "nominatedClusterNames")) == ("worker1", None)
    assert placed(big, slice_of(running(1))) == big, "on a worker there is no such thing"
    over = condition(replaced_by(small, big, NOW), "Finished") or {}
    assert over["reason"] == "WorkloadSliceReplaced"
