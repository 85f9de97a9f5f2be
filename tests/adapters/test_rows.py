"""Every row: delegated, copied, shown, ended, stopped. A new kind is a new entry in `kinds.CASES`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.core.model.adapter import Outcome
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, with_value
from multikueue.sandbox.apiserver.verbs.patching import merge_patch
from tests.adapters.kinds import NOW, OURS, STAMP, a_job, case_of, golden, row, said
from tests.adapters.trials import BUILT_IN, definition

HELD_BY_GATES = ("Pod", "StatefulSet", "LeaderWorkerSet")

SUSPENDING = said("RayClusterSuspending")["conditions"][0]

rows = pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)


@rows
def test_it_is_taken_only_when_its_own_controller_leaves_it_to_us(kind: JobKind) -> None:
    """Otherwise it would run on the manager as well. Kinds that cannot say so are held by scheduling gates."""
    assert kind.not_delegated(a_job(kind), OURS) is None
    if kind.delegation.path is None:
        assert kind.keeps_check_pending
        return
    theirs = with_value(a_job(kind), kind.delegation.path, kind.delegation.own_controller)
    message = f'Expecting {".".join(kind.delegation.path)} to be "{OURS}" not "{kind.delegation.own_controller}"'
    assert kind.not_delegated(theirs, OURS) == message


@rows
def test_ready_would_start_only_what_gates_hold(kind: JobKind) -> None:
    """Kueue opens the gates of an admitted Workload; a controller that is not in charge ignores an unsuspended job."""
    assert kind.keeps_check_pending == (kind.resource.gvk.kind in HELD_BY_GATES)


@rows
def test_the_copy_is_the_users_job_for_the_workers_own_controller(kind: JobKind) -> None:
    """Everything the user wrote, nothing the manager added; not started, so that the worker's Kueue decides."""
    original = a_job(kind, {"anything": 1})
    assert kind.copy(original, STAMP) == golden(kind)
    assert original == a_job(kind, {"anything": 1})


@pytest.mark.parametrize(
    "name", ["Job", "JobSet", "JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob", "TrainJob"]
)
def test_the_copy_does_not_go_before_the_manager_has_seen_its_end(name: str) -> None:
    """Its worker would delete it some seconds after its end, and the Workload copy with it. Where the manager could not
    see that, nothing told that the job had run, and it ran again."""
    kind = row(name)
    assert kind.delegation.path is not None
    ttl = (*kind.delegation.path[:-1], "ttlSecondsAfterFinished")
    job = with_value(a_job(kind), ttl, 30)
    assert dig(kind.copy(job, STAMP), *ttl) is None
    # Kubernetes deletes Jobs whoever runs them; the other kinds' controllers pass over a delegated one, TTL and all.
    assert list(kind.unheeded(job)) == ([] if name == "Job" else [".".join(ttl)])
    assert list(kind.unheeded(a_job(kind))) == []


def test_nor_does_that_of_a_ray_job_delete_itself() -> None:
    kind, strategy = row("RayJob"), ("spec", "deletionStrategy")
    wanted = {"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteWorkers"}}
    original = with_value(a_job(kind), strategy, wanted)
    shown = {"onSuccess": {"policy": "DeleteCluster"}, "onFailure": {"policy": "DeleteWorkers"}}
    assert dig(kind.copy(original, STAMP), *strategy) == shown
    assert dig(original, *strategy, "onSuccess", "policy") == "DeleteSelf", "the user's is as it was"
    assert kind.unheeded(original) == ["spec.deletionStrategy.onSuccess.policy: DeleteSelf"]


@rows
def test_its_status_is_shown_and_written_only_when_it_differs(kind: JobKind) -> None:
    """A write that changes nothing is load on the manager (adapters.md H9)."""
    case = case_of(kind)
    local, remote = a_job(kind), a_job(kind, case.running)
    if kind.copies.suspend is not None:
        local = with_value(local, kind.copies.suspend, False)

    patch = kind.status_patch(local, remote, NOW)
    whole = {"metadata": {"resourceVersion": "7"}, "status": case.running}
    assert patch == (whole if case.shown else None)
    assert kind.status_patch({**local, "status": case.running}, remote, NOW) is None


@rows
def test_its_end_is_known(kind: JobKind) -> None:
    """Success and failure finish the Workload; running does not."""
    case = case_of(kind)

    assert kind.outcome(a_job(kind, case.running)) is None
    assert kind.outcome_of([a_job(kind, case.running)]) is None
    assert kind.traits.ends == (case.succeeded is not None)
    if case.succeeded is not None and case.failed is not None:
        good, bad = kind.outcome(a_job(kind, case.succeeded)), kind.outcome_of([a_job(kind, case.failed)])
        assert isinstance(good, Outcome)
        assert isinstance(bad, Outcome)
        assert (good.reason, bad.reason) == ("Succeeded", "Failed")


