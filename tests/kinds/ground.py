"""What a journey does and sees, whatever servers it goes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.abc
import attrs

from multikueue.core.kinds import LOCAL_QUEUE, WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.core.objects import dig, labels_of, uid
from multikueue.core.workloads import cluster_name
from multikueue.kube import ObjectCache
from multikueue.protocols import ApiClient
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME, local_queue

NAMESPACE = "default"
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "mine"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
            }
        ],
    },
}
_SECONDS = 60.0  # what must happen takes a tenth of that

T = TypeVar("T")


@attrs.define(eq=False)
class Cluster:
    """One cluster, and everything it ever showed."""

    name: str
    client: ApiClient
    now: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """What there is, by kind and name."""
    first: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """The first version of each."""
    last: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """The newest version of each, gone or not."""
    uids: dict[tuple[Resource, str], set[str]] = attrs.field(factory=dict, init=False)

    def observe(self, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Take note of a change."""
        place = (resource, key.name)
        if new is None:
            self.now.pop(place, None)
            return
        if old is None:
            self.first[place] = new
        self.now[place] = self.last[place] = new
        self.uids.setdefault(place, set()).add(uid(new))

    def get(self, resource: Resource, name: str) -> Json | None:
        """An object, if it is there."""
        return self.now.get((resource, name))


@attrs.define(eq=False)
class Ground:
    """A manager, workers, and the dispatcher between them, all running."""

    manager: Cluster
    workers: Mapping[str, Cluster]
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @property
    def clusters(self) -> list[Cluster]:
        """The manager first."""
        return [self.manager, *self.workers.values()]

    async def follow(
        self, resources: list[Resource], *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Watch these kinds and Workloads until cancelled; started once all there is has been seen."""
        async with anyio.create_task_group() as tasks:
            caches = [
                ObjectCache(cluster.client, resource, on_change=partial(self._observe, cluster, resource))
                for cluster in self.clusters
                for resource in (WORKLOAD, *resources)
            ]
            for cache in caches:
                tasks.start_soon(cache.run)
            for cache in caches:
                await cache.wait_synced()
            task_status.started()

    async def until(self, look: Callable[[], T | None], otherwise: Callable[[], object]) -> T:
        """Look after every change until there is something to see.

        Raises:
            AssertionError: there was nothing in time; `otherwise` says what there was instead.
        """
        with anyio.move_on_after(_SECONDS):
            while True:
                changed = self._changed
                found = look()
                if found:
                    return found
                await changed.wait()
        raise AssertionError(f"not within {_SECONDS:g} s: {otherwise()}")

    async def submit(
        self, kind: SandboxKind, name: str, *, queue: str = LOCAL_QUEUE_NAME, duration: str = "1s", fails: bool = False
    ) -> Json:
        """Create a job on the manager, as a user would."""
        job = kind.example(name, TEMPLATE, queue=queue)
        noted = {DURATION_ANNOTATION: duration, OUTCOME_ANNOTATION: "fail" if fails else "complete"}
        job["metadata"]["annotations"] = {**(job["metadata"].get("annotations") or {}), **noted}
        return await self.manager.client.create(kind.resource, job)

    async def running(self, kind: SandboxKind, name: str) -> str:
        """Wait until the manager shows that a job runs; return the worker's name."""

        def look() -> str | None:
            job, workload = self.manager.get(kind.resource, name), self.workload_of(name)
            runs = job is not None and kind.course.pods_ready(job)
            return cluster_name(workload) if runs and workload is not None else None

        return await self.until(look, lambda: self.story(kind, name))

    async def ended(self, kind: SandboxKind, name: str, reason: str) -> Json:
        """Wait until a job has ended so on the manager, and its Workload with it; return the job."""

        def look() -> Json | None:
            job, workload = self.manager.get(kind.resource, name), self.workload_of(name)
            ending = kind.ending(job) if job is not None else None
            finished = [entry for entry in dig(workload, "status", "conditions") or [] if entry["type"] == "Finished"]
            so = ending is not None and ending.reason == reason
            return job if so and [entry["reason"] for entry in finished] == [reason] else None

        return await self.until(look, lambda: self.story(kind, name))

    async def cleaned(self, kind: SandboxKind, name: str) -> None:
        """Wait until no worker has anything of ours for a job."""
        await self.until(lambda: not self.copies(kind, name), lambda: self.story(kind, name))

    async def gone(self, kind: SandboxKind, name: str) -> None:
        """Wait until the manager has neither the job nor its Workload."""
        await self.until(
            lambda: self.manager.get(kind.resource, name) is None and self.workload_of(name) is None,
            lambda: self.story(kind, name),
        )

    async def open_queue(self, worker: str, queue: str) -> None:
        """Give a worker a LocalQueue, so that it can admit what is for it."""
        await self.workers[worker].client.create(LOCAL_QUEUE, {**_queue(queue)})

    async def queue_on(self, queue: str, *workers: str) -> None:
        """Create a LocalQueue on the manager and on these workers only."""
        await self.manager.client.create(LOCAL_QUEUE, _queue(queue))
        for worker in workers:
            await self.open_queue(worker, queue)

    def workload_of(self, name: str, cluster: Cluster | None = None) -> Json | None:
        """The Workload that Kueue made for a job."""
        for (resource, _), workload in (cluster or self.manager).now.items():
            owners = workload["metadata"].get("ownerReferences") or []
            if resource == WORKLOAD and any(owner["name"] == name for owner in owners):
                return workload
        return None

    def copies(self, kind: SandboxKind, name: str) -> list[str]:
        """What workers have of ours for a job, as `worker1 Job sample`."""
        return [
            f"{worker.name} {obj['kind']} {obj['metadata']['name']}"
            for worker in self.workers.values()
            for (resource, own), obj in worker.now.items()
            if ORIGIN_LABEL in labels_of(obj)
            and ((resource == kind.resource and own == name) or own == _workload_name(self, name))
        ]

    def ran_on(self, kind: SandboxKind, name: str) -> list[str]:
        """The workers that ever had a copy of a job."""
        return [
            worker.name
            for worker in self.workers.values()
            if ORIGIN_LABEL in labels_of(worker.last.get((kind.resource, name)) or {})
        ]

    def story(self, kind: SandboxKind, name: str) -> dict[str, Any]:
        """What there is to know when a journey does not go on."""
        return {
            "job": {field: (self.manager.get(kind.resource, name) or {}).get(field) for field in ("spec", "status")},
            "workload": dig(self.workload_of(name), "status"),
            "copies": {
                worker.name: (worker.get(kind.resource, name) or {}).get("status") for worker in self.workers.values()
            },
            "remote": {
                worker.name: [
                    dig(obj, "status", "conditions")
                    for (resource, own), obj in worker.now.items()
                    if resource == WORKLOAD and own == _workload_name(self, name)
                ]
                for worker in self.workers.values()
            },
        }

    def _observe(
        self, cluster: Cluster, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None
    ) -> None:
        cluster.observe(resource, key, old, new)
        self._changed.set()
        self._changed = anyio.Event()


def _workload_name(ground: Ground, job: str) -> str:
    """The name of the Workload of a job, gone or not."""
    for (resource, name), workload in ground.manager.last.items():
        owners = workload["metadata"].get("ownerReferences") or []
        if resource == WORKLOAD and any(owner["name"] == job for owner in owners):
            return name
    return ""


def _queue(name: str) -> Json:
    made = local_queue()
    return {**made, "metadata": {**made["metadata"], "name": name}}
