"""The manager's Kueue holds a job for what its copy said of it: until its user changes it, and no longer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import AVAILABLE, SafeAdapter
from multikueue.core.model.adapter import OnHold
from multikueue.core.model.conditions import condition as condition_of
from multikueue.core.model.earlier_run_facts import WAITS
from multikueue.core.model.names import Json
from tests.core.building import condition, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import ApplyStatus, PatchJobStatus, Snapshot, Worker, decide, sole
from tests.core.wording import words

RAY_JOB = next(kind for kind in AVAILABLE if kind.resource.gvk.kind == "RayJob")
OWNER = ("ray.io/v1", "RayJob")


def ray_job(word: str, *, generation: int, suspended: bool = True) -> Json:
    status = {"jobDeploymentStatus": word, "message": "too long", "observedGeneration": 2}
    made = job(suspended=suspended, generation=generation, status=status)
    return {**made, "apiVersion": "ray.io/v1", "kind": "RayJob"}


def on_hold(**facts: Any) -> Json:
    """A Workload as Kueue puts it on hold: it leaves the worker's name and the check as they were."""
    local = workload(quota=False, cluster="w1", check="Ready", owner=OWNER, **facts)
    local["status"]["conditions"] = [condition("QuotaReserved", "OnHold", status=False)]
    return local


def seen(local: Json, of: Json, *workers: Worker, quiet: float = 60) -> Snapshot:
    shown = snapshot(local, *(workers or (worker("w1"),)), job=of, adapter=RAY_JOB)
    return attrs.evolve(shown, quiet_for=timedelta(seconds=quiet))


@pytest.mark.parametrize("suspended", [True, False])
def test_words_of_the_spec_as_it_is_stay(suspended: bool) -> None:
    plan = decide(seen(on_hold(), ray_job("ValidationFailed", generation=2, suspended=suspended)))
    assert (plan.row, plan.effects) == ("no quota: shown as it is", ())


def test_a_change_of_the_spec_takes_them_back() -> None:
    patch = sole(PatchJobStatus, decide(seen(on_hold(), ray_job("ValidationFailed", generation=3))).effects)
    after = {**ray_job("", generation=3), "status": patch.patch["status"]}
    assert SafeAdapter(RAY_JOB).on_hold_here(after) is OnHold.NO


def test_then_it_is_queued_again_and_has_no_worker_any_more() -> None:
    """Else Kueue left it on hold; and with its worker's name it was admitted there, where nothing of it is."""
    write = sole(ApplyStatus, decide(seen(on_hold(), ray_job("Suspended", generation=3))).effects)
    status = write.object["status"]
    reserved = condition_of(write.object, "QuotaReserved") or {}
    assert (reserved["status"], reserved["reason"]) == ("False", "Pending")
    assert "clusterName" not in status
    assert [entry["state"] for entry in status["admissionChecks"]] == ["Pending"]


def test_not_before_both_are_up_to_date() -> None:
    plan = decide(seen(on_hold(), ray_job("Suspended", generation=3), quiet=2))
    assert (plan.effects, plan.look_again) == ((), 3.0)


def test_one_decision_writes_the_workload_once() -> None:
    """What else is to be noted on it goes first; it is queued again by the next decision."""
    local = on_hold()
    local["status"]["conditions"].append(condition(WAITS, "EarlierRuns"))
    plan = decide(seen(local, ray_job("Suspended", generation=3)))
    written = sole(ApplyStatus, plan.effects).object["status"]
    assert (plan.row, "conditions" in written, plan.look_again) == ("no quota: on hold", False, 5.0)


def test_others_that_are_on_hold_are_left_to_their_kueue() -> None:
    local = on_hold()
    local["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    assert decide(snapshot(local, worker("w1"), quiet_for=timedelta(minutes=1))).effects == ()


@pytest.mark.parametrize("check", ["Pending", "Ready"])
def test_its_copies_stay_until_its_kueue_has_put_it_on_hold(check: str) -> None:
    """A job that is suspended, and shows such words, is not taken for one that its Kueue stops."""
    local = workload(cluster="w1", check=check, owner=OWNER)
    there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={}))
    there = attrs.evolve(there, jobs=tuple(attrs.evolve(job, resource=RAY_JOB.resource) for job in there.jobs))
    shown = seen(local, ray_job("ValidationFailed", generation=2), there)
    assert decide(shown).row == "recorded: follow"
    assert not any(word.startswith(("stop", "delete")) for word in words(shown))
