"""What must hold at every step, and what must hold in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import anyio
import attrs

from multikueue.core.conditions import condition, is_true
from multikueue.core.kinds import JOB, WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.core.objects import dig, labels_of
from multikueue.sandbox.apiserver.resources import ResourceType
from tests.simulation.world import CANARY, SimCluster, World

RECONNECT_GRACE: Final = 90.0
"""Seconds a link must have been up for its cluster to count as one that can be reached: what came back a moment ago
is still being cleaned."""

Objects = dict[tuple[str, ObjectKey], Json]


class BrokenPromise(AssertionError):
    """The dispatcher did what it must never do."""


@attrs.define(eq=False)
class Promises:
    """Watches every change on every cluster."""

    world: World
    running: dict[ObjectKey, dict[str, str]] = attrs.field(factory=dict)
    """Per job: on which workers it runs, and as which object."""
    ended: set[tuple[ObjectKey, str]] = attrs.field(factory=set)
    """Manager's jobs that have ended, by key and UID."""
    starts: int = 0
    broken: list[str] = attrs.field(factory=list)
    history: list[str] = attrs.field(factory=list)

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural == "jobs":
                    self._copy_changed(worker, old, new)

            worker.registry.cluster.listeners.append(changed)

    def check(self) -> None:
        """Raise for what was broken since the last look.

        Raises:
            BrokenPromise: with everything that was.
        """
        if self.broken:
            raise BrokenPromise("; ".join(self.broken))

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old
        if row.plural == "jobs" and new is not None and _has_ended(new):
            self.ended.add((ObjectKey.of(new), new["metadata"]["uid"]))

    def _copy_changed(self, worker: SimCluster, old: Json | None, new: Json | None) -> None:
        job = new or old or {}
        key = ObjectKey.of(job)
        before = self.running.setdefault(key, {})
        if new is None or not _runs(new):
            if before.pop(worker.name, None):
                self._note(f"{key} stops on {worker.name}")
            return
        uid = new["metadata"]["uid"]
        if before.get(worker.name) == uid or labels_of(new).get(ORIGIN_LABEL) != "multikueue":
            return
        self._note(f"{key} starts on {worker.name}")
        self.starts += 1
        for other in before:
            if other != worker.name and self._can_be_reached(other) and self._can_be_reached(worker.name):
                self.broken.append(f"{key} starts on {worker.name} while it runs on {other}")
        if self._has_ended_here(key):
            self.broken.append(f"{key} starts on {worker.name} after it has ended")
        before[worker.name] = uid

    def _has_ended_here(self, key: ObjectKey) -> bool:
        current = self.world.manager.registry.cluster.store
        del current
        live = job_of_manager(self.world, key)
        return live is not None and (key, live["metadata"]["uid"]) in self.ended

    def _can_be_reached(self, worker: str) -> bool:
        link = self.world.workers[worker].link
        return link.is_up and anyio.current_time() - link.up_since >= RECONNECT_GRACE

    def _note(self, text: str) -> None:
        self.history.append(f"{anyio.current_time():9.3f} {text}")


def objects(cluster: SimCluster, resource: Resource) -> Iterator[Json]:
    """All objects of a kind on a cluster, straight from its store."""
    row = cluster.registry.type_of(resource)
    for entry in list(cluster.registry.cluster.store.bucket((row.group, row.plural)).objects.values()):
        yield entry.obj


def job_of_manager(world: World, key: ObjectKey) -> Json | None:
    """The manager's job of that name."""
    return next((job for job in objects(world.manager, JOB) if ObjectKey.of(job) == key), None)


def orphans(world: World) -> list[str]:
    """Copies that should not be there (any more)."""
    local = {ObjectKey.of(workload): workload for workload in objects(world.manager, WORKLOAD)}
    found = []
    for worker in world.workers.values():
        for resource in (WORKLOAD, JOB):
            for copy in objects(worker, resource):
                if labels_of(copy).get(ORIGIN_LABEL) == "multikueue" and not _is_wanted(copy, resource, worker, local):
                    found.append(f"{resource} {ObjectKey.of(copy)} on {worker.name}")
    return found


def _is_wanted(copy: Json, resource: Resource, worker: SimCluster, local: dict[ObjectKey, Json]) -> bool:
    if resource == WORKLOAD:
        workload = local.get(ObjectKey.of(copy))
    else:
        name = labels_of(copy).get("kueue.x-k8s.io/prebuilt-workload-name", "")
        workload = local.get(ObjectKey(copy["metadata"]["namespace"], name))
    if workload is None or is_true(workload, "Finished") or not is_true(workload, "QuotaReserved"):
        return False
    status = workload.get("status", {})
    chosen = status.get("clusterName")
    return worker.name == chosen if chosen else worker.name in (status.get("nominatedClusterNames") or ())


def unfinished(world: World) -> list[str]:
    """Workloads that are neither finished nor waiting for a true reason."""
    found = []
    for workload in objects(world.manager, WORKLOAD):
        if is_true(workload, "Finished") or dig(workload, "spec", "active") is False:
            continue
        told = {entry["type"]: entry["status"] for entry in dig(workload, "status", "conditions") or []}
        found.append(f"{ObjectKey.of(workload)} {told} on {dig(workload, 'status', 'clusterName')}")
    return found


def leaks(world: World) -> list[str]:
    """Objects a user can read that hold a credential."""
    found = []
    for cluster in world.clusters:
        for types in list(cluster.registry.cluster.types.values()):
            if types.plural == "secrets":
                continue
            for entry in cluster.registry.cluster.store.bucket((types.group, types.plural)).objects.values():
                if CANARY in json.dumps(entry.obj):
                    found.append(f"{types.plural} {ObjectKey.of(entry.obj)} on {cluster.name}")
    return found


def _runs(job: Json) -> bool:
    return bool(dig(job, "status", "active")) and not dig(job, "spec", "suspend") and not _has_ended(job)


def _has_ended(job: Json) -> bool:
    return (condition(job, "Complete") is not None and is_true(job, "Complete")) or is_true(job, "Failed")
