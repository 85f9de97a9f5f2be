"""The ready-made declarations: delegated, copied exactly, and ended as their own controllers say it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from multikueue.adapters import JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = Stamp("multikueue", "wl", "1")
INSTANCE = "workflows.argoproj.io/controller-instanceid"
LABELS = {
    "kueue.x-k8s.io/queue-name": "user-queue",
    "kueue.x-k8s.io/multikueue-origin": "multikueue",
    "kueue.x-k8s.io/prebuilt-workload-name": "wl",
}
ANNOTATIONS = {"kueue.x-k8s.io/prebuilt-workload-name": "wl", "multikueue.dev/attempt": "1"}


def row(name: str, **said: Any) -> JobKind:
    return declared_kind(Declaration(name=name, **said))


def job(api_version: str, kind: str, spec: Json, *labels: str, status: Json | None = None) -> Json:
    given = {"kueue.x-k8s.io/queue-name": "user-queue"} | dict(label.split("=") for label in labels)
    metadata = {"name": "run", "namespace": "team", "uid": "u", "generateName": "r", "labels": given}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def succeeded(status: str, message: str = "") -> Json:
    return {"conditions": [{"type": "Succeeded", "status": status, "message": message}]}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_profile_is_a_declaration_that_compiles(profile: Declaration) -> None:
    """They are data: a user could have written them."""
    kind = declared_kind(profile)
    assert kind == declared_kind(Declaration(name=profile.name))
    assert kind.traits.ends


def test_a_pipeline_run_is_copied_pending_and_without_its_delegation() -> None:
    kind = row("PipelineRun.v1.tekton.dev")
    spec = {"managedBy": CONTROLLER_NAME, "pipelineRef": {"name": "build"}, "params": [{"name": "a", "value": "b"}]}
    run = job("tekton.dev/v1", "PipelineRun", spec)

    assert kind.not_delegated(run, CONTROLLER_NAME) is None
    assert kind.status.subresource
    assert kind.copy(run, STAMP) == {
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {"name": "run", "namespace": "team", "labels": LABELS, "annotations": ANNOTATIONS},
        "spec": {
            "pipelineRef": {"name": "build"},
            "params": [{"name": "a", "value": "b"}],
            "status": "PipelineRunPending",
        },
    }


@pytest.mark.parametrize(
    "name", ["PipelineRun.v1.tekton.dev", "PipelineRun.v1beta1.tekton.dev", "TaskRun.v1.tekton.dev"]
)
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({}, None),
        (succeeded("Unknown", "Running"), None),
        (succeeded("True", "Tasks Completed: 2"), Outcome("Succeeded", "Tasks Completed: 2")),
        (succeeded("False", "Tasks Failed: 1"), Outcome("Failed", "Tasks Failed: 1")),
    ],
)
def test_tekton_says_with_one_condition_how_a_run_ended(name: str, status: Json, outcome: Outcome | None) -> None:
    kind = row(name)
    assert kind.outcome(job(kind.resource.gvk.api_version, kind.resource.gvk.kind, {}, status=status)) == outcome


def test_a_task_run_is_copied_as_it_is() -> None:
    """Tekton cannot hold one back: `PipelineRunPending` is for PipelineRuns."""
    run = job("tekton.dev/v1", "TaskRun", {"managedBy": CONTROLLER_NAME, "taskRef": {"name": "t"}})
    assert row("TaskRun.v1.tekton.dev").copy(run, STAMP)["spec"] == {"taskRef": {"name": "t"}}


def test_a_workflow_is_delegated_by_its_label() -> None:
    """Argo on the manager leaves it alone, and on the worker takes it: there it has no such label."""
    kind = row("Workflow.v1alpha1.argoproj.io")
    flow = job("argoproj.io/v1alpha1", "Workflow", {"entrypoint": "main"}, f"{INSTANCE}=multikueue")

    assert kind.not_delegated(flow, CONTROLLER_NAME) is None
    assert kind.not_delegated(job("argoproj.io/v1alpha1", "Workflow", {}), CONTROLLER_NAME) == (
        f'Expecting .metadata.labels[\'{INSTANCE}\'] to be "multikueue" not ""'
    )
    assert not kind.status.subresource
    assert kind.copy(flow, STAMP) == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "run", "namespace": "team", "labels": LABELS, "annotations": ANNOTATIONS},
        "spec": {"entrypoint": "main", "suspend": True},
    }


def test_the_copy_of_a_workflow_does_not_go_before_the_manager_has_seen_its_end() -> None:
    """Not even where the workers' Argo has an instance of its own, which a patch names."""
    step = {"op": "add", "path": "/metadata/labels/instance", "value": "batch"}
    flow = job("argoproj.io/v1alpha1", "Workflow", {"ttlStrategy": {"secondsAfterCompletion": 5}})
    kind = row("Workflow.v1alpha1.argoproj.io", creation_patches=(step,))
    assert kind.copy(flow, STAMP)["spec"] == {"suspend": True}
    assert kind.unheeded(flow) == ["spec.ttlStrategy"]


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        ("", None),
        ("Pending", None),
        ("Running", None),
        ("Succeeded", "Succeeded"),
        ("Failed", "Failed"),
        ("Error", "Failed"),
    ],
)
def test_argo_says_with_a_phase_how_a_workflow_ended(phase: str, reason: str | None) -> None:
    status = {"phase": phase, "message": "child 'a' failed"}
    outcome = row("Workflow.v1alpha1.argoproj.io").outcome(job("argoproj.io/v1alpha1", "Workflow", {}, status=status))
    assert outcome == (None if reason is None else Outcome(reason, "child 'a' failed"))


