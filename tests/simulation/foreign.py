"""Objects of somebody else on the workers, with names and labels that are easily mistaken for ours."""

from __future__ import annotations

import attrs

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import labels_of
from multikueue.core.model.workloads import owner
from tests.simulation.objects import find, objects
from tests.simulation.world import SimCluster, World

OWNER_LABEL = "example.com/owner"


@attrs.define(eq=False)
class Foreigners:
    """Plants them, and tells which were touched."""

    world: World
    _planted: list[tuple[SimCluster, Resource, Json]] = attrs.field(factory=list)

    async def plant_first(self, *, in_the_way: bool) -> None:
        """Before anything happens: a job with the name of a job to come, and others that never meet any of ours."""
        if in_the_way:
            await self.plant(next(iter(self.world.workers.values())), JOB, _job("job-2", {}))
        for worker in self.world.workers.values():
            await self.plant(worker, JOB, _job("theirs", {ORIGIN_LABEL: "another"}))

    async def plant_namesake(self, worker: SimCluster) -> str:
        """Of a Workload that waits on the manager: another manager's copy and its job; returns its name."""
        for workload in objects(self.world.manager, WORKLOAD):
            key = ObjectKey.of(workload)
            if find(worker, WORKLOAD, key) is None and not key.name.startswith("job-job-2"):
                copy = _workload(key.name, workload["spec"]["podSets"])
                await self.plant(worker, WORKLOAD, copy)
                labels = {ORIGIN_LABEL: "another", PREBUILT_WORKLOAD: key.name}
                await self.plant(worker, JOB, _job(f"of-{key.name}"[:63].rstrip("-"), labels))
                return key.name
        return ""

    async def plant_job(self, worker: SimCluster, name: str) -> None:
        """A job of somebody else, by any name."""
        await self.plant(worker, JOB, _job(name, {}))

    def touched(self) -> list[str]:
        """Those that are not what they were."""
        changed = []
        for worker, resource, planted in self._planted:
            now = find(worker, resource, ObjectKey.of(planted))
            if now is None or _essence(now) != _essence(planted):
                changed.append(f"{resource} {ObjectKey.of(planted)} of somebody else on {worker.name} became {now}")
        return changed

    async def plant(self, worker: SimCluster, resource: Resource, obj: Json) -> None:
        """Create what must not be touched."""
        self._planted.append((worker, resource, await worker.api.create(resource, obj)))


def has_namesake(worker: SimCluster, workload: Json) -> bool:
    """Whether a worker has a Job of somebody else by the name of the one that a Workload is of."""
    owned_by = owner(workload)
    if owned_by is None or owned_by.gvk != JOB.gvk:
        return False
    there = find(worker, JOB, ObjectKey(workload["metadata"]["namespace"], owned_by.name))
    return there is not None and OWNER_LABEL in labels_of(there)


def _essence(obj: Json) -> Json:
    metadata = obj["metadata"]
    kept = {field: metadata.get(field) for field in ("uid", "labels", "annotations", "ownerReferences")}
    return {"spec": obj.get("spec"), "data": obj.get("data"), **kept}


def _job(name: str, labels: dict[str, str]) -> Json:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {**labels, OWNER_LABEL: "somebody-else"}},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def _workload(name: str, pod_sets: list[Json]) -> Json:
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {"name": name, "namespace": "default", "labels": {ORIGIN_LABEL: "another"}},
        "spec": {"queueName": "somebody-elses-queue", "active": False, "podSets": pod_sets},
    }