@rows
def test_what_is_gone_does_not_look_as_if_it_ran(kind: JobKind) -> None:
    """The manager's Kueue keeps the quota as long as the job looks active."""
    case = case_of(kind)
    patch = kind.release_patch(a_job(kind, case.running))

    if case.running != case.stopped:
        assert patch is not None
        assert merge_patch(case.running, patch["status"]) == case.stopped
    assert kind.release_patch(a_job(kind, case.stopped)) is None
    assert kind.release_patch(a_job(kind)) is None


@rows
def test_what_has_ended_is_not_said_to_have_stopped(kind: JobKind) -> None:
    """Its end is what the manager's Kueue finishes the Workload by."""
    case = case_of(kind)
    for status in (case.succeeded, case.failed):
        if status is not None:
            assert kind.release_patch(a_job(kind, status)) is None


@rows
def test_a_copy_that_runs_before_the_managers_job_does_is_not_shown(kind: JobKind) -> None:
    """What is suspended and shows a run has been stopped. The manager's Kueue soon starts it, and then it is shown."""
    case = case_of(kind)
    if kind.copies.suspend is not None and case.shown:
        runs = with_value(a_job(kind, case.running), kind.copies.suspend, False)
        assert kind.status_patch(a_job(kind), runs, NOW) == kind.waiting_patch(a_job(kind), NOW), "it waits, it says"
        if case.failed is not None:
            assert kind.status_patch(a_job(kind), {**runs, "status": case.failed}, NOW) is not None, "but its end is"


@rows
def test_an_end_that_somebody_else_has_set_stays(kind: JobKind) -> None:
    """Kueue finishes the Workload by it, and a later status would say that an ended job runs."""
    case = case_of(kind)
    for end in (case.succeeded, case.failed):
        if end is not None:
            assert kind.status_patch(a_job(kind, end), a_job(kind, case.running), NOW) is None


@rows
def test_pods_that_end_keep_the_quota_where_the_kind_tells_of_them(kind: JobKind) -> None:
    """Kueue asks the manager's job whether something of it runs. Once the copy is gone, nothing does."""
    case = case_of(kind)
    if case.ending is None:
        return
    local, remote = a_job(kind, case.running), a_job(kind, case.ending)
    patch = kind.status_patch(local, remote, NOW)
    assert patch is not None
    after = {**local, "status": merge_patch(case.running, patch["status"])}
    assert after["status"] == (case.held or case.ending)
    assert kind.is_stopped_here(after)
    released = kind.release_patch(after)
    assert released is not None
    assert kind.release_patch({**after, "status": merge_patch(after["status"], released["status"])}) is None


@rows
def test_a_job_that_is_suspended_again_while_it_shows_a_run_was_stopped_here(kind: JobKind) -> None:
    """By the manager's Kueue, which need not say so on the Workload."""
    case, suspend = case_of(kind), kind.copies.suspend
    assert kind.is_stopped_here(a_job(kind, case.running)) == (suspend is not None)
    for status in (None, case.stopped, case.succeeded, case.failed):
        assert not kind.is_stopped_here(a_job(kind, status))
    if suspend is not None:
        assert not kind.is_stopped_here(with_value(a_job(kind, case.running), suspend, False))


@rows
def test_a_copy_without_pods_says_so_where_its_kind_can(kind: JobKind) -> None:
    """All others are there until the last of their pods is gone."""
    case = case_of(kind)
    for status in (None, case.running, case.stopped, case.ending):
        assert not kind.pods_are_gone(a_job(kind, status))
    for status in case.gone:
        assert kind.pods_are_gone(a_job(kind, status))
    assert bool(case.gone) == (kind.resource.gvk.kind in ("Pod", "RayCluster"))


@pytest.mark.parametrize(
    ("status", "suspended"),
    [
        ({"state": "suspended", **said("RayClusterSuspended")}, False),
        ({"state": "ready", **said("RayClusterSuspended")}, True),
        ({"state": "suspended", "conditions": [*said("RayClusterSuspended")["conditions"], SUSPENDING]}, True),
        ({"state": "suspended", **said("RayClusterSuspended", "False")}, True),
    ],
    ids=["starts again", "not yet", "is stopped again", "was started"],
)
def test_the_state_of_a_ray_cluster_that_starts_is_still_the_old_one(status: Json, suspended: bool) -> None:
    kind = row("RayCluster")
    assert not kind.pods_are_gone(with_value(a_job(kind, status), ("spec", "suspend"), suspended))


