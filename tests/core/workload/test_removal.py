"""How what a run has left on a worker goes: stop, job copies in the foreground, wait, Workload copy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import FOREGROUND_FINALIZER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.core.building import EARLIER, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, STOP, CreateJob, DeleteJob, NothingSent, Unserved, Worker, decide, sole
from tests.core.wording import words

BEFORE = workload(cluster="w1", check="Ready")
DONE: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
REASONS: dict[str, Json | None] = {
    "rejected": workload(check="Rejected"),
    "no quota": workload(quota=False),
    "deleted": workload(deleting=True, cluster="w1"),
    "gone": None,
    "no check": workload(check=None),
}
STOPPING = ["stop on w1", "delete job on w1 unless it is stopped"]


def in_background() -> Json:
    return with_value(job_copy_of(BEFORE, deleting=True), ("metadata", "finalizers"), ["example.com/slow"])


STATES: dict[str, tuple[Worker, list[str]]] = {
    "running": (worker("w1", copy_of(BEFORE, admitted=True, owned=True), job_copy_of(BEFORE)), STOPPING),
    "asked": (worker("w1", copy_of(BEFORE, admitted=True, stopping=True), job_copy_of(BEFORE)), []),
    "stopped": (
        worker("w1", copy_of(BEFORE, evicted=True), job_copy_of(BEFORE, suspended=True, status={"active": 0})),
        ["delete job on w1"],
    ),
    "in the background": (worker("w1", copy_of(BEFORE, evicted=True), in_background()), ["delete job on w1"]),
    "in the foreground": (worker("w1", copy_of(BEFORE, evicted=True), job_copy_of(BEFORE, deleting=True)), []),
    "job only": (worker("w1", None, job_copy_of(BEFORE)), ["delete job on w1"]),
    "no job": (worker("w1", copy_of(BEFORE, admitted=True)), ["delete workload on w1"]),
    "goes": (worker("w1", copy_of(BEFORE, deleting=True)), []),
}


def checked(reason: str) -> dict[str, Any]:
    """The check that a snapshot has where a run goes for this reason."""
    return {"check": None} if reason in ("gone", "no check") else {}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_next_step(reason: str, state: str) -> None:
    there, expected = STATES[state]
    local = REASONS[reason]
    assert words(snapshot(local, there, job={}, **checked(reason))) == expected


def test_what_may_have_pods_is_deleted_in_the_foreground() -> None:
    """What has ended by itself goes in the background: some control planes of tests collect no garbage."""
    for status, propagation in (({"active": 1}, "Foreground"), ({"active": 0}, "Foreground"), (DONE, "Background")):
        there = worker("w1", None, job_copy_of(BEFORE, status=status))
        effect = sole(DeleteJob, decide(snapshot(workload(deleting=True), there, job={})).effects)
        assert effect.propagation == propagation


@pytest.mark.parametrize(
    ("ago", "quiet", "expected"),
    [
        (9, 0, []),
        (10, 0, ["delete job on w1"]),
        (9, 10, ["delete job on w1"]),
        (-30, 0, ["delete job on w1"]),
    ],
    ids=["in time", "over", "quiet", "a clock that is ahead"],
)
def test_a_request_to_stop_has_ten_seconds(ago: int, quiet: int, expected: list[str]) -> None:
    asked = copy_of(BEFORE, admitted=True, stopping=True)
    asked["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - timedelta(seconds=ago))
    there = worker("w1", asked, job_copy_of(BEFORE))
    seen = snapshot(workload(deleting=True), there, job={}, quiet_for=timedelta(seconds=quiet))
    assert words(seen) == expected
    if not expected:
        assert decide(seen).look_again == STOP.total_seconds() - ago


AGAIN = workload(nominated=("w1", "w2"), evictions=1)


@pytest.mark.parametrize("at", ["w1", "w2"])
@pytest.mark.parametrize("deleting", [False, True])
def test_nobody_is_offered_it_while_a_job_copy_of_an_earlier_attempt_is_seen(at: str, deleting: bool) -> None:
    """Without a Workload copy, and after a restart: nothing but the copy's own mark tells."""
    left = worker(at, None, job_copy_of(AGAIN, attempt=EARLIER, deleting=deleting))
    seen = snapshot(AGAIN, left, worker("w2" if at == "w1" else "w1"))
    assert decide(seen).row.startswith("earlier run: ")
    assert not [word for word in words(seen) if word.startswith(("create", "record", "admit", "nominate"))]


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
def test_a_pod_replacement_policy_holds_across_workers(policy: str) -> None:
    """`Failed`: no pod is made while another ends. On one worker the copy's controller sees to it, as it has the field;
    across workers nobody is offered the job until the copy with that pod has gone, whatever the policy."""
    local = with_value(job(), ("spec", "podReplacementPolicy"), policy)
    ending = job_copy_of(AGAIN, of=local, attempt=EARLIER, deleting=True, status={"active": 0, "terminating": 1})
    seen = snapshot(AGAIN, worker("w1", None, ending), worker("w2"), job=local)
    assert decide(seen).row.startswith("earlier run: ")
    assert not [word for word in words(seen) if word.startswith(("create", "record", "admit", "nominate"))]
    assert words(snapshot(AGAIN, worker("w1"), worker("w2"), job=local))[0].startswith("create workload")
    recorded = workload(cluster="w2", evictions=1)
    there = worker("w2", copy_of(recorded, admitted=True), creation=NothingSent())
    made = sole(CreateJob, decide(snapshot(recorded, worker("w1"), there, job=local)).effects)
    assert made.object["spec"]["podReplacementPolicy"] == policy


