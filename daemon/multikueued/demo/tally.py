"""What a demo has seen so far of every job, and which objects are on which worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from multikueue import Json, ObjectKey, Resource
from multikueue.core.model.workloads import cluster_name, has_quota
from multikueue.sandbox.kinds import SandboxKind
from multikueued.demo.jobs import Submission
from multikueued.workers.jobs import obstacle

Place: TypeAlias = tuple[Resource, str]
"""A job's kind and its name; for a group of pods the group's name."""
WORKLOAD_KIND: Final = "workload"
"""What `Tally.saw_copy` takes for a Workload."""
_MANAGER = ""


class Stage(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    SERVED = "served"
    """It does not end by itself, and ran until it was deleted."""
    FAILED = "failed"


@attrs.define
class WorkerStay:
    """A time on a worker, in seconds since the start."""

    worker: str
    since: float
    until: float | None = None


@attrs.define(eq=False)
class JobRecord:
    """What has been seen of one job. Times are seconds since the start."""

    kind: SandboxKind
    key: ObjectKey
    queued: float
    cpus: float
    """What it requests."""
    placed: dict[str, str] = attrs.field(factory=dict)
    """The worker that each of its Workloads is assigned to."""
    admitted: float | None = None
    ended: float | None = None
    failed: bool = False
    retired: bool = False
    """Whether it was deleted because it does not end by itself."""
    ran_on: set[str] = attrs.field(factory=set)
    """The workers on which it was seen to run."""
    objects: dict[str, Json] = attrs.field(factory=dict)
    """Its objects on the manager, by name."""
    ready: bool = False
    """Whether its status shows that it runs."""
    held_up: dict[str, str] = attrs.field(factory=dict)
    """What its Workload waits for, by worker; an empty name: the manager."""
    stays: list[WorkerStay] = attrs.field(factory=list)
    """The workers that had it, one after the other."""

    @property
    def clusters(self) -> set[str]:
        """The workers that the manager names."""
        return set(self.placed.values())

    @property
    def ended_out_of_reach(self) -> str:
        """The worker that it was taken from, and where it has ended all the same; empty: none."""
        return self.stays[-1].worker if self.ended is not None and self.stays and not self.placed else ""

    @property
    def cluster(self) -> str:
        """Where it is, or has ended, as text."""
        return ", ".join(sorted(self.clusters)) or self.ended_out_of_reach

    @property
    def stage(self) -> Stage:
        """Its state."""
        if self.ended is not None:
            if self.failed:
                return Stage.FAILED
            return Stage.SERVED if self.retired else Stage.FINISHED
        return Stage.RUNNING if self.placed else Stage.QUEUED

    @property
    def serves(self) -> bool:
        """Whether it does not end by itself."""
        return any(self.kind.serves(obj) for obj in self.objects.values())

    @property
    def waits_for(self) -> str:
        """What its Workload waits for, by the manager's message or else the workers'; empty: there is no message."""
        if self.stage is not Stage.QUEUED:
            return ""
        if self.held_up.get(_MANAGER):
            return self.held_up[_MANAGER]
        said: dict[str, list[str]] = {}
        for worker, why in sorted(self.held_up.items()):
            said.setdefault(why, []).append(worker)
        return "; ".join(f"{why} ({', '.join(workers)})" for why, workers in said.items() if why)

    @property
    def moves(self) -> int:
        """How often it went from one worker to another; the pods of a Deployment may be on several at once."""
        return sum(
            stay.worker != following.worker and stay.until is not None and stay.until <= following.since
            for stay, following in pairwise(self.stays)
        )

    @property
    def went_well(self) -> bool:
        """Whether it finished, and ran only on workers that the manager named, on the last one in any case."""
        named = {stay.worker for stay in self.stays} | self.clusters
        return self.stage in (Stage.FINISHED, Stage.SERVED) and self.clusters <= self.ran_on <= named

    def placed_on(self, workload: str, worker: str | None, at: float) -> None:
        """The manager names a worker for one of its Workloads, or none any more."""
        if worker is not None:
            self.admitted = at if self.admitted is None else self.admitted
            self.placed[workload] = worker
        elif self.ended is None:
            self.placed.pop(workload, None)
        if self.ended is not None:
            return
        now = {stay.worker for stay in self.stays if stay.until is None}
        for stay in self.stays:
            if stay.until is None and stay.worker not in self.clusters:
                stay.until = at
        self.stays += [WorkerStay(name, at) for name in sorted(self.clusters - now)]

    def saw(self, job: Json, at: float) -> None:
        """An object of it was added or changed on the manager."""
        self.objects[job["metadata"]["name"]] = job
        endings = [self.kind.ending(obj) for obj in self.objects.values()]
        self.ready = self.ready or all(self.kind.course.pods_ready(obj) for obj in self.objects.values())
        if self.ended is None and all(ending is not None for ending in endings):
            self.failed = any(ending.reason == "Failed" for ending in endings if ending is not None)
            self._end(at)

    def lost(self, name: str, at: float) -> None:
        """An object of it was deleted on the manager."""
        del self.objects[name]
        if self.retired and not self.objects and self.ended is None:
            self._end(at)

    def _end(self, at: float) -> None:
        self.ended = at
        for stay in self.stays:
            stay.until = at if stay.until is None else stay.until
        if self.ended_out_of_reach:
            self.stays[-1].until = at  # it was there all the time


@attrs.define(eq=False)
class Tally:
    """Collects the events of the watches on the manager and the workers."""

    stories: dict[Place, JobRecord] = attrs.field(factory=dict)
    owned: dict[str, JobRecord] = attrs.field(factory=dict)
    """The Deployments that pods belong to, by the pod's name."""
    workloads: dict[str, JobRecord] = attrs.field(factory=dict)
    """The jobs by the names of their Workloads, which are the same on the workers."""
    copies: dict[str, set[str]] = attrs.field(factory=dict)
    """Our objects on each worker now."""
    offers: dict[str, set[str]] = attrs.field(factory=dict)
    """The workers that have a copy of each Workload now."""
    reserved: set[tuple[str, str]] = attrs.field(factory=set)
    """The Workloads that ever got quota on a worker, and which."""
    reached: set[str] = attrs.field(factory=set)
    """The workers that can be reached, as the manager says."""
    lost: dict[str, float] = attrs.field(factory=dict)
    """Since when which workers cannot be reached, as the manager says."""
    losses: list[WorkerStay] = attrs.field(factory=list)
    """The times in which a worker could not be reached."""
    news: deque[tuple[float, str]] = attrs.field(factory=lambda: deque(maxlen=50))
    """What happened last, and when."""

    def submitted(self, job: Submission, at: float) -> None:
        """A job was created on the manager."""
        place = (job.kind.resource, job.name)
        namespace = job.objects[0]["metadata"]["namespace"]
        self.stories.setdefault(place, JobRecord(job.kind, ObjectKey(namespace, job.name), at, job.cpus))

    def saw_workload(self, workload: Json, at: float) -> None:
        """A Workload was added or changed on the manager."""
        name, place = workload["metadata"]["name"], cluster_name(workload)
        story = self._story_of(workload, name)  # the Workload of a group of pods has the group's name
        if story is None:
            return
        self.workloads[name] = story
        story.held_up[_MANAGER] = obstacle(workload)
        before = story.placed.get(name)
        story.placed_on(name, place, at)
        if place is not None and place != before:
            self._tell_placed(story, name, place, at)
        elif before is not None and place is None and story.ended is None:
            self.news.append((at, f"{story.key.name} has to leave {before}"))

    def _tell_placed(self, story: JobRecord, workload: str, place: str, at: float) -> None:
        others = sorted(self.offers.get(workload, set()) - {place})
        rest = f", withdrawn from {', '.join(others)}" if others else ""
        self.news.append((at, f"{story.key.name} goes to {place}{rest}"))

    def saw_worker(self, name: str, active: bool, at: float) -> None:
        """The manager says whether a worker can be reached."""
        (self.reached.add if active else self.reached.discard)(name)
        if active and name in self.lost:
            self.losses.append(WorkerStay(name, self.lost.pop(name), at))
            self.news.append((at, f"{name} is back"))
        elif not active and name not in self.lost:
            self.lost[name] = at
            self.news.append((at, f"{name} cannot be reached"))

    def saw_job(self, kind: SandboxKind, job: Json | None, name: str, at: float) -> None:
        """A job was added, changed or deleted on the manager."""
        if job is None:
            for story in self.stories.values():
                if story.kind.resource == kind.resource and name in story.objects:
                    story.lost(name, at)
            return
        if owner := self._story_of(job):  # a Deployment's pods are dispatched one by one
            self.owned[name] = owner
        if record := self.stories.get((kind.resource, kind.job_name(job))):
            record.saw(job, at)

    def saw_copy(self, worker: str, kind: str, key: ObjectKey, copy: Json | None) -> None:
        """An object with our label was added, changed or deleted on a worker."""
        copies = self.copies.setdefault(worker, set())
        (copies.discard if copy is None else copies.add)(f"{kind} {key}")
        if kind == WORKLOAD_KIND:
            offers = self.offers.setdefault(key.name, set())
            (offers.discard if copy is None else offers.add)(worker)

    def saw_offer(self, worker: str, workload: Json) -> None:
        """A Workload copy was added or changed on a worker."""
        name = workload["metadata"]["name"]
        if has_quota(workload):
            self.reserved.add((name, worker))
        if story := self.workloads.get(name):
            story.held_up[worker] = obstacle(workload)

    def saw_running(self, worker: str, kind: SandboxKind, copy: Json) -> None:
        """A job copy was added or changed on a worker."""
        story = self.stories.get((kind.resource, kind.job_name(copy))) or self.owned.get(copy["metadata"]["name"])
        if story is None:
            return
        if kind.course.is_active(copy) or kind.ending(copy) is not None:
            story.ran_on.add(worker)
        story.ready = story.ready or (not kind.reports and kind.course.pods_ready(copy))

    def count(self, *stages: Stage) -> int:
        """How many jobs are in one of these stages."""
        return sum(story.stage in stages for story in self.stories.values())

    def running_on(self, worker: str) -> Iterable[JobRecord]:
        """The jobs that run on a worker now."""
        return (story for story in self.stories.values() if story.stage is Stage.RUNNING and worker in story.clusters)

    def offered_to(self, worker: str) -> Iterable[JobRecord]:
        """The jobs that a worker has a copy of and has not got."""
        return (
            story
            for workload, story in self.workloads.items()
            if story.stage is Stage.QUEUED and worker in self.offers.get(workload, ())
        )

    @property
    def all_ended(self) -> bool:
        """Whether every job has ended."""
        return all(story.ended is not None for story in self.stories.values())

    @property
    def leftovers(self) -> int:
        """How many of our objects are still on workers."""
        return sum(len(copies) for copies in self.copies.values())

    def _story_of(self, obj: Json, *names: str) -> JobRecord | None:
        """The job that owns an object, directly or through one of its pods; `names`: of groups that may own it."""
        for owner in obj["metadata"].get("ownerReferences") or []:
            for (resource, name), story in self.stories.items():
                if resource.gvk.kind == owner["kind"] and name in (owner["name"], *names):
                    return story
            if owner["name"] in self.owned:
                return self.owned[owner["name"]]
        return None
