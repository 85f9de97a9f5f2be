"""What becomes of the Jobs, and what is seen of it when something runs twice: pure."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json
from tests.operators.load.lives import JOB_LABEL, Lives, ran_twice
from tests.operators.load.plan import drawn


def test_the_same_seed_draws_the_same_jobs_of_every_sort() -> None:
    plans = drawn(1, 300)
    assert plans == drawn(1, 300)
    assert plans != drawn(2, 300)
    assert {plan.upset for plan in plans} == {"", "worker", "manager", "node"}
    assert {plan.doomed for plan in plans} == {True, False}
    assert {sum(plan.failures) for plan in plans} == {0, 1, 2}
    assert {plan.counts for plan in plans if plan.doomed} == {None}


def _pod(own: str, phase: str, *, attempt: str = "x", index: int = 0, **metadata: Any) -> Json:
    owner = {"uid": attempt, "name": "a", "kind": "Job", "controller": True}
    labels = {JOB_LABEL: "a", "batch.kubernetes.io/job-completion-index": str(index)}
    made = {"name": own, "uid": own, "labels": labels, "ownerReferences": [owner], **metadata}
    return {"metadata": made, "status": {"phase": phase}}


def _seen(*pods: Json) -> Lives:
    lives = Lives()
    for time, pod in enumerate(pods):
        lives.see("worker1", pod, float(time))
    return lives


def test_a_copy_that_its_worker_starts_once_more_is_another_attempt() -> None:
    """An evicted Workload may be admitted again before we have heard of it."""
    lives = Lives()
    lives.see("worker1", _pod("1", "Failed"), 0.0)
    lives.see("worker1", _pod("2", "Succeeded"), 1.0, lambda _: 1)
    lives.see("worker1", _pod("1", "Failed"), 2.0, lambda _: 1)
    assert lives.attempts["a"] == ["x 0", "x 1"]
    assert lives.counts("a") == (1, 0)


def test_two_attempts_at_the_same_time_are_seen() -> None:
    second = _pod("2", "Running", attempt="y")
    assert ran_twice(_seen(_pod("1", "Running"), second).of["a"]) == ["a ran on worker1 and worker1 at the same time"]
    going = _pod("1", "Running", deletionTimestamp="2026-01-01T00:00:00Z")
    assert ran_twice(_seen(_pod("1", "Running"), going, second).of["a"]) == []


def test_an_index_that_runs_or_succeeds_twice_is_seen() -> None:
    again = _pod("2", "Running")
    assert ran_twice(_seen(_pod("1", "Running"), again).of["a"]) == ["a had two pods of index 0 at the same time"]
    assert ran_twice(_seen(_pod("1", "Succeeded"), _pod("2", "Succeeded")).of["a"]) == ["index 0 of a succeeded twice"]
    assert ran_twice(_seen(_pod("1", "Running"), _pod("2", "Running", index=1)).of["a"]) == []
