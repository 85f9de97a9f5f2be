"""What becomes of a Job, turn by turn, and what is drawn for it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.sandbox.jobs.deciding import RunnerOptions, decide_run, fate, parse_duration
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kinds.course import Fate, Run, Turn
from tests.sandbox.kueue.objects import condition, job

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STAMP = "2026-01-01T12:00:00Z"


def stored(status: Json | None = None, **spec: Any) -> Json:
    batch_job = job(**{"queue": None, "parallelism": 1, "completions": 1, **spec})
    return {**batch_job, "status": status or {}}


def turn(job: Json, run: Run | None = None, *, time: float = 0, startup: float = 0, fails: bool = False) -> Turn:
    before = copy.deepcopy(job)
    result = decide_run(BATCH_JOB, job, run, time=time, now=NOW, startup=startup, draw=lambda: Fate(10, fails))
    assert job == before, "deciding changes nothing"
    return result


def run(*, ready_at: float = 0, ends_at: float = 10, fails: bool = False) -> Run:
    return Run(Fate(10, fails), ready_at, ends_at)


def after(job: Json, result: Turn) -> Json:
    assert result.status is not None
    return {**job, "status": result.status}


def test_a_job_starts_and_its_pods_are_ready_at_once() -> None:
    result = turn(stored())
    assert result.status == {
        "active": 1,
        "ready": 1,
        "startTime": STAMP,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert (result.run, result.at) == (run(), 10)


def test_pods_take_time_to_start() -> None:
    started = turn(stored(), startup=2)
    assert (started.status or {})["ready"] == 0
    assert started.at == 2
    ready = turn(after(stored(), started), started.run, time=2)
    assert (ready.status or {})["ready"] == 1
    assert ready.at == 10


def test_a_running_job_is_not_written_again() -> None:
    started = turn(stored())
    assert turn(after(stored(), started), started.run, time=5) == Turn(run=started.run, at=10)


def test_a_suspended_job_says_so_and_shows_no_start() -> None:
    started = after(stored(), turn(stored()))
    suspended = {**started, "spec": {**started["spec"], "suspend": True}}
    result = turn(suspended, run(), time=5)
    stopped = after(suspended, result)
    assert condition(stopped, "Suspended") == ("True", "JobSuspended", "Job suspended")
    assert "active" not in stopped["status"]
    assert "startTime" not in stopped["status"]
    assert (result.run, result.at, result.event) == (None, None, ("Suspended", "Job suspended"))
    assert turn(stopped) == Turn()


def test_a_resumed_job_starts_anew() -> None:
    suspended = {"conditions": [{"type": "Suspended", "status": "True"}], "ready": 0}
    result = turn(stored(suspended), time=7)
    resumed = after(stored(), result)
    assert condition(resumed, "Suspended") == ("False", "JobResumed", "Job resumed")
    assert resumed["status"]["startTime"] == STAMP
    assert (result.at, result.event) == (17, ("Resumed", "Job resumed"))


def test_a_job_completes_with_the_conditions_of_kubernetes() -> None:
    started = after(stored(), turn(stored()))
    result = turn(started, run(), time=10)
    done = after(started, result)
    for kind in ("SuccessCriteriaMet", "Complete"):
        expected = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
        assert condition(done, kind) == expected
    status = done["status"]
    assert (status["succeeded"], status["completionTime"], status["ready"], "active" in status) == (1, STAMP, 0, False)
    assert turn(done) == Turn()


def test_a_job_fails_with_the_conditions_of_kubernetes() -> None:
    result = turn(stored({"active": 1}, backoffLimit=2), run(fails=True), time=10)
    done = after(stored(), result)
    for kind in ("FailureTarget", "Failed"):
        expected = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        assert condition(done, kind) == expected
    assert (done["status"]["failed"], "completionTime" in done["status"]) == (3, False)
    assert turn(done) == Turn()


def test_more_completions_than_parallelism_take_several_rounds() -> None:
    state = stored(parallelism=2, completions=5)
    its, time, seen = None, 0.0, []
    for _ in range(4):
        result = turn(state, its, time=time)
        state, its, time = after(state, result), result.run, result.at or 0
        seen.append((state["status"].get("active"), state["status"].get("succeeded", 0)))
    assert seen == [(2, 0), (2, 2), (1, 4), (None, 5)]
    assert condition(state, "Complete") is not None


def test_a_work_queue_is_done_when_its_pods_are() -> None:
    queued = stored(parallelism=3, completions=None)
    done = after(queued, turn(queued, run(), time=10))
    assert done["status"]["succeeded"] == 3


def test_a_job_with_nothing_to_do_is_done() -> None:
    assert turn(stored(completions=0)).event == ("Completed", "Job completed")


@pytest.mark.parametrize(
    ("managed_by", "runs"),
    [(None, True), ("kubernetes.io/job-controller", True), ("kueue.x-k8s.io/multikueue", False)],
)
def test_jobs_of_other_controllers_are_left_alone(managed_by: str | None, runs: bool) -> None:
    delegation: dict[str, Any] = {"managedBy": managed_by} if managed_by else {}
    delegated = stored(**delegation)
    assert (turn(delegated).status is not None) is runs


def test_a_queued_job_waits_until_kueue_has_started_it() -> None:
    """Between its creation and Kueue's first look at it, it is not suspended."""
    queued = stored(queue="lq")
    assert turn(queued) == Turn()
    queued["spec"]["template"]["metadata"] = {"annotations": {"kueue.x-k8s.io/workload": "job-j1-x"}}
    assert turn(queued).status is not None


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    deleted = stored()
    deleted["metadata"]["deletionTimestamp"] = STAMP
    assert turn(deleted) == Turn()


