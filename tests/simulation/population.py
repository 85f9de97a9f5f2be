"""What users of a run submit: Jobs, pods alone and in groups, sets of pods that serve, elastic jobs, JobSets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import ELASTIC_ANNOTATION, PRIORITY_CLASS_LABEL
from multikueue.core.model.names import Json, Resource
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kinds.jobset import KINDS as JOB_SETS
from multikueue.sandbox.kinds.pods import POD, POD_GROUP, POD_RESOURCE
from multikueue.sandbox.kinds.sets import DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET, SetKind
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME

PRIORITIES: Final = {"low": -10, "high": 10}
"""The priority classes of every cluster."""
TOPOLOGY_ANNOTATION: Final = "kueue.x-k8s.io/podset-required-topology"


@attrs.frozen(eq=False)
class Submission:
    """What a user creates at one moment."""

    resource: Resource
    objects: tuple[Json, ...]
    lifetime: float | None = None
    """Seconds after which the user deletes it; None: it ends by itself, or serves until everything is over."""

    @property
    def name(self) -> str:
        """For the story of a run."""
        return f"{self.resource.gvk.kind} {self.objects[0]['metadata']['name']}"


Draw = Callable[[random.Random, int], Submission]


def draw_job(dice: random.Random, number: int) -> Submission:
    """A Job as a user writes it; the smallest worker has room for it."""
    cpu, pods = dice.choice((("1", 1), ("1", 1), ("1", 2), ("2", 1), ("500m", 2)))
    duration = dice.choice((None, None, "2s", "90s", "240s"))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number}",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME},
            "annotations": {DURATION_ANNOTATION: duration} if duration else {},
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": template(cpu),
        },
    }
    return Submission(JOB, (job,))


def draw_prior_job(dice: random.Random, number: int) -> Submission:
    """A Job of some priority: workers may have to make room for it."""
    drawn = draw_job(dice, number)
    for job in drawn.objects:
        job["metadata"]["labels"][PRIORITY_CLASS_LABEL] = dice.choice(sorted(PRIORITIES))
    return drawn


def draw_placed_job(dice: random.Random, number: int) -> Submission:
    """A Job whose pods must be near each other: its worker decides where."""
    drawn = draw_job(dice, number)
    for job in drawn.objects:
        job["spec"]["template"].setdefault("metadata", {})["annotations"] = {TOPOLOGY_ANNOTATION: "rack"}
    return drawn


def draw_elastic_job(dice: random.Random, number: int) -> Submission:
    """A Job whose size may change while it runs."""
    drawn = draw_job(dice, number)
    for job in drawn.objects:
        job["metadata"]["annotations"] = {ELASTIC_ANNOTATION: "true", DURATION_ANNOTATION: "150s"}
        job["spec"].update(parallelism=1, completions=3, template=template("500m"))
    return drawn


def draw_job_set(dice: random.Random, number: int) -> Submission:
    """A JobSet: three pods."""
    (kind,) = JOB_SETS
    made = kind.example(f"jobset-{number}", template("500m"), queue=LOCAL_QUEUE_NAME)
    made["metadata"]["annotations"] = {DURATION_ANNOTATION: dice.choice(("5s", "60s", "200s"))}
    return Submission(kind.resource, (made,))


def draw_pod(dice: random.Random, number: int) -> Submission:
    """A pod that ends."""
    made = POD.example(f"pod-{number}", template("500m"), queue=LOCAL_QUEUE_NAME)
    made["metadata"]["annotations"] = {DURATION_ANNOTATION: dice.choice(("2s", "60s", "200s"))}
    return Submission(POD_RESOURCE, (made,))


def draw_group(dice: random.Random, number: int) -> Submission:
    """Pods that are admitted together, and end."""
    noted = {DURATION_ANNOTATION: dice.choice(("5s", "60s", "200s"))}
    pattern = {**template("500m"), "metadata": {"annotations": noted}}
    return Submission(POD_RESOURCE, tuple(POD_GROUP.examples(f"group-{number}", pattern, queue=LOCAL_QUEUE_NAME)))


def _draw_set(kind: SetKind) -> Draw:
    def draw(dice: random.Random, number: int) -> Submission:
        made = kind.example(f"{kind.name}-{number}", template("100m"), queue=LOCAL_QUEUE_NAME)
        made["spec"]["replicas"] = dice.choice((1, 1, 2))
        return Submission(kind.resource, (made,), dice.choice((None, 40.0, 150.0, 300.0)))

    return draw


def with_grace(submission: Submission, dice: random.Random) -> None:
    """Give its pods a grace period, perhaps."""
    grace = dice.choice((None, None, 5, 60, 400))
    for obj in submission.objects if grace is not None else ():
        for pods in _pod_specs(obj):
            pods["terminationGracePeriodSeconds"] = grace


def _pod_specs(obj: Json) -> Iterator[Json]:
    """The specs of its pods, wherever they are."""
    if "containers" in obj:
        yield obj
    for value in obj.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _pod_specs(inner)


def template(cpu: str) -> Json:
    """Of pods that ask for that much."""
    request = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": request}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


@attrs.frozen(eq=False)
class Population:
    """What is submitted in a run, and the kinds that are needed for it."""

    name: str
    draws: tuple[Draw, ...]
    kinds: tuple[SandboxKind, ...] = ()
    """Those that all clusters serve, beside Jobs."""

    serving: int = 0
    """CPUs on each worker that are for what serves."""
    preempting: bool = False
    """Whether Workloads have priorities, and take each other's place."""

    @property
    def elastic(self) -> bool:
        """Whether there are elastic Jobs."""
        return draw_elastic_job in self.draws

    @property
    def all_kinds(self) -> tuple[SandboxKind, ...]:
        """Those that the clusters' Kueues know."""
        return (BATCH_JOB, *self.kinds)

    @property
    def adapters(self) -> tuple[JobKind, ...]:
        """What the daemon's settings list: a Deployment's pods are dispatched one by one."""
        wanted = {POD_RESOURCE if kind is DEPLOYMENT else kind.resource for kind in self.all_kinds}
        return tuple(row for row in AVAILABLE if row.resource in wanted)


_SETS: Final = (DEPLOYMENT, STATEFUL_SET, LEADER_WORKER_SET)
_DRAWN_SETS: Final = tuple(_draw_set(kind) for kind in _SETS)
JOBS: Final = Population("jobs", (draw_job,))
PREEMPTING: Final = Population("priorities", (draw_prior_job, draw_prior_job, draw_job), preempting=True)
PLACED: Final = Population("topologies", (draw_placed_job, draw_job))
ELASTIC: Final = Population("elastic", (draw_elastic_job, draw_elastic_job, draw_job))
PODS: Final = Population("pods", (draw_pod, draw_group, draw_group), (POD,))
SETS: Final = Population("sets", (*_DRAWN_SETS, draw_job), (POD, *_SETS), serving=1)
ALL: Final = Population(
    "all kinds",
    (draw_job, draw_prior_job, draw_placed_job, draw_elastic_job, draw_job_set, draw_pod, draw_group, *_DRAWN_SETS),
    (*JOB_SETS, POD, *_SETS),
    serving=1,
    preempting=True,
)
POPULATIONS: Final = (*(5 * (JOBS,)), PREEMPTING, PLACED, ELASTIC, PODS, SETS, ALL, ALL)
