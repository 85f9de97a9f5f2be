"""Every row: delegated, copied, brought home, ended, stopped. A new kind is a new line in the table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
import yaml

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.core.adapter import Outcome, Stamp
from multikueue.core.names import Json
from multikueue.core.objects import dig, with_value
from multikueue.sandbox.apiserver.merging import merge_patch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = Stamp("multikueue", "wl", "attempt")
OURS = "kueue.x-k8s.io/multikueue"
CRDS = Path(__file__).parents[3] / "shared" / "crds" / "jobs"


def condition(kind: str, message: str = "") -> Json:
    """A status with one true condition."""
    return {"conditions": [{"type": kind, "status": "True", "message": message}]}


@attrs.frozen
class Case:
    """What is special about one kind, said again in its users' words."""

    spec: Json
    """Part of a spec that must reach the worker."""
    succeeded: Json | None
    failed: Json | None
    running: Json
    """A status with something running."""
    stopped: Json
    """The same with nothing running."""


def kubeflow(replicas: str) -> Case:
    """The training operator's kinds."""
    return Case(
        {replicas: {"Worker": {"replicas": 2}}},
        condition("Succeeded"),
        condition("Failed"),
        {"replicaStatuses": {"Worker": {"active": 2, "failed": 1}}},
        {"replicaStatuses": {"Worker": {"active": 0, "failed": 1}}},
    )


CASES: dict[str, Case] = {
    "Job": Case(
        {"parallelism": 2},
        condition("Complete"),
        condition("Failed"),
        {"active": 2, "ready": 1},
        {"active": 0, "ready": 0},
    ),
    "JobSet": Case(
        {"replicatedJobs": [{"name": "w"}]},
        condition("Completed"),
        condition("Failed"),
        {"replicatedJobsStatus": [{"name": "w", "active": 1, "ready": 1}]},
        {"replicatedJobsStatus": [{"name": "w", "active": 0, "ready": 0}]},
    ),
    "PyTorchJob": kubeflow("pytorchReplicaSpecs"),
    "TFJob": kubeflow("tfReplicaSpecs"),
    "XGBoostJob": kubeflow("xgbReplicaSpecs"),
    "PaddleJob": kubeflow("paddleReplicaSpecs"),
    "JAXJob": kubeflow("jaxReplicaSpecs"),
    "MPIJob": kubeflow("mpiReplicaSpecs"),
    "TrainJob": Case(
        {"runtimeRef": {"name": "torch"}, "runtimePatches": [{"manager": "mine"}]},
        condition("Complete"),
        condition("Failed"),
        {"jobsStatus": [{"name": "node", "active": 1}]},
        {"jobsStatus": [{"name": "node", "active": 0}]},
    ),
    "RayJob": Case(
        {"entrypoint": "python main.py"},
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
        {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "no memory"},
        {"jobDeploymentStatus": "Running"},
        {"jobDeploymentStatus": "Suspended"},
    ),
    "RayCluster": Case({"rayVersion": "2.9"}, None, None, {"state": "ready"}, {"state": "suspended"}),
    "RayService": Case(
        {"serveConfigV2": "applications: []"},
        None,
        None,
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"conditions": [{"type": "Ready", "status": "False"}]},
    ),
    "AppWrapper": Case(
        {"components": [{"template": {"kind": "Service"}}]},
        {"phase": "Succeeded"},
        {"phase": "Failed", "conditions": [{"type": "ResourcesDeployed", "status": "False"}]},
        {"conditions": [{"type": "QuotaReserved", "status": "True"}]},
        {"conditions": [{"type": "QuotaReserved", "status": "False"}]},
    ),
}

rows = pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)


def a_job(kind: JobKind, status: Json | None = None) -> Json:
    """A delegated, suspended job of that kind, as the manager's API server has it."""
    job: Json = {
        "apiVersion": kind.resource.gvk.api_version,
        "kind": kind.resource.gvk.kind,
        "metadata": {
            "name": "mine",
            "namespace": "team",
            "uid": "uid-1",
            "resourceVersion": "7",
            "labels": {"kueue.x-k8s.io/queue-name": "q"},
            "ownerReferences": [{"uid": "x"}],
            "finalizers": ["f"],
        },
        "spec": {**CASES[kind.resource.gvk.kind].spec},
    }
    assert kind.managed_by is not None
    job = with_value(with_value(job, kind.managed_by, OURS), kind.suspend, True)
    return job if status is None else {**job, "status": status}


@rows
def test_it_is_taken_only_when_its_own_controller_leaves_it_to_us(kind: JobKind) -> None:
    """Otherwise it would run on the manager as well."""
    assert kind.managed_by is not None
    assert kind.not_delegated(a_job(kind), OURS) is None
    theirs = with_value(a_job(kind), kind.managed_by, "")
    assert kind.not_delegated(theirs, OURS) == f'Expecting {".".join(kind.managed_by)} to be "{OURS}" not ""'


