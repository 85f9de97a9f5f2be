"""What the end of a load is held against: each of these faults would be told.

What becomes of the Jobs, and what is seen of it when something runs twice: pure.
"""

from __future__ import annotations

from typing import Any, cast

import anyio.abc
import attrs
import pytest

from multikueue.core.model.names import Json
from multikueue.kube import KubeClient
from tests.controlplane.interface import Cluster
from tests.operators.load.lives import JOB_LABEL, Lives, ran_twice
from tests.operators.load.plan import PODS, Plan, drawn
from tests.operators.load.world import LoadedCluster, World

PLAN = Plan(name="a", seconds=1.0, failures=(1, 0, 0, 0))
STATUS: Json = {"succeeded": PODS, "failed": 1, "conditions": [{"type": "Complete", "status": "True"}]}


def _cluster() -> LoadedCluster:
    return LoadedCluster(cast(Cluster, None), cast(KubeClient, None))


def _job(own: str, status: Json) -> Json:
    return {"kind": "Job", "metadata": {"name": "a", "namespace": "default", "uid": own}, "status": status}


def _world(shown: Json = STATUS, *, attempts: tuple[str, ...] = ("x",), failed: int = 1, plan: Plan = PLAN) -> World:
    """A Job of four pods of which the first fails, as it is when all is over."""
    world = World({"a": plan}, _cluster(), {"worker1": _cluster()}, cast(anyio.abc.TaskGroup, None))
    world.manager.see(_job("home", shown))
    for attempt in attempts:
        world.workers["worker1"].see(_job(attempt, STATUS))
        ends = ["Failed"] * failed + ["Succeeded"] * PODS
        for number, end in enumerate(ends):
            owner = {"uid": attempt, "name": "a", "kind": "Job", "controller": True}
            index = str(max(0, number - failed))
            labels = {JOB_LABEL: "a", "batch.kubernetes.io/job-completion-index": index}
            metadata = {"uid": f"{attempt}{number}", "labels": labels, "ownerReferences": [owner]}
            pod = {"metadata": metadata, "status": {"phase": end}}
            world.lives.see("worker1", pod, float(number))
    return world


async def test_nothing_is_told_where_all_is_right() -> None:
    assert _world().wrong() == []


async def test_a_start_may_be_the_first_one_where_the_worker_has_started_the_copy_once_more() -> None:
    """The copy had ended before the manager's Job was stopped, whose start the API server keeps until then."""
    first = {**STATUS, "startTime": "2026-01-01T00:00:00Z"}
    evicted = attrs.evolve(PLAN, upset="worker")
    assert _world(first, attempts=("w", "x"), plan=evicted).wrong() == []
    (fault,) = _world(first).wrong()
    assert "its copy's last status" in fault


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ({"shown": {**STATUS, "failed": 0}}, "have succeeded and failed, not"),
        ({"shown": {**STATUS, "active": 1}}, "its copy's last status"),
        ({"shown": {**STATUS, "conditions": [{"type": "Failed", "status": "True"}]}}, "it ended otherwise"),
        ({"attempts": ("x", "y")}, "it began 2 times"),
        ({"failed": 2}, "pods did so"),
        ({"attempts": ()}, "it never had a pod"),
    ],
)
async def test_what_is_wrong_is_told_with_its_plan(fault: dict[str, Any], what: str) -> None:
    lines = _world(**fault).wrong()
    assert any(what in line for line in lines), lines
    assert all(str(PLAN) in line for line in lines)


async def test_a_pod_that_the_manager_had_is_told() -> None:
    """Its own Job controller must leave the Job alone."""
    world = _world()
    world.lives.of["a"][0].cluster = "manager"
    assert any("manager" in fault for fault in world.wrong())


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
