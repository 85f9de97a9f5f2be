"""The controllers of sets: they make a set's pods, remove those too many, and count the ready ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig, is_terminating, uid
from multikueue.errors import AlreadyExists
from multikueue.kube.informer import Informer
from multikueue.kube.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE
from multikueue.sandbox.kinds.sets import Member, SetKind
from multikueue.sandbox.kueue.building import owner_reference
from multikueue.sandbox.kueue.effects import Create, Delete, Replace, Step
from multikueue.sandbox.kueue.newest import Newest
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed


def _owners(pod: Json) -> list[str]:
    return [owner["uid"] for owner in dig(pod, "metadata", "ownerReferences") or []]


@attrs.define(eq=False)
class SetRunner:
    """Keeps the pods of the sets of one API server."""

    client: ApiClient
    kinds: Sequence[SetKind]
    recorder: Recorder
    _sets: dict[Resource, Newest] = attrs.field(init=False)
    _pods: Newest = attrs.field(factory=lambda: Newest(_owners), init=False)
    _rows: dict[Resource, SetKind] = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rows = {kind.resource: kind for kind in self.kinds}
        self._sets = {resource: Newest() for resource in self._rows}
        self._performer = Performer(self.client, self.recorder, self._observe)
        self._controller = Controller("set-runner", self)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all sets and pods there are have been seen."""
        caches = [
            Informer(self.client, resource, on_change=partial(self._changed, resource))
            for resource in (POD_RESOURCE, *self._rows)
        ]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            tasks.start_soon(self._controller.run)
            task_status.started()

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        return self._controller.idle

    async def reconcile(self, key: tuple[Resource, ObjectKey]) -> Action:
        """Bring one set forward."""
        resource, name = key
        kind, job = self._rows[resource], self._sets[resource].get(name)
        if job is None or is_terminating(job):
            return Action.done()
        wanted = {member.name: member for member in kind.members(job)}
        there = {pod["metadata"]["name"]: pod for pod in self._pods.by(uid(job))}
        for missing in sorted(wanted.keys() - there.keys()):
            with suppress(AlreadyExists):  # somebody else's pod: the set stays one short
                await self._performer.perform(Step(Create(POD_RESOURCE, _pod(kind, job, wanted[missing]))))
        for surplus in sorted(there.keys() - wanted.keys()):
            pod = there[surplus]
            await self._performer.perform(Step(Delete(POD_RESOURCE, ObjectKey.of(pod), uid(pod))))
        ready = frozenset(found for found, pod in there.items() if POD.course.pods_ready(pod))
        status = kind.status(job, ready, self.recorder.clock())
        if status != job.get("status"):
            await self._performer.perform(Step(Replace(resource, {**job, "status": status}, "status")))
        return Action.done()

    def _changed(self, resource: Resource, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(resource, typed(resource, new))
        elif old is not None:
            (self._pods if resource == POD_RESOURCE else self._sets[resource]).remove(old)
            self._concern(resource, old)

    def _observe(self, resource: Resource, obj: Json) -> None:
        known = self._pods if resource == POD_RESOURCE else self._sets[resource]
        if known.observe(obj):
            self._concern(resource, obj)

    def _concern(self, resource: Resource, obj: Json) -> None:
        if resource != POD_RESOURCE:
            self._controller.enqueue((resource, ObjectKey.of(obj)))
            return
        kinds = {kind.resource.gvk.kind: kind.resource for kind in self.kinds}
        for owner in dig(obj, "metadata", "ownerReferences") or []:
            if owner["kind"] in kinds:
                key = ObjectKey(obj["metadata"]["namespace"], owner["name"])
                self._controller.enqueue((kinds[owner["kind"]], key))


def _pod(kind: SetKind, job: Json, member: Member) -> Json:
    template = clone(member.template)
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": member.name,
            "namespace": job["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **member.labels},
            "ownerReferences": [owner_reference(kind, job)],
        },
        "spec": template["spec"],
    }