@rows
def test_only_a_jobs_conditions_say_how_it_will_end(kind: JobKind) -> None:
    """Of the others the end comes without a sign."""
    case, is_job = case_of(kind), kind.resource.gvk.kind == "Job"
    assert kind.settled_end(a_job(kind, case.running)) is None
    marked = a_job(kind, {**case.running, **said("FailureTarget", message="by hand")})
    assert kind.settled_end(marked) == (Outcome("Failed", "by hand") if is_job else None)
    assert (kind.settled_patch(marked, NOW) is not None) == is_job


@rows
def test_the_pods_of_each_block_the_deletion_of_their_job(kind: JobKind) -> None:
    """Its controller sets `blockOwnerDeletion`: nobody needs to look for pods by a label."""
    assert kind.traits.pods_label == ""


@rows
def test_a_job_that_has_not_changed_costs_no_write_on_its_copy(kind: JobKind) -> None:
    """Whatever of it is forwarded."""
    assert kind.forward_patch(a_job(kind), a_job(kind), STAMP) is None


@rows
def test_the_row_names_the_kind_as_its_crd_does(kind: JobKind) -> None:
    """Group, version, plural and the paths of the row exist in the real schema, if it has one."""
    if kind.resource.gvk.group in BUILT_IN:
        return
    crd = definition(kind)
    versions = {version["name"]: version for version in crd["spec"]["versions"]}
    assert crd["spec"]["names"]["kind"] == kind.resource.gvk.kind
    assert kind.resource.gvk.version in versions
    schema = versions[kind.resource.gvk.version]["schema"]["openAPIV3Schema"]
    for path in (kind.delegation.path or (), kind.copies.suspend or (), *kind.sync.forwarded):
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
        "Pod": "pod",
        "StatefulSet": "statefulset",
        "LeaderWorkerSet": "leaderworkerset.x-k8s.io/leaderworkerset",
    }


def test_a_train_job_with_no_patches_but_kueues_has_none() -> None:
    """They hold the manager's node selectors, and the worker's Kueue makes its own."""
    job = a_job(row("TrainJob"))
    job["spec"]["runtimePatches"] = [{"manager": "kueue.x-k8s.io/manager"}]
    assert "runtimePatches" not in row("TrainJob").copy(job, STAMP)["spec"]


def test_a_services_configuration_follows() -> None:
    """It is edited while the service runs, and changes no Workload; nothing else is forwarded."""
    kind = row("RayService")
    remote = a_job(kind)
    remote["spec"]["serveConfigV2"] = "old"
    remote["metadata"]["uid"] = "uid-of-copy"
    assert kind.forward_patch(a_job(kind), remote, STAMP) == {
        "metadata": {"uid": "uid-of-copy"},
        "spec": {"serveConfigV2": "applications: []"},
    }


def test_an_app_wrapper_that_still_cleans_up_has_not_failed_yet() -> None:
    """Its phase says so before its objects are gone."""
    kind = row("AppWrapper")
    status = {"phase": "Failed", "conditions": [{"type": "ResourcesDeployed", "status": "True"}]}
    assert kind.outcome(a_job(kind, status)) is None


def test_a_conflicting_path_is_named_as_it_is() -> None:
    """Kueue says spec.managedBy for kinds that have it under runPolicy."""
    kind = row("PyTorchJob")
    assert dig(a_job(kind), "spec", "runPolicy", "managedBy") == OURS
    refusal = kind.not_delegated(with_value(a_job(kind), ("spec", "runPolicy", "managedBy"), "x"), OURS)
    assert refusal == f'Expecting spec.runPolicy.managedBy to be "{OURS}" not "x"'


WITH_CONDITION = ("Job", "JobSet", "JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob", "TrainJob")


@rows
def test_what_waits_says_so_once_and_no_run_is_hidden_by_it(kind: JobKind) -> None:
    """Also again after a stop. A word that its Kueue takes for the end of the run stands only once that is shown."""
    case, waits = case_of(kind), a_job(kind)
    patch = kind.waiting_patch(waits, NOW)
    if kind.status.words is None:
        assert patch is None
        return
    assert patch is not None
    said_once = {**waits, "status": merge_patch({}, patch["status"])}
    assert kind.waiting_patch(said_once, NOW) is None
    assert kind.release_patch(said_once) is None, "no run is shown by it"
    assert kind.outcome(said_once) is None
    runs = kind.waiting_patch(a_job(kind, case.running), NOW)
    assert (runs is None) == (bool(kind.status.words.fields) or kind.resource.gvk.kind == "RayService")
    assert kind.waiting_patch(a_job(kind, case.succeeded), NOW) is None or case.succeeded is None
    assert kind.waiting_patch(with_value(waits, kind.copies.suspend or (), False), NOW) is None
    if kind.resource.gvk.kind in WITH_CONDITION:
        before = {**waits, "status": {"conditions": [{"type": "Suspended", "status": "False", "reason": "Resumed"}]}}
        again = kind.waiting_patch(before, NOW)
        assert again is not None
        assert is_true({"status": again["status"]}, "Suspended")


