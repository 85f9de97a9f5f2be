"""The pods of Jobs, for those who want to read their logs: as many as a Job says that run.

A Job's own status does not depend on them (see `kinds.job_course`). They follow it: they are made when it runs, end
when it ends, and go when it is suspended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig, digest, is_terminating, uid
from multikueue.errors import AlreadyExists
from multikueue.kube.informer import Informer
from multikueue.kube.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue.building import owner_reference
from multikueue.sandbox.kueue.effects import Create, Delete, Replace, Step
from multikueue.sandbox.kueue.newest import Newest
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed

_LONG: Final = "8760h"
"""How long a pod would run by itself: until its Job ends."""
_ENDED: Final = ("Succeeded", "Failed")


def _owners(pod: Json) -> list[str]:
    return [owner["uid"] for owner in dig(pod, "metadata", "ownerReferences") or []]


@attrs.define(eq=False)
class JobPods:
    """Keeps the pods of the Jobs of one API server."""

    client: ApiClient
    recorder: Recorder
    _jobs: Newest = attrs.field(factory=Newest, init=False)
    _pods: Newest = attrs.field(factory=lambda: Newest(_owners), init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[ObjectKey] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._performer = Performer(self.client, self.recorder, self._observe)
        self._controller = Controller("job-pods", self)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all Jobs and pods there are have been seen."""
        caches = [Informer(self.client, kind, on_change=partial(self._changed, kind)) for kind in (POD, JOB)]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            tasks.start_soon(self._controller.run)
            task_status.started()

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring the pods of one Job in line with its status."""
        job = self._jobs.get(key)
        if job is None or is_terminating(job):
            return Action.done()
        for step in self._steps(job, self._pods.by(uid(job))):
            with suppress(AlreadyExists):
                await self._performer.perform(step)
        return Action.done()

    def _steps(self, job: Json, pods: list[Json]) -> Iterator[Step]:
        ending = BATCH_JOB.course.ending(job)
        active = dig(job, "status", "active") or 0
        if ending is not None:
            failed = ending.reason == "Failed"
            going = (pod for pod in pods if dig(pod, "status", "phase") not in _ENDED)
            yield from (Step(Replace(POD, self._ended(pod, failed=failed), "status")) for pod in going)
        elif not active:
            yield from (Step(Delete(POD, ObjectKey.of(pod), uid(pod))) for pod in pods)
        else:
            there = {pod["metadata"]["name"] for pod in pods}
            made = (pod_of(job, number) for number in range(active))
            yield from (Step(Create(POD, pod)) for pod in made if pod["metadata"]["name"] not in there)
            waiting = (pod for pod in pods if dig(pod, "status", "phase") == "Pending")
            yield from (Step(Replace(POD, self._running(pod), "status")) for pod in waiting)

    def _running(self, pod: Json) -> Json:
        now = timestamp(self.recorder.clock())
        return _with_status(pod, "Running", {"running": {"startedAt": now}}, startTime=now)

    def _ended(self, pod: Json, *, failed: bool) -> Json:
        reason, now = "Error" if failed else "Completed", timestamp(self.recorder.clock())
        ended = {"terminated": {"exitCode": int(failed), "reason": reason, "finishedAt": now}}
        return _with_status(pod, _ENDED[failed], ended)

    def _changed(self, resource: Resource, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(resource, typed(resource, new))
        elif old is not None:
            (self._pods if resource == POD else self._jobs).remove(old)
            self._concern(resource, old)

    def _observe(self, resource: Resource, obj: Json) -> None:
        if (self._pods if resource == POD else self._jobs).observe(obj):
            self._concern(resource, obj)

    def _concern(self, resource: Resource, obj: Json) -> None:
        if resource == JOB:
            self._controller.enqueue(ObjectKey.of(obj))
            return
        for owner in dig(obj, "metadata", "ownerReferences") or []:
            if owner["kind"] == JOB.gvk.kind:
                self._controller.enqueue(ObjectKey(obj["metadata"]["namespace"], owner["name"]))


def _with_status(pod: Json, phase: str, state: Json, **more: str) -> Json:
    """The pod in a phase, and all its containers in a state."""
    running = phase == "Running"
    told = {"ready": running, "started": running, "restartCount": 0, "state": state, "imageID": ""}
    containers = [{"name": one["name"], "image": one["image"], **told} for one in pod["spec"]["containers"]]
    ready = {"type": "Ready", "status": str(running)}
    status = {**(pod.get("status") or {}), **more, "phase": phase, "conditions": [ready]}
    return {**pod, "status": {**status, "containerStatuses": containers}}


def pod_of(job: Json, number: int) -> Json:
    """One of a Job's pods; its name is the same each time."""
    template = clone(dig(job, "spec", "template") or {})
    metadata = template.get("metadata") or {}
    name = job["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": f"{name[:57]}-{digest([uid(job), number])[:5]}",
            "namespace": job["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), "batch.kubernetes.io/job-name": name},
            "annotations": {**(metadata.get("annotations") or {}), DURATION_ANNOTATION: _LONG},
            "ownerReferences": [owner_reference(BATCH_JOB, job)],
        },
        "spec": template["spec"],
    }
