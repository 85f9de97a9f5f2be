"""Pods that controllers make: those of jobs, for who wants to read logs or to see pods end, and those of sets.

A job's own status does not depend on its pods (see `kinds.course`). They follow it: they are made when it runs, as many
as it says that run, end when it ends, and are deleted when it is suspended. Of a set the controller makes the pods that
it should have, removes those too many, and counts the ready ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count, islice
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import conditions, new_condition, timestamp, updated
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, clone, dig, digest, is_terminating, labels_of, uid
from multikueue.errors import AlreadyExists
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION, TRAP_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE, container_statuses
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.effects import Create, Delete, Replace, Step
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed
from multikueue.sandbox.kueue.scheduling.newest import Newest
from multikueue.sandbox.objects import built, owned_by, with_claims

_LONG: Final = "8760h"
"""How long a pod would run by itself: until its job ends."""


def owners(pod: Json) -> list[str]:
    """The UIDs of what a pod belongs to."""
    return [owner["uid"] for owner in dig(pod, "metadata", "ownerReferences") or []]


def has_ended(pod: Json) -> bool:
    """Whether nothing of it runs any more, though it may be there."""
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def job_pods(
    kind: SandboxKind, job: Json, holders: list[Json], pods: list[Json], now: datetime, *, blocking: bool
) -> Iterator[Step]:
    """What is to be done about the pods of a job.

    Args:
        kind: of the job.
        job: one that the kind's own controller is to run, or to stop.
        holders: what its pods are to belong to: the job, or the Jobs that it has made.
        pods: all of it that are there.
        now: the wall clock.
        blocking: whether new pods keep a job that is deleted in the foreground.
    """
    live = sorted((pod for pod in pods if not has_ended(pod) and not is_terminating(pod)), key=_name)
    ending = kind.ending(job)
    if ending is not None:
        yield from (ended(pod, failed=ending.reason == "Failed", now=now) for pod in live)
        return
    if is_terminating(job):
        return  # none is made any more, and only the garbage collector deletes them
    templates = _templates(kind, job)
    yield from map(_deleted, live[len(templates) :])
    if templates and not holders:
        yield from _made_jobs(kind, job)
        return
    names = (f"{job['metadata']['name'][:57]}-{digest([uid(job), number])[:5]}" for number in count())
    free = (name for name in names if name not in set(map(_name, pods)))
    for (number, template), name in zip(templates[len(live) :], islice(free, len(templates)), strict=False):
        holder = holders[number % len(holders)]
        yield Step(Create(POD_RESOURCE, _job_pod(kind, job, holder, template, name, blocking=blocking)))


def _made_jobs(kind: SandboxKind, job: Json) -> Iterator[Step]:
    """Jobs that nobody runs but who has made them; here they hold its pods, and their status says nothing."""
    metadata = job["metadata"]
    for pod_set in kind.pods.read(job):
        spec = {"managedBy": kind.operator, "template": pod_set["template"]}
        made = built(JOB, f"{metadata['name']}-{pod_set['name']}-0", metadata["namespace"], spec=spec)
        made["metadata"]["ownerReferences"] = [owned_by(kind.resource, job)]
        yield Step(Create(JOB, made))


def _templates(kind: SandboxKind, job: Json) -> list[tuple[int, Json]]:
    """One for each pod that it should have, with the number of its pod set."""
    if kind.is_held(job) or not kind.course.is_active(job):
        return []
    if kind is BATCH_JOB:
        return [(0, dig(job, "spec", "template") or {})] * int(dig(job, "status", "active") or 0)
    return [
        (number, _labelled(pod_set["template"], kind.pod_labels(job, pod_set["name"], index)))
        for number, pod_set in enumerate(kind.pods.running(job))
        for index in range(pod_set["count"])
    ]


def _labelled(template: Json, labels: Mapping[str, str]) -> Json:
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": {**labels_of(template), **labels}}}


def _job_pod(kind: SandboxKind, job: Json, holder: Json, template: Json, name: str, *, blocking: bool) -> Json:
    resource = JOB if kind.makes_jobs else kind.resource
    labels = {"batch.kubernetes.io/job-name": holder["metadata"]["name"]} if resource == JOB else {}
    pod = _made_pod(resource, holder, template, name, labels)
    noted = annotations_of(pod) | {DURATION_ANNOTATION: _LONG}
    traps = annotations_of(job).get(TRAP_ANNOTATION)
    pod["metadata"]["annotations"] = {TRAP_ANNOTATION: traps, **noted} if traps else noted
    pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = blocking
    return pod


def ended(pod: Json, *, failed: bool, now: datetime) -> Step:
    """The write that says so."""
    reason = "Error" if failed else "Completed"
    state = {"terminated": {"exitCode": int(failed), "reason": reason, "finishedAt": timestamp(now)}}
    return _with_status(pod, "Failed" if failed else "Succeeded", state)


def unready(pod: Json, now: datetime) -> Step:
    """The write that says that nobody knows whether it runs: its phase stays."""
    listed = updated(conditions(pod), new_condition("Ready", False, "", "", now=now))
    return Step(Replace(POD_RESOURCE, {**pod, "status": {**pod["status"], "conditions": listed}}, "status"))


@attrs.define(eq=False)
class SetPods:
    """The pods of sets, and the statuses of these, on one API server."""

    client: ApiClient
    recorder: Recorder
    kinds: Mapping[Resource, SetKind]
    _objects: dict[Resource, Newest] = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._objects = {POD_RESOURCE: Newest(owners), **{resource: Newest() for resource in self.kinds}}
        self._performer = Performer(self.client, self.recorder, self._observe)
        self._controller = Controller("set-runner", self)

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
        for step in self._steps(resource, owner, self._objects[POD_RESOURCE].by(uid(owner))):
            with suppress(AlreadyExists):  # somebody else's pod: its owner stays one short
                await self._performer.perform(step)
        return Action.done()

    def _steps(self, resource: Resource, owner: Json, pods: list[Json]) -> Iterator[Step]:
        kind, there = self.kinds[resource], {pod["metadata"]["name"]: pod for pod in pods}
        wanted = {member.name: member for member in kind.members(owner)}
        for name in sorted(wanted.keys() - there.keys()):
            pod = _made_pod(resource, owner, wanted[name].template, name, wanted[name].labels)
            yield Step(Create(POD_RESOURCE, pod))
        surplus = [there[name] for name in sorted(there.keys() - wanted.keys())]
        yield from (_deleted(pod) for pod in surplus if not is_terminating(pod))
        ready = frozenset(name for name, pod in there.items() if POD.course.pods_ready(pod))
        status = kind.status(owner, ready, self.recorder.clock())
        if status != owner.get("status"):
            yield Step(Replace(resource, {**owner, "status": status}, "status"))

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


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def _deleted(pod: Json) -> Step:
    return Step(Delete(POD_RESOURCE, ObjectKey.of(pod), uid(pod)))


def _with_status(pod: Json, phase: str, state: Json, **more: str) -> Step:
    """The pod in a phase, and all its containers in a state."""
    ready = {"type": "Ready", "status": str(phase == "Running")}
    status = {**(pod.get("status") or {}), **more, "phase": phase, "conditions": [ready]}
    status["containerStatuses"] = container_statuses(pod, state)
    return Step(Replace(POD_RESOURCE, {**pod, "status": status}, "status"))


def _made_pod(resource: Resource, owner: Json, template: Json, name: str, labels: Mapping[str, str]) -> Json:
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
            "ownerReferences": [owned_by(resource, owner)],
        },
        "spec": with_claims(template["spec"], owner, name),
    }