def test_annotations_go_before_what_is_drawn() -> None:
    noted = {"sandbox.multikueue.dev/duration": "2s", "sandbox.multikueue.dev/outcome": "fail"}
    assert fate(job(annotations=noted), RunnerOptions(), 0, 0) == Fate(2, True)
    noted["sandbox.multikueue.dev/outcome"] = "complete"
    assert fate(job(annotations=noted), RunnerOptions(failure_rate=1), 0, 0) == Fate(2, False)


def test_the_dice_are_the_same_for_the_same_seed_job_and_start() -> None:
    """A run can be repeated, whatever order things happen in."""
    options = RunnerOptions(failure_rate=0.5)
    assert fate(job("a"), options, 1, 0) == fate(job("a"), options, 1, 0)
    drawn = {fate(job(name), options, seed, start).duration for name in "ab" for seed in (1, 2) for start in (0, 1)}
    assert len(drawn) > 4


@given(st.integers(0, 100), st.integers(0, 5))
def test_durations_stay_within_their_bounds(seed: int, start: int) -> None:
    options = RunnerOptions(mean=5, minimum=2, maximum=9)
    assert 2 <= fate(job(), options, seed, start).duration <= 9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2s", 2),
        ("500ms", 0.5),
        ("1m30s", 90),
        ("1h", 3600),
        ("1.5s", 1.5),
        ("3", 3),
        ("", None),
        ("soon", None),
        ("2 s", None),
    ],
)
def test_durations_are_written_as_in_go(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_a_deadline_settles_the_end_and_the_pods_that_end_hold_it_up() -> None:
    """As kube-controller-manager does it: the words are its own."""
    words = ("True", "DeadlineExceeded", "Job was active longer than specified deadline")
    running = after(stored(parallelism=2, completions=2, activeDeadlineSeconds=60), turn(stored()))
    running["status"].update(active=2, ready=2, startTime="2026-01-01T11:59:30Z")
    assert turn(running, run(ends_at=99), time=5).at == 35
    running["status"]["startTime"] = "2026-01-01T11:59:00Z"
    late = after(running, turn(running, run(ends_at=99), time=5))
    assert (condition(late, "FailureTarget"), condition(late, "Failed")) == (words, None)
    assert ("active" in late["status"], late["status"]["failed"]) == (False, 2)
    result = turn(late)
    over = after(late, result)
    assert (condition(over, "Failed"), over["status"]["failed"], result.event) == (words, 2, words[1:])


@pytest.mark.parametrize(("kind", "end"), [("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")])
def test_an_end_that_somebody_else_settles_comes_about(kind: str, end: str) -> None:
    running = after(stored(), turn(stored()))
    running["status"]["conditions"] = [{"type": kind, "status": "True", "reason": "Mine", "message": "as I say"}]
    stopped = after(running, turn(running, run()))
    assert "active" not in stopped["status"]
    over = after(stopped, turn(stopped))
    assert condition(over, end) == ("True", "Mine", "as I say")
    assert ("completionTime" in over["status"]) is (end == "Complete")


@pytest.mark.parametrize(
    ("completions", "succeeded", "indexes"), [(1, None, "0"), (2, None, "0,1"), (5, None, "0-4"), (5, 2, "0-3")]
)
def test_an_indexed_job_says_which_indexes_are_complete(completions: int, succeeded: int | None, indexes: str) -> None:
    parallelism = completions if succeeded is None else 2
    indexed = stored({"succeeded": succeeded or 0}, parallelism=parallelism, completions=completions)
    indexed["spec"]["completionMode"] = "Indexed"
    assert (turn(indexed, run(), time=10).status or {})["completedIndexes"] == indexes


@pytest.mark.parametrize(
    ("most", "reason"), [(None, "FailedIndexes"), (3, "FailedIndexes"), (2, "MaxFailedIndexesExceeded")]
)
def test_where_each_index_has_a_limit_all_of_them_fail(most: int | None, reason: str) -> None:
    """`backoffLimit` is 2^31-1 then by default: one more is no number of a status."""
    indexed = stored({"active": 3}, parallelism=3, completions=3, backoffLimit=2**31 - 1, backoffLimitPerIndex=1)
    indexed["spec"].update({"completionMode": "Indexed"} | ({} if most is None else {"maxFailedIndexes": most}))
    failed = after(indexed, turn(indexed, run(fails=True), time=10))
    assert (failed["status"]["failed"], failed["status"]["failedIndexes"]) == (6, "0-2")
    assert (condition(failed, "Failed") or ("", ""))[1] == reason
