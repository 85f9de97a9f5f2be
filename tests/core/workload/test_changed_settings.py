"""A setting that was changed takes nothing that runs: a kind that is not in the settings, a job that is not delegated.

Each change is crossed with the ways a job stops: it ends, it is evicted, it is deleted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import Json
from tests.core.building import ADAPTER, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    LEFTOVER_GRACE,
    NOW,
    ApplyStatus,
    Lost,
    Snapshot,
    Worker,
    decide,
    notes,
    sole,
    those,
)
from tests.core.wording import in_words, words

SETTING = 'add "jobset.x-k8s.io/jobset" to integrations.frameworks'
ADMITTED = 'The workload was admitted on "w1"'
TOLD = f"{ADMITTED} — new jobs like it are not dispatched: {SETTING}"
OTHERS = job(managed_by="example.com/other", suspended=False)
UNDELEGATED = 'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "example.com/other"'
COMPLETE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}

CHANGES: dict[str, Json] = {
    "no adapter": {"adapter": None, "missing_setting": SETTING, "job": {}},
    "draining": {
        "adapter": attrs.evolve(ADAPTER, draining=True),
        "missing_setting": SETTING,
        "job": job(suspended=False),
    },
    "not delegated": {"job": OTHERS},
}
CHANGED = pytest.mark.parametrize("change", CHANGES)


def already_saying(local: Json, change: str) -> Json:
    """The Workload, once its check says which setting is missing."""
    message = TOLD if change != "not delegated" else f"{ADMITTED} — new jobs like it are not dispatched: {UNDELEGATED}"
    local["status"]["admissionChecks"][0]["message"] = message
    return local


def seen(change: str, local: Json, *workers: Worker, **facts: Any) -> Snapshot:
    """What the caches show after a change. Jobs of a kind without adapter are not in any cache."""
    shown = [attrs.evolve(worker, jobs=()) for worker in workers] if change == "no adapter" else workers
    return snapshot(local, *shown, **(CHANGES[change] | facts))


@CHANGED
@pytest.mark.parametrize("check", ["Ready", "Pending"])
def test_what_runs_goes_on_and_its_check_names_the_setting(change: str, check: str) -> None:
    local = workload(check=check, cluster="w1", said=ADMITTED)
    there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={}))
    shown = seen(change, local, there)
    decided = decide(shown)
    written = [effect.object["status"]["admissionChecks"][0] for effect in those(ApplyStatus, decided.telling)]
    assert not {"retry", "rejected", "delete"} & {word.split(":")[0].split()[0] for word in in_words(shown, decided)}
    if check == "Ready" or change == "no adapter":
        assert [(entry["state"], entry["message"]) for entry in written] == [
            (check, already_saying(workload(), change)["status"]["admissionChecks"][0]["message"])
        ]
        quiet = seen(change, already_saying(local, change), there)
        assert not decide(quiet).telling


def test_the_message_goes_once_the_setting_is_back() -> None:
    local = already_saying(workload(check="Ready", cluster="w1"), "draining")
    there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={}))
    effect = sole(ApplyStatus, decide(snapshot(local, there, job=job(suspended=False))).telling)
    assert effect.object["status"]["admissionChecks"][0]["message"] == ADMITTED


@CHANGED
def test_it_ends(change: str) -> None:
    """The end is synced; where the job cannot be seen, in the words of the Workload copy."""
    local = already_saying(workload(check="Ready", cluster="w1"), change)
    ended = worker(
        "w1", copy_of(local, admitted=True, owned=True, finished="Succeeded"), job_copy_of(local, status=COMPLETE)
    )
    steps = words(seen(change, local, ended))
    assert steps == (["finish Succeeded"] if change == "no adapter" else ["copy job status"])
    over = workload(check="Ready", cluster="w1", finished="Succeeded")
    assert words(seen(change, over, attrs.evolve(ended, jobs=()))) == ["delete workload on w1"]


@CHANGED
def test_the_manager_evicts_it(change: str) -> None:
    """The worker's Kueue is told to stop it; it is not rejected, whatever it may say afterwards."""
    before = workload(check="Ready", cluster="w1")
    local = workload(check="Pending", evicted="Preempted", evictions=1)
    there = worker("w1", copy_of(before, admitted=True, owned=True), job_copy_of(before))
    shown = seen(change, local, there)
    asked = ["stop on w1", "delete job on w1 unless it is stopped"]
    assert words(shown) == (asked[:1] if change == "no adapter" else asked)


@CHANGED
def test_the_worker_evicts_it(change: str) -> None:
    local = already_saying(workload(check="Ready", cluster="w1"), change)
    there = worker("w1", copy_of(local, admitted=True, owned=True, evicted=True), job_copy_of(local))
    shown = seen(change, local, there)
    assert any(word.startswith("retry: Workload evicted on worker cluster") for word in words(shown))


