"""What a played kubelet makes of a pod next."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.playing.pods import KILLED, NODE, Fate, Step, ended, next_step, running

_TIME = "2026-01-01T00:00:00Z"


def _pod(phase: str = "Pending", *, of_job: bool = True, node: str = NODE, **spec: Any) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": "a"} if of_job else {}
    containers = [{"name": "main", "image": "x"}]
    return {
        "metadata": {"name": "a-0", "labels": labels},
        "spec": {"nodeName": node, "containers": containers, **spec},
        "status": {"phase": phase},
    }


def test_a_pod_gets_a_node_runs_and_ends_as_its_job_says() -> None:
    fate = Fate(seconds=5.0, exit_code=1)
    assert next_step(_pod(node=""), fate, now=1.0, ran_since=None) == Step("bind", 1.0)
    assert next_step(_pod(), fate, now=1.0, ran_since=None) == Step("run", 1.0)
    assert next_step(_pod("Running"), fate, now=3.0, ran_since=1.0) == Step("end", 6.0, 1)
    assert next_step(_pod("Failed"), fate, now=3.0, ran_since=1.0) is None


def test_a_gated_pod_waits_and_one_of_no_job_runs_on() -> None:
    gated = _pod(node="", schedulingGates=[{"name": "a"}])
    assert next_step(gated, Fate(), now=1.0, ran_since=None) is None
    assert next_step(_pod("Running", of_job=False), Fate(), now=9.0, ran_since=1.0) is None


@pytest.mark.parametrize(("operator", "over"), [("tfjob-controller", True), ("mpi-operator", False)])
def test_pods_of_a_training_job_end_and_workers_of_an_mpijob_run_on(operator: str, over: bool) -> None:
    pod = _pod("Running", of_job=False)
    pod["metadata"]["labels"] = {"training.kubeflow.org/operator-name": operator}
    step = next_step(pod, Fate(2.0), now=1.0, ran_since=1.0)
    assert step == (Step("end", 3.0) if over else None)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded"])
def test_a_deleted_pod_is_removed_and_a_killed_one_fails(phase: str) -> None:
    pod = _pod(phase)
    pod["metadata"]["deletionTimestamp"] = _TIME
    assert next_step(pod, Fate(), now=1.0, ran_since=None) == Step("remove", 1.0, KILLED)
    killed = next_step(_pod("Running", of_job=False), Fate(), now=2.0, ran_since=1.0, killed=True)
    assert killed == Step("end", 2.0, KILLED)


def test_the_statuses_say_what_controllers_look_for() -> None:
    pod = _pod(initContainers=[{"name": "wait", "image": "x"}])
    runs, over = running(pod, _TIME, "10.0.0.7"), ended(pod, _TIME, 3)
    assert runs["phase"] == "Running"
    assert runs["podIP"] == "10.0.0.7"
    assert [one["type"] for one in runs["conditions"] if one["status"] == "True"][-1] == "Ready"
    assert runs["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert over["phase"] == "Failed"
    assert over["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_job_says_how_its_pods_do_as_in_the_sandbox() -> None:
    noted = {"sandbox.multikueue.dev/duration": "2m", "sandbox.multikueue.dev/outcome": "fail"}
    assert Fate.of({"metadata": {"annotations": noted}}) == Fate(120.0, 1)
    assert Fate.of({"metadata": {}}) == Fate(1.0, 0)
