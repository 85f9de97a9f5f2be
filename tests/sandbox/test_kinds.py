"""The rows of job kinds: every one says where its pods are, and how its status moves."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

import pytest

from multikueue.adapters import AVAILABLE as ADAPTERS
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.jobs.deciding import decide_run
from multikueue.sandbox.kinds import AVAILABLE, EACH, InTemplates, Roles, SandboxKind, definition
from multikueue.sandbox.kinds.course import Fate, Run
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.scheduling.podsets import equivalent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "a"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    },
}
INJECTION = Injection(
    labels={"kueue.x-k8s.io/podset": "x"},
    annotations={"kueue.x-k8s.io/workload": "wl"},
    node_selector={"zone": "z"},
    tolerations=({"key": "t", "operator": "Exists"},),
)
ALL = [pytest.param(kind, id=kind.name) for kind in AVAILABLE]
SUSPENDED = [pytest.param(kind, id=kind.name) for kind in AVAILABLE if not kind.gated]
OPAQUE = ("pipelinerun", "taskrun", "workflow")
"""Kinds that Kueue does not know itself: it puts nothing into their pods."""
ENDING = [pytest.param(kind, id=kind.name) for kind in AVAILABLE if not kind.gated and kind.course.ends]


def example(kind: SandboxKind, *, delegated: bool = False) -> Json:
    return kind.example("mine", TEMPLATE, queue="lq", delegated=delegated)


def started(kind: SandboxKind) -> Json:
    """A job that Kueue has started."""
    job = kind.with_suspend(example(kind), False)
    kind.pods.inject(job, {pod_set["name"]: INJECTION for pod_set in kind.pods.read(job)})
    return job


def turn(kind: SandboxKind, job: Json, run: Run | None, time: float, *, fails: bool = False) -> tuple[Json, Run | None]:
    """The job after one turn of the runner, and its run."""
    made = decide_run(kind, job, run, time=time, now=NOW, startup=2, draw=lambda: Fate(10, fails))
    return (job if made.status is None else {**job, "status": made.status}), made.run


def test_every_kind_that_is_dispatched_out_of_the_box_is_played() -> None:
    """Whoever adds a row to the library adds one here: else nobody sees it run."""
    dispatched = {(row.resource.gvk.group, row.resource.gvk.kind) for row in ADAPTERS} | set(PROFILES)
    played = {(kind.resource.gvk.group, kind.resource.gvk.kind) for kind in AVAILABLE}
    assert dispatched <= played
    names = {row.resource: row.framework for row in ADAPTERS}
    assert {kind.resource: kind.integration for kind in AVAILABLE if kind.resource in names} == names


@pytest.mark.parametrize("kind", ALL)
def test_an_example_asks_for_pods_and_is_as_webhooks_make_it(kind: SandboxKind) -> None:
    """It is delegated and does not run until Kueue lets it."""
    job = example(kind, delegated=True)
    sets = kind.pods.read(job)
    assert sum(pod_set["count"] for pod_set in sets) > 0
    assert all(
        dig(pod_set, "template", "spec", "containers")[0]["resources"]["requests"]["cpu"] == "1" for pod_set in sets
    )
    assert isinstance(kind, SetKind) or kind.is_suspended(job)
    assert kind.is_delegated(job) is (kind.managed_by is not None or bool(kind.managed_by_label))
    assert not kind.is_delegated(example(kind))
    assert kind.submitted(job) == job


@pytest.mark.parametrize("kind", ALL)
def test_its_definition_is_accepted_and_takes_the_example(kind: SandboxKind) -> None:
    """Those who have no other definition can play with it."""
    registry = Registry()
    if "." in kind.resource.gvk.group:
        registry.create_object(definition(kind))
    made = registry.create_object(example(kind, delegated=True))
    assert kind.pods.counts(made) == kind.pods.counts(example(kind, delegated=True)) or kind.name == "deployment"
    assert ("status" in registry.type_of(kind.resource).subresources) is kind.status_subresource


@pytest.mark.parametrize("kind", SUSPENDED)
def test_what_kueue_puts_in_is_found_and_taken_out_again(kind: SandboxKind) -> None:
    """A stopped job is as it was: the next admission may bring other nodes."""
    before = example(kind)
    job = started(kind)
    assert kind.pods.is_started(job)
    assert not kind.pods.is_started(before)
    assert equivalent(kind.pods.read(job), kind.pods.read(before), tolerations=False)

    kind.pods.restore(job, {pod_set["name"]: pod_set["template"] for pod_set in kind.pods.read(before)})
    assert without_empty(kind.with_suspend(job, True)) == without_empty(before)


@pytest.mark.parametrize("kind", [kind for kind in SUSPENDED if kind.id not in OPAQUE])
def test_the_pods_of_a_job_that_kueue_has_started_have_what_it_puts_in(kind: SandboxKind) -> None:
    """Without its labels nobody takes them for a run's: the manager shows no mirrors of them."""
    for template in (entry["template"] for entry in kind.pods.running(started(kind))):
        assert INJECTION.labels.items() <= template["metadata"]["labels"].items()
        assert INJECTION.annotations.items() <= template["metadata"]["annotations"].items()
        assert template["spec"]["nodeSelector"] == INJECTION.node_selector
        assert template["spec"]["tolerations"] == list(INJECTION.tolerations)