@pytest.mark.parametrize(
    ("name", "cancelled", "patch"),
    [
        ("PipelineRun.v1.tekton.dev", {"status": "Cancelled"}, {"status": "Cancelled"}),
        ("PipelineRun.v1.tekton.dev", {"status": "CancelledRunFinally"}, {"status": "CancelledRunFinally"}),
        ("PipelineRun.v1.tekton.dev", {"status": "StoppedRunFinally"}, None),  # the manager's own Kueue says so
        ("PipelineRun.v1.tekton.dev", {"status": "PipelineRunPending"}, None),
        ("TaskRun.v1.tekton.dev", {"status": "TaskRunCancelled"}, {"status": "TaskRunCancelled"}),
        ("Workflow.v1alpha1.argoproj.io", {"shutdown": "Terminate"}, {"shutdown": "Terminate"}),
        ("Workflow.v1alpha1.argoproj.io", {"suspend": True}, None),
    ],
)
def test_a_job_that_its_user_cancels_is_cancelled_where_it_runs(name: str, cancelled: Json, patch: Json | None) -> None:
    kind = row(name)
    api_version, of = kind.resource.gvk.api_version, kind.resource.gvk.kind
    running = kind.copy(job(api_version, of, {}), STAMP)
    running["metadata"]["uid"] = "there"
    running["spec"] = {}

    decided = kind.forward_patch(job(api_version, of, cancelled), running, STAMP)
    assert decided == (None if patch is None else {"metadata": {"uid": "there"}, "spec": patch})
    assert kind.forward_patch(job(api_version, of, {}), running, STAMP) is None

    running["spec"] = cancelled  # by somebody on the worker
    assert kind.forward_patch(job(api_version, of, {}), running, STAMP) is None


def test_what_a_user_says_comes_before_what_the_profile_says() -> None:
    """A fleet whose workers give their Argo an instance sets the label on the copies."""
    step = {"op": "add", "path": f"/metadata/labels/{INSTANCE.replace('/', '~1')}", "value": "blue"}
    kind = row("Workflow.v1alpha1.argoproj.io", managed_by_path=".spec.managedBy", creation_patches=(step,))
    made = kind.copy(job("argoproj.io/v1alpha1", "Workflow", {"managedBy": "c"}), STAMP)

    assert kind.not_delegated(job("argoproj.io/v1alpha1", "Workflow", {"managedBy": "c"}), "c") is None
    assert made["metadata"]["labels"][INSTANCE] == "blue"
    assert made["spec"] == {"suspend": True}


def test_a_profile_serves_another_kind_by_name_and_can_be_left_out() -> None:
    fork = row("Flow.v1.example.com", profile="Workflow.v1alpha1.argoproj.io")
    assert fork.traits.ends
    assert fork.resource.gvk.kind == "Flow"
    assert not row("Workflow.v1alpha1.argoproj.io", profile="generic").traits.ends


ENDED = {"startTime": "t", **succeeded("True")}
PENDING = {"type": "Succeeded", "status": "Unknown", "reason": "PipelineRunPending"}
WAITS = {
    "conditions": [
        {**PENDING, "message": 'PipelineRun "run" is pending', "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
}


@pytest.mark.parametrize(
    ("name", "spec", "status", "shown"),
    [
        ("PipelineRun", {"status": "PipelineRunPending"}, {"startTime": "t"}, WAITS),
        ("PipelineRun", {"status": "PipelineRunPending"}, ENDED, ENDED),
        ("PipelineRun", {"status": "PipelineRunPending"}, succeeded("Unknown"), WAITS),
        ("PipelineRun", {}, {"startTime": "t"}, {"startTime": "t"}),
        ("TaskRun", {"status": "PipelineRunPending"}, {"startTime": "t"}, {"startTime": "t"}),
    ],
    ids=["begun", "ended", "pending", "started", "cannot be held"],
)
def test_a_pipeline_run_that_is_held_shows_no_start_and_says_that_it_waits(
    name: str, spec: Json, status: Json, shown: Json | None
) -> None:
    """Tekton's webhook on the manager refuses it. Kueue holds the run for a moment longer there than on the worker."""
    kind = row(f"{name}.v1.tekton.dev")
    local = job("tekton.dev/v1", name, spec)
    remote = job("tekton.dev/v1", name, {}, status=status)
    patch = kind.status_patch(local, remote, NOW)
    assert (patch and patch["status"]) == shown


def test_the_copy_of_any_kind_stays_until_the_manager_has_seen_its_end() -> None:
    """`ttlSecondsAfterFinished` is Kubernetes' word for it, in many kinds. A copy that its worker deletes out of sight
    would run again."""
    spec = {"managedBy": CONTROLLER_NAME, "ttlSecondsAfterFinished": 5, "tasks": [{"replicas": 1}]}
    made = job("batch.example.com/v1", "Batch", spec)
    kind = row("Batch.v1.batch.example.com")
    assert kind.copy(made, STAMP)["spec"] == {"tasks": [{"replicas": 1}]}
    assert kind.unheeded(made) == ["spec.ttlSecondsAfterFinished"]


def test_who_wants_a_copy_to_go_by_itself_says_so() -> None:
    made = job("batch.example.com/v1", "Batch", {"ttlSecondsAfterFinished": 5})
    said = {"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": 86_400}
    kind = row("Batch.v1.batch.example.com", creation_patches=(said,))
    assert kind.copy(made, STAMP)["spec"] == {"ttlSecondsAfterFinished": 86_400}
