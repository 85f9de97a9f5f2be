"""What a demo has seen so far: the story of every job, and what ran where."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import attrs

from multikueue.core.conditions import is_true
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import dig
from multikueue.core.workloads import cluster_name, is_admitted, owner


class Stage(StrEnum):
    """How far a job has come."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@attrs.define(eq=False)
class Story:
    """One job's way. Times are seconds since the start."""

    key: ObjectKey
    queued: float
    cluster: str = ""
    admitted: float | None = None
    ended: float | None = None
    failed: bool = False
    ran_on: set[str] = attrs.field(factory=set)
    """The workers on which it was really seen to run."""

    @property
    def stage(self) -> Stage:
        """How far it has come."""
        if self.ended is not None:
            return Stage.FAILED if self.failed else Stage.FINISHED
        return Stage.QUEUED if self.admitted is None else Stage.RUNNING

    @property
    def went_well(self) -> bool:
        """Whether it finished, ran on one worker, and on the one that the manager names."""
        return self.stage is Stage.FINISHED and self.ran_on == {self.cluster}


@attrs.define(eq=False)
class Tally:
    """Collects what the watches of the manager and the workers show."""

    stories: dict[ObjectKey, Story] = attrs.field(factory=dict)
    cpus: dict[ObjectKey, float] = attrs.field(factory=dict)
    """CPUs each job asks for."""
    copies: dict[str, set[str]] = attrs.field(factory=dict)
    """Objects of ours on each worker right now."""

    def submitted(self, job: Json, at: float) -> None:
        """A Job was created on the manager."""
        key = ObjectKey.of(job)
        self.stories.setdefault(key, Story(key, at))
        self.cpus[key] = requested_cpus(job)

    def saw_workload(self, workload: Json, at: float) -> None:
        """The manager shows this Workload."""
        owned_by = owner(workload)
        story = self.stories.get(ObjectKey(workload["metadata"]["namespace"], owned_by.name)) if owned_by else None
        if story is None:
            return
        story.cluster = cluster_name(workload) or story.cluster
        if story.admitted is None and is_admitted(workload):
            story.admitted = at

    def saw_job(self, job: Json, at: float) -> None:
        """The manager shows this Job."""
        story = self.stories.get(ObjectKey.of(job))
        if story is None or story.ended is not None:
            return
        story.failed = is_true(job, "Failed")
        if story.failed or is_true(job, "Complete"):
            story.ended = at

    def saw_copy(self, worker: str, resource: str, key: ObjectKey, copy: Json | None) -> None:
        """A worker shows this object with our label, or shows it no more."""
        copies = self.copies.setdefault(worker, set())
        name = f"{resource} {key}"
        if copy is None:
            copies.discard(name)
            return
        copies.add(name)
        story = self.stories.get(key)
        if story is not None and dig(copy, "status", "startTime"):
            story.ran_on.add(worker)

    def count(self, *stages: Stage) -> int:
        """How many jobs are in one of these stages."""
        return sum(story.stage in stages for story in self.stories.values())

    def running_on(self, worker: str) -> Iterable[Story]:
        """The jobs a worker has now."""
        return (story for story in self.stories.values() if story.stage is Stage.RUNNING and story.cluster == worker)

    @property
    def all_ended(self) -> bool:
        """Whether every job has ended."""
        return all(story.ended is not None for story in self.stories.values())

    @property
    def leftovers(self) -> int:
        """How many objects of ours are still on workers."""
        return sum(len(copies) for copies in self.copies.values())


def requested_cpus(job: Json) -> float:
    """CPUs a Job asks for in all: containers times parallelism."""
    pods = int(dig(job, "spec", "parallelism") or 1)
    containers = dig(job, "spec", "template", "spec", "containers") or []
    return pods * sum(_cpus(dig(container, "resources", "requests", "cpu")) for container in containers)


def _cpus(quantity: object) -> float:
    text = str(quantity or 0)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
