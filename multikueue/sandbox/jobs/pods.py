"""Pods that a controller makes: those of Jobs, for those who want to read their logs, and those of sets.

A Job's own status does not depend on its pods (see `kinds.job_course`). They follow it: they are made when it runs, as
many as it says that run, end when it ends, and go when it is suspended. Of a set the controller makes the pods that it
should have, removes those too many, and counts the ready ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig, digest, is_terminating, uid
from multikueue.errors import AlreadyExists
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE, container_statuses
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.effects import Create, Delete, Replace, Step
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed
from multikueue.sandbox.kueue.scheduling.newest import Newest
from multikueue.sandbox.objects import owned_by

_LONG: Final = "8760h"
"""How long a pod would run by itself: until its Job ends."""
_ENDED: Final = ("Succeeded", "Failed")


def _owners(pod: Json) -> list[str]:
    return [owner["uid"] for owner in dig(pod, "metadata", "ownerReferences") or []]


@attrs.define(eq=False)
class PodKeeper(ABC):
    """Keeps the pods of the objects of some kinds, on one API server."""

    client: ApiClient
    recorder: Recorder
    name: str
    """Of the controller."""
    kinds: Mapping[Resource, SandboxKind]
    _objects: dict[Resource, Newest] = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._objects = {POD_RESOURCE: Newest(_owners), **{resource: Newest() for resource in self.kinds}}
        self._performer = Performer(self.client, self.recorder, self._observe)
        self._controller = Controller(self.name, self)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all pods and their owners there are have been seen."""
        caches = [Informer(self.client, kind, on_change=partial(self._changed, kind)) for kind in self._objects]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            tasks.start_soon(self._controller.run)
            task_status.started()

    async def reconcile(self, key: tuple[Resource, ObjectKey]) -> Action:
        """Bring the pods of one object in line with it."""
        resource, name = key
        owner = self._objects[resource].get(name)
        if owner is None or is_terminating(owner):
            return Action.done()
        for step in self.steps(resource, owner, self._objects[POD_RESOURCE].by(uid(owner))):
            with suppress(AlreadyExists):  # somebody else's pod: its owner stays one short
                await self._performer.perform(step)
        return Action.done()

    @abstractmethod
    def steps(self, resource: Resource, owner: Json, pods: list[Json]) -> Iterator[Step]:
        """What is to be done about the pods of an object."""

    def _changed(self, resource: Resource, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(resource, typed(resource, new))
        elif old is not None:
            self._objects[resource].remove(old)
            self._concern(resource, old)

    def _observe(self, resource: Resource, obj: Json) -> None:
        if self._objects[resource].observe(obj):
            self._concern(resource, obj)

    def _concern(self, resource: Resource, obj: Json) -> None:
        if resource != POD_RESOURCE:
            self._controller.enqueue((resource, ObjectKey.of(obj)))
            return
        kinds = {kind.gvk.kind: kind for kind in self.kinds}
        for owner in dig(obj, "metadata", "ownerReferences") or []:
            if owner["kind"] in kinds:
                key = ObjectKey(obj["metadata"]["namespace"], owner["name"])
                self._controller.enqueue((kinds[owner["kind"]], key))


class JobPods(PodKeeper):
    """The pods of Jobs."""

    def steps(self, resource: Resource, owner: Json, pods: list[Json]) -> Iterator[Step]:
        """See `PodKeeper`."""
        ending = BATCH_JOB.course.ending(owner)
        active = dig(owner, "status", "active") or 0
        if ending is not None:
            failed = ending.reason == "Failed"
            going = (pod for pod in pods if dig(pod, "status", "phase") not in _ENDED)
            yield from (Step(Replace(POD_RESOURCE, self._ended(pod, failed=failed), "status")) for pod in going)
        elif not active:
            yield from map(_deleted, pods)
        else:
            there = {pod["metadata"]["name"] for pod in pods}
            made = (_job_pod(owner, number) for number in range(active))
            yield from (Step(Create(POD_RESOURCE, pod)) for pod in made if pod["metadata"]["name"] not in there)
            waiting = (pod for pod in pods if dig(pod, "status", "phase") == "Pending")
            yield from (Step(Replace(POD_RESOURCE, self._running(pod), "status")) for pod in waiting)

    def _running(self, pod: Json) -> Json:
        now = timestamp(self.recorder.clock())
        return _with_status(pod, "Running", {"running": {"startedAt": now}}, startTime=now)

    def _ended(self, pod: Json, *, failed: bool) -> Json:
        reason, now = "Error" if failed else "Completed", timestamp(self.recorder.clock())
        ended = {"terminated": {"exitCode": int(failed), "reason": reason, "finishedAt": now}}
        return _with_status(pod, _ENDED[failed], ended)


@attrs.define(eq=False)
class SetPods(PodKeeper):
    """The pods of sets, and the statuses of these."""

    kinds: Mapping[Resource, SetKind]

    def steps(self, resource: Resource, owner: Json, pods: list[Json]) -> Iterator[Step]:
        """See `PodKeeper`."""
        kind, there = self.kinds[resource], {pod["metadata"]["name"]: pod for pod in pods}
        wanted = {member.name: member for member in kind.members(owner)}
        for name in sorted(wanted.keys() - there.keys()):
            pod = _made_pod(kind, owner, wanted[name].template, name, wanted[name].labels)
            yield Step(Create(POD_RESOURCE, pod))
        yield from (_deleted(there[name]) for name in sorted(there.keys() - wanted.keys()))
        ready = frozenset(name for name, pod in there.items() if POD.course.pods_ready(pod))
        status = kind.status(owner, ready, self.recorder.clock())
        if status != owner.get("status"):
            yield Step(Replace(resource, {**owner, "status": status}, "status"))


def _deleted(pod: Json) -> Step:
    return Step(Delete(POD_RESOURCE, ObjectKey.of(pod), uid(pod)))


def _with_status(pod: Json, phase: str, state: Json, **more: str) -> Json:
    """The pod in a phase, and all its containers in a state."""
    ready = {"type": "Ready", "status": str(phase == "Running")}
    status = {**(pod.get("status") or {}), **more, "phase": phase, "conditions": [ready]}
    return {**pod, "status": {**status, "containerStatuses": container_statuses(pod, state)}}


def _job_pod(job: Json, number: int) -> Json:
    """One of a Job's pods; its name is the same each time."""
    name = job["metadata"]["name"]
    made = f"{name[:57]}-{digest([uid(job), number])[:5]}"
    pod = _made_pod(BATCH_JOB, job, dig(job, "spec", "template") or {}, made, {"batch.kubernetes.io/job-name": name})
    pod["metadata"].setdefault("annotations", {})[DURATION_ANNOTATION] = _LONG
    return pod


def _made_pod(kind: SandboxKind, owner: Json, template: Json, name: str, labels: Mapping[str, str]) -> Json:
    template = clone(template)
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **labels},
            "ownerReferences": [owned_by(kind.resource, owner)],
        },
        "spec": template["spec"],
    }