@rows
def test_the_copy_is_the_users_job_for_the_workers_own_controller(kind: JobKind) -> None:
    """Everything the user wrote, nothing the manager added; suspended, so that the worker's Kueue decides."""
    assert kind.managed_by is not None
    original = a_job(kind, {"anything": 1})
    copy = kind.copy(original, STAMP)

    for field, value in CASES[kind.resource.gvk.kind].spec.items():
        assert copy["spec"][field] == value
    assert dig(copy, *kind.managed_by) is None
    assert dig(copy, *kind.suspend) is True
    assert "status" not in copy
    assert set(copy["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert copy["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] == "wl"
    assert dig(original, *kind.managed_by) == OURS


@rows
def test_its_status_comes_home_and_only_when_it_differs(kind: JobKind) -> None:
    """A write that changes nothing is load on the manager."""
    case = CASES[kind.resource.gvk.kind]
    local, remote = with_value(a_job(kind), kind.suspend, False), a_job(kind, case.running)

    patch = kind.status_patch(local, remote, NOW)
    assert patch == {"metadata": {"resourceVersion": "7"}, "status": case.running}
    assert kind.status_patch({**local, "status": case.running}, remote, NOW) is None


@rows
def test_its_end_is_known(kind: JobKind) -> None:
    """Success and failure finish the Workload; running does not."""
    case = CASES[kind.resource.gvk.kind]

    assert kind.outcome(a_job(kind, case.running)) is None
    assert kind.ends == (case.succeeded is not None)
    if case.succeeded is not None and case.failed is not None:
        good, bad = kind.outcome(a_job(kind, case.succeeded)), kind.outcome(a_job(kind, case.failed))
        assert isinstance(good, Outcome)
        assert isinstance(bad, Outcome)
        assert (good.reason, bad.reason) == ("Succeeded", "Failed")


@rows
def test_what_is_gone_does_not_look_as_if_it_ran(kind: JobKind) -> None:
    """The manager's Kueue keeps the quota as long as the job looks active."""
    case = CASES[kind.resource.gvk.kind]
    patch = kind.release_patch(a_job(kind, case.running))

    assert patch is not None
    assert merge_patch(case.running, patch["status"]) == case.stopped
    assert kind.release_patch(a_job(kind, case.stopped)) is None


def test_kueues_own_patches_of_a_train_job_stay_behind() -> None:
    """They hold the manager's node selectors, and the worker's Kueue makes its own."""
    kind = next(kind for kind in AVAILABLE if kind.resource.gvk.kind == "TrainJob")
    job = a_job(kind)
    job["spec"]["runtimePatches"] = [{"manager": "kueue.x-k8s.io/manager"}]

    assert "runtimePatches" not in kind.copy(job, STAMP)["spec"]


def test_a_services_configuration_follows() -> None:
    """It is edited while the service runs, and changes no Workload; nothing else is forwarded."""
    kind = next(kind for kind in AVAILABLE if kind.resource.gvk.kind == "RayService")
    local, remote = a_job(kind), a_job(kind)
    assert kind.forward_patch(local, remote, STAMP) is None

    remote["spec"]["serveConfigV2"] = "old"
    remote["metadata"]["uid"] = "uid-of-copy"
    assert kind.forward_patch(local, remote, STAMP) == {
        "metadata": {"uid": "uid-of-copy"},
        "spec": {"serveConfigV2": "applications: []"},
    }


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)
def test_the_row_names_the_kind_as_its_crd_does(kind: JobKind) -> None:
    """Group, version, plural and the paths of the row exist in the real schema, where that is at hand."""
    file = CRDS / f"{kind.resource.qualified}.yaml"
    if not file.exists():
        assert kind.resource.gvk.group == "batch" or not CRDS.exists()
        return
    definition = yaml.safe_load(file.read_text())
    versions = {version["name"]: version for version in definition["spec"]["versions"]}
    assert definition["spec"]["names"]["kind"] == kind.resource.gvk.kind
    assert kind.resource.gvk.version in versions
    schema = versions[kind.resource.gvk.version]["schema"]["openAPIV3Schema"]
    for path in (kind.managed_by or (), kind.suspend, *kind.forwarded):
        at = schema
        for step in path:
            at = at["properties"][step]


def test_rows_go_by_kueues_own_names() -> None:
    """As its configuration lists them under `integrations.frameworks`: the settings may name kinds the same way."""
    names = {kind.resource.gvk.kind: kind.framework for kind in AVAILABLE}
    assert names == {
        "Job": "batch/job",
        "JobSet": "jobset.x-k8s.io/jobset",
        "JAXJob": "kubeflow.org/jaxjob",
        "PaddleJob": "kubeflow.org/paddlejob",
        "PyTorchJob": "kubeflow.org/pytorchjob",
        "TFJob": "kubeflow.org/tfjob",
        "XGBoostJob": "kubeflow.org/xgboostjob",
        "MPIJob": "kubeflow.org/mpijob",
        "TrainJob": "trainer.kubeflow.org/trainjob",
        "RayJob": "ray.io/rayjob",
        "RayCluster": "ray.io/raycluster",
        "RayService": "ray.io/rayservice",
        "AppWrapper": "workload.codeflare.dev/appwrapper",
    }
