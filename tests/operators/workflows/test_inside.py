"""What is played inside the pods of Tekton and Argo."""

from __future__ import annotations

import json
from typing import Any

from multikueue.core.model.conditions import parse_timestamp
from tests.operators.playing.pods import KILLED, Fate, Step, ended, next_step
from tests.operators.workflows.inside import ARGOS_LABEL, TEKTONS_LABEL, message

_TIME = "2026-01-01T00:00:00Z"


def _pod(label: str, *containers: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "labels": {label: "run"}},
        "spec": {"nodeName": "n", "containers": [{"image": "x", **container} for container in containers]},
        "status": {"phase": "Running"},
    }


def _exited(pod: dict[str, Any], code: int) -> dict[str, dict[str, Any]]:
    status = ended(pod, _TIME, code)
    return {one["name"]: one["state"]["terminated"] for one in status["containerStatuses"]}


def test_a_step_of_tekton_leaves_the_results_that_its_arguments_name() -> None:
    step = {"name": "step-build", "args": ["-termination_path", "/t", "-results", "digest,url", "-entrypoint", "work"]}
    left = json.loads(_exited(_pod(TEKTONS_LABEL, step), 0)["step-build"]["message"])
    assert [entry["key"] for entry in left if entry["type"] == 1] == ["digest", "url"]
    assert parse_timestamp(left[0]["value"]) is not None


def test_a_step_that_fails_leaves_no_results_and_a_killed_one_nothing() -> None:
    pod = _pod(TEKTONS_LABEL, {"name": "step-build", "args": ["-results", "digest"]})
    assert [entry["key"] for entry in json.loads(_exited(pod, 1)["step-build"]["message"])] == ["StartedAt"]
    assert "message" not in _exited(pod, KILLED)["step-build"]


def test_argos_executor_ends_well_beside_a_program_that_fails_or_is_killed() -> None:
    pod = _pod(ARGOS_LABEL, {"name": "wait"}, {"name": "main"})
    for code in (1, KILLED):
        assert {name: state["exitCode"] for name, state in _exited(pod, code).items()} == {"wait": 0, "main": code}


def test_pods_of_both_end_by_themselves_and_only_tektons_leave_messages() -> None:
    for label in (ARGOS_LABEL, TEKTONS_LABEL):
        assert next_step(_pod(label, {"name": "main"}), Fate(), now=1.0, ran_since=0.5) == Step("end", 1.5)
    assert message(_pod("app", {"name": "main"}), {"name": "main"}, 0, _TIME) == ""