@CHANGED
def test_it_is_deleted(change: str) -> None:
    local = workload(check="Ready", cluster="w1", deleting=True)
    there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local))
    shown = seen(change, local, there)
    asked = ["stop on w1", "delete job on w1 unless it is stopped"]
    assert words(shown) == (asked[:1] if change == "no adapter" else asked)


@pytest.mark.parametrize("change", ["draining", "not delegated"])
@pytest.mark.parametrize("check", ["Pending", "Rejected"])
def test_an_eviction_is_brought_to_its_end_before_it_is_rejected(change: str, check: str) -> None:
    """The manager's job still shows the pods of the copy, which is gone: Kueue would keep the quota for ever."""
    local = workload(check=check, evicted="Preempted")
    shows = {"active": 1, "ready": 1}
    mine = job(suspended=True, status=shows)
    theirs = job(suspended=True, status=shows, managed_by="example.com/other")
    shown = seen(change, local, worker("w1"), job=theirs if change == "not delegated" else mine)
    steps = words(shown)
    assert steps
    assert not [word for word in steps if word.startswith("rejected")], steps
    assert any("status" in word for word in steps), steps


@CHANGED
def test_its_worker_is_lost(change: str) -> None:
    local = already_saying(workload(check="Ready", cluster="w1"), change)
    shown = seen(change, local, worker("w1", reach=Lost(NOW - timedelta(minutes=10))))
    assert (decide(shown).effects, decide(shown).look_again) == ((), 300)


@CHANGED
def test_its_check_is_taken_off_its_queue(change: str) -> None:
    local = workload(check=None, cluster="w1")
    there = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={}))
    shown = seen(change, local, there, check=None)
    assert not [word for word in words(shown) if word.startswith("delete")]


def test_without_its_check_it_is_not_finished_before_its_job_is_seen() -> None:
    """A Workload that is Finished has no more copies: what they say of the job's end would be lost."""
    local = workload(check=None, cluster="w1")
    ended = copy_of(local, admitted=True, owned=True, finished="Succeeded")
    there = worker("w1", ended, job_copy_of(local, status={"succeeded": 1}))
    shown = snapshot(local, there, check=None, job={})
    assert (decide(shown).row, words(shown)) == ("check taken off: has ended: cannot be shown", [])


@CHANGED
def test_what_no_worker_has_is_rejected_with_an_event_that_names_the_setting(change: str) -> None:
    """Its copies were offered, or it waits for quota: none of it runs."""
    offered = workload(nominated=("w1",))
    waiting = workload(quota=False)
    for local, there in ((offered, worker("w1", copy_of(offered))), (waiting, worker("w1"))):
        shown = seen(change, local, there)
        decided = decide(shown)
        assert in_words(shown, decided)[0].startswith("rejected: ")
        (note,) = notes(decided)
        assert ("spec.managedBy" if change == "not delegated" else SETTING) in note


def test_a_job_that_was_never_created_is_retried_not_waited_for() -> None:
    """It was recorded, and its kind's setting went before the job was created: nobody can create it now."""
    local = already_saying(workload(check="Pending", cluster="w1"), "no adapter")
    there = worker("w1", copy_of(local, admitted=True))
    shown = seen("no adapter", local, there)
    assert (decide(shown).effects, decide(shown).look_again) == ((), LEFTOVER_GRACE.total_seconds())
    shown = seen("no adapter", local, there, quiet_for=LEFTOVER_GRACE)
    assert words(shown) == [f"retry: Its job cannot be created: {SETTING}"]


def test_the_check_of_a_kind_without_adapter_never_becomes_ready_by_us() -> None:
    """Of pods, a Ready check would start them on the manager as well; nobody here knows the kind."""
    local = already_saying(workload(check="Pending", cluster="w1"), "no adapter")
    there = worker("w1", copy_of(local, admitted=True, owned=True))
    assert decide(seen("no adapter", local, there)).effects == ()


@CHANGED
def test_an_inactive_one_is_not_rejected_again(change: str) -> None:
    """Kueue takes a verdict back as it deactivates; one written after that would keep it from ever running again."""
    local = workload(quota=False, evicted="Deactivated", spec={"active": False})
    assert decide(seen(change, local, worker("w1"))).effects == ()


@CHANGED
def test_an_evicted_one_is_rejected_once_it_has_quota_again(change: str) -> None:
    """Kueue follows no verdict while it is evicted, and gives no quota to one that has a verdict."""
    shown = seen(change, workload(quota=False, evicted="AdmissionCheck"), worker("w1"))
    assert decide(shown).effects == ()
    shown = seen(change, workload(), worker("w1"))
    assert words(shown)[0].startswith("rejected: ")