def test_what_waits_in_the_foreground_bears_that_finalizer() -> None:
    assert FOREGROUND_FINALIZER in job_copy_of(BEFORE, deleting=True)["metadata"]["finalizers"]


def test_a_copy_that_had_an_owner_is_stopped_while_its_jobs_are_hidden() -> None:
    """Deleted first, nothing would show there that the job of a Workload of that name runs on."""
    local = workload(cluster="w2", check="Ready")
    copy = copy_of(local, attempt=EARLIER, admitted=True, owned=True)
    left = worker("w1", copy, kind=Unserved(timedelta(minutes=5)), creation=NothingSent())
    beside = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local))
    steps = words(snapshot(local, left, beside))
    assert ("stop on w1" in steps, "delete workload on w1" in steps) == (True, False)


class TestCounting:
    """Beside a real Kueue a Job was evicted as its pods ended: deleted before they were counted, it ran again."""

    NOTED: ClassVar[Json] = {"active": 0, "uncountedTerminatedPods": {"succeeded": ["uid-of-pod"]}}

    def stopped(self, status: Json) -> Worker:
        return worker("w1", copy_of(BEFORE, evicted=True), job_copy_of(BEFORE, suspended=True, status=status))

    @pytest.mark.parametrize("reason", REASONS)
    def test_a_job_stays_while_its_controller_counts_the_pods_that_have_ended(self, reason: str) -> None:
        counting, check = self.stopped(self.NOTED), checked(reason)
        for seconds in (0, 4):
            seen = snapshot(REASONS[reason], counting, job={}, quiet_for=timedelta(seconds=seconds), **check)
            assert (words(seen), decide(seen).look_again) == ([], 10.0 - seconds)

    def test_it_is_not_waited_for_without_end(self) -> None:
        seen = snapshot(workload(quota=False), self.stopped(self.NOTED), job={}, quiet_for=STOP)
        assert "delete job on w1 unless it is stopped" in words(seen)

    def test_once_they_are_counted_its_end_is_told(self) -> None:
        local = workload(quota=False)
        seen = snapshot(local, self.stopped(DONE), job=job(status={"active": 1}))
        assert words(seen) == ["copy job status"]

    def test_what_is_counted_goes_at_once(self) -> None:
        empty: Json = {"active": 0, "uncountedTerminatedPods": {}}
        assert words(snapshot(workload(quota=False), self.stopped(empty), job={})) == ["delete job on w1"]