def without_empty(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item not in ({}, [])}
    return value


@pytest.mark.parametrize("kind", SUSPENDED)
def test_a_job_goes_from_suspended_to_running_and_back(kind: SandboxKind) -> None:
    """The status tells Kueue when pods are there, and when quota is free again."""
    job, run = turn(kind, example(kind), None, 0)
    assert (kind.course.is_active(job), kind.course.pods_ready(job), kind.ending(job), run) == (
        False,
        False,
        None,
        None,
    )
    job = {**started(kind), "status": job.get("status") or {}}
    for time in (0, 2):
        job, run = turn(kind, job, run, time)
    assert (kind.course.is_active(job), kind.course.pods_ready(job), kind.ending(job)) == (True, True, None)
    again = copy.deepcopy(job)
    assert turn(kind, job, run, 5)[0] == again, "a running job is not written again"

    job, run = turn(kind, kind.with_suspend(job, True), run, 6)
    assert (kind.course.is_active(job), kind.course.pods_ready(job), run) == (False, False, None)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", ENDING)
def test_a_job_ends_well_or_badly_and_stays_so(kind: SandboxKind, fails: bool) -> None:
    job, run = started(kind), None
    for time in (0, 2, 10):
        job, run = turn(kind, job, run, time, fails=fails)
    ending = kind.ending(job)
    assert ending is not None
    assert ending.reason == ("Failed" if fails else "Succeeded")
    assert not kind.course.is_active(job)
    assert turn(kind, job, None, 20) == (job, None)


@pytest.mark.parametrize("kind", SUSPENDED)
def test_a_job_of_another_controller_is_left_alone_and_one_of_its_own_is_run(kind: SandboxKind) -> None:
    """The manager's own controllers must not run what a worker runs."""
    job = kind.with_suspend(started(kind), False)
    assert turn(kind, kind.submitted(job), None, 0)[1] is None
    assert turn(kind, kind.with_suspend(kind.submitted(job), False), None, 0)[1] is None
    assert turn(kind, job, None, 0)[1] is not None


def test_a_row_needs_no_more_than_its_resource() -> None:
    """A kind that is nothing special: `spec.template`, `spec.replicas`, and the usual conditions."""
    kind = SandboxKind(resource=Resource(GVK("lab.example.com", "v1", "Fold"), "folds"), spec={"replicas": 3})
    (made,) = kind.pods.read(example(kind))
    assert (kind.integration, kind.name, made["count"]) == ("lab.example.com/fold", "fold", 3)

    job, run = started(kind), None
    for time in (0, 10):
        job, run = turn(kind, job, run, time)
    assert is_true(job, "Complete")
    assert not is_true(job, "Running")


def test_roles_are_found_in_lists_and_objects_with_numbers_that_multiply() -> None:
    """A group of two replicas of four hosts has eight pods."""
    groups = InTemplates(
        (
            Roles(at=("spec", "head"), counts=(), name="head"),
            Roles(at=("spec", "groups", EACH), named_by="called", counts=(("replicas",), ("hosts",))),
            Roles(at=("spec", "roles", EACH)),
        )
    )
    spec = {
        "head": {"template": TEMPLATE},
        "groups": [{"called": "Big", "replicas": 2, "hosts": 4, "template": TEMPLATE}, {"called": "bare"}],
        "roles": {"Worker": {"replicas": 3, "template": TEMPLATE}, "Chief": {"template": TEMPLATE}},
    }
    counted = [(pod_set["name"], pod_set["count"]) for pod_set in groups.read({"spec": spec})]
    assert counted == [("head", 1), ("big", 8), ("chief", 1), ("worker", 3)]
    assert dict(groups.counts({"spec": spec})) == {"head": 1, "Big": 2, "Chief": 1, "Worker": 3}


@pytest.mark.parametrize(
    ("wrapped", "counts"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}, [1]),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 3, "completions": 2}}, [2]),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": {}}}}, [2]),
        (
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "spec": {
                    "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {}}, "Master": {"template": {}}}
                },
            },
            [1, 2],
        ),
        ({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {}}, []),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_an_appwrapper_that_lists_no_pods_has_those_of_what_it_wraps(wrapped: Json, counts: list[int]) -> None:
    """As its controller infers them (`InferPodSets`); nine of the ten samples of its project say nothing else."""
    (kind,) = (row for row in AVAILABLE if row.name == "appwrapper")
    job = {"metadata": {"name": "aw"}, "spec": {"components": [{"template": wrapped}]}}
    listed = kind.pods.read(job)
    assert [(entry["name"], entry["count"]) for entry in listed] == [(f"aw-{n}", c) for n, c in enumerate(counts)]
    kind.pods.inject(job, {"aw-0": Injection(annotations={"kueue.x-k8s.io/workload": "w"})})
    assert kind.pods.is_started(job) is bool(counts)
    assert len(kind.pods.running(job)) == len(counts)