@pytest.mark.parametrize("name", WITH_CONDITION)
def test_what_is_started_here_is_never_shown_as_suspended(name: str) -> None:
    """Its copy is for a moment, until its own Kueue starts it; and again while that one stops it."""
    kind = row(name)
    words = kind.status.words
    assert words is not None
    assert kind.copies.suspend is not None
    waiting = words.of_waiting(a_job(kind), NOW)
    started = with_value(a_job(kind, waiting), kind.copies.suspend, False)
    patch = kind.status_patch(started, a_job(kind, waiting), NOW)
    assert patch is not None
    shown = {"status": merge_patch(waiting, patch["status"])}
    assert not is_true(shown, "Suspended")
    assert words.resumed == tuple((condition(shown, "Suspended") or {})[field] for field in ("reason", "message"))
    assert kind.status_patch({**started, "status": shown["status"]}, a_job(kind, waiting), NOW) is None


def test_the_deadline_of_a_pod_and_the_failed_indexes_of_a_job_are_followed() -> None:
    """The others that one cluster heeds while it runs."""
    for name, field in (("Pod", "activeDeadlineSeconds"), ("Job", "maxFailedIndexes")):
        kind = row(name)
        remote = kind.copy(a_job(kind), STAMP)
        remote["metadata"]["uid"] = "uid-of-copy"
        patch = kind.forward_patch(with_value(a_job(kind), ("spec", field), 8), remote, STAMP)
        assert patch == {"metadata": {"uid": "uid-of-copy"}, "spec": {field: 8}}


@pytest.mark.parametrize(
    "name", ["Job", "RayJob", "JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob"]
)
@pytest.mark.parametrize("field", ["activeDeadlineSeconds", "backoffLimit"])
def test_limits_that_are_changed_while_it_runs_count_on_its_worker(name: str, field: str) -> None:
    """On one cluster they count at once; here they changed nothing, without a word."""
    kind = row(name)
    assert kind.delegation.path is not None
    limit = (*kind.delegation.path[:-1], field)
    remote = {**kind.copy(with_value(a_job(kind), limit, 20), STAMP)}
    remote["metadata"] = {**remote["metadata"], "uid": "uid-of-copy"}
    assert kind.forward_patch(with_value(a_job(kind), limit, 20), remote, STAMP) is None
    patch = kind.forward_patch(with_value(a_job(kind), limit, 8), remote, STAMP)
    assert patch == with_value({"metadata": {"uid": "uid-of-copy"}}, limit, 8)
    gone = kind.forward_patch(a_job(kind), remote, STAMP)
    assert gone is not None
    assert dig(merge_patch(remote, gone), *limit) is None


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("JobSet", "Completed"),
        ("JobSet", "Failed"),
        ("TrainJob", "Complete"),
        *((name, "") for name in ("JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")),
    ],
)
def test_when_a_job_that_has_ended_goes_is_what_its_own_controller_makes_of_it(name: str, where: str) -> None:
    """JobSet's counts from the condition of the end, the training operator from `status.completionTime`."""
    heeding = attrs.evolve(row(name), deletes_expired=True)
    lasts = heeding.copies.time_to_live
    assert lasts is not None
    at, before = "2026-01-01T00:00:00Z", datetime(2025, 1, 1, tzinfo=UTC)
    end: Json = {"conditions": [{"type": where or "Succeeded", "status": "True", "lastTransitionTime": at}]}
    job = with_value(a_job(heeding, end if where else {**end, "completionTime": at}), lasts.seconds, 30)
    assert heeding.expires_at(job, before) is None, "somebody owns it"
    del job["metadata"]["ownerReferences"]
    assert heeding.expires_at(job, before) == datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert heeding.unheeded(job) == [], "nobody is told to delete it"
    assert row(name).expires_at(job, before) is None


@pytest.mark.parametrize(
    ("lasts", "ended"),
    [
        (2**62, "2026-01-01T00:00:00Z"),
        ("30", "2026-01-01T00:00:00Z"),
        ([], "2026-01-01T00:00:00Z"),
        (30, "9999-12-31T23:59:59Z"),
    ],
)
def test_a_time_that_no_clock_reaches_is_none(lasts: object, ended: str) -> None:
    """What a definition without bounds lets a tenant write, or a worker's controller: nothing is decided by it."""
    heeding = attrs.evolve(row("PyTorchJob"), deletes_expired=True)
    end: Json = {"conditions": [{"type": "Succeeded", "status": "True"}], "completionTime": ended}
    job = with_value(a_job(heeding, end), ("spec", "runPolicy", "ttlSecondsAfterFinished"), lasts)
    del job["metadata"]["ownerReferences"]
    assert heeding.expires_at(job, datetime(2026, 1, 1, tzinfo=UTC)) is None


def test_mpis_controller_deletes_no_mpi_job() -> None:
    """Its launcher alone, by that time."""
    heeding = attrs.evolve(row("MPIJob"), deletes_expired=True)
    ended = {"conditions": [{"type": "Succeeded", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"}
    job = with_value(a_job(heeding, ended), ("spec", "runPolicy", "ttlSecondsAfterFinished"), 30)
    del job["metadata"]["ownerReferences"]
    assert heeding.expires_at(job, datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert heeding.unheeded(job) == ["spec.runPolicy.ttlSecondsAfterFinished"]


@pytest.mark.parametrize("value", [[], [{"type": "Resource"}]])
def test_a_pytorch_job_that_its_worker_would_size_is_refused_with_the_field(value: list[Json]) -> None:
    """Its operator makes a HorizontalPodAutoscaler of it, and the worker's Kueue takes a copy with other sizes for
    another job: OutOfSync, a new cluster, again and again."""
    kind, policy = row("PyTorchJob"), ("spec", "elasticPolicy")
    elastic = with_value(a_job(kind), policy, {"minReplicas": 1, "maxReplicas": 4, "rdzvBackend": "c10d"})
    assert kind.refused(elastic) == ""
    refused = kind.refused(with_value(elastic, (*policy, "metrics"), value))
    assert refused.startswith("spec.elasticPolicy.metrics is set: ")
    assert kind.refused(with_value(elastic, (*policy, "metrics"), None)) == ""


SIZED = {"enableInTreeAutoscaling", "metrics"}
"""Fields by which a job says that its own controller sizes it."""
SIZES_NOTHING = {"PaddleJob": {"spec.elasticPolicy.metrics"}}
"""Its controller has no right to make an autoscaler, up to v1.9.3."""


def fields_below(schema: Json, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Of the objects of a schema, but for what stands in lists and pod templates."""
    for name, inner in (schema.get("properties") or {}).items():
        yield (*at, name)
        if name != "template":
            yield from fields_below(inner, (*at, name))


@rows
def test_whatever_a_kind_may_say_of_who_sizes_it_is_refused(kind: JobKind) -> None:
    """A definition that brings another such field fails here."""
    name = kind.resource.gvk.kind
    if kind.resource.gvk.group in BUILT_IN:
        assert kind.refused(a_job(kind)) == ""
        return
    (schema,) = (
        version["schema"]["openAPIV3Schema"]
        for version in definition(kind)["spec"]["versions"]
        if version["name"] == kind.resource.gvk.version
    )
    paths = [path for path in fields_below(schema["properties"]["spec"], ("spec",)) if path[-1] in SIZED]
    taken = {".".join(path) for path in paths if not kind.refused(with_value(a_job(kind), path, True))}
    assert taken == SIZES_NOTHING.get(name, set())
    assert bool(paths) == (name in ("RayCluster", "RayJob", "RayService", "PyTorchJob", "PaddleJob"))


def labelled(value: Any) -> Any:
    """A value in which each object has our origin label."""
    if isinstance(value, list):
        return [labelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {field: labelled(item) for field, item in value.items()}
    return {**inner, "labels": {**(inner.get("labels") or {}), ORIGIN_LABEL: STAMP.origin}}


@rows
def test_what_is_made_of_a_copys_templates_is_no_copy(kind: JobKind) -> None:
    """5,000 replicas of a JobSet whose template had our label were 5,000 Jobs that all counted as copies: fifty such
    sets made the worker's Jobs unreadable, for all namespaces."""
    original = a_job(kind)
    made = kind.copy({**original, "spec": labelled(original["spec"])}, STAMP)
    assert ORIGIN_LABEL not in repr(made["spec"])
    assert made["metadata"]["labels"][ORIGIN_LABEL] == STAMP.origin
