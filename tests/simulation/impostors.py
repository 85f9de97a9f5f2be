"""Users of a worker who make a job and a Workload of somebody else's names there, and put our label on.

Their Kueue has admitted both by then. They strike at Workloads that wait for a worker, in some of the runs; their dice
are their own, so the rest of a run is drawn as it would be without them.
"""

from __future__ import annotations

import contextlib
import random
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import JOB_UID_LABEL, ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, is_terminating, labels_of, without
from multikueue.core.model.workloads import cluster_name, has_quota, is_admitted, is_evicted, is_finished, owner
from multikueue.errors import ApiError
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.objects import IMPOSTOR_LABEL, ORIGIN, find, objects
from tests.simulation.promises import Promises
from tests.simulation.world import SimCluster, World

SHARE: Final = 0.3
"""Of the runs: in the others nobody does such a thing."""
UNTIL: Final = 360.0
"""Virtual seconds after which nobody strikes any more."""
PATIENCE: Final = 90.0
"""Virtual seconds for which they wait for the moment at which the manager may believe them."""


@attrs.define(eq=False)
class Impostors:
    """Strike, and tell who was believed."""

    world: World
    promises: Promises
    dice: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.dice = random.Random(f"impostors/{self.world.seed}")

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural != WORKLOAD.plural or new is None or cluster_name(new) in (None, cluster_name(old or {})):
            return
        worker, key = self.world.workers.get(str(self.world.place_of(cluster_name(new)))), ObjectKey.of(new)
        copy = find(worker, WORKLOAD, key) if worker is not None else None
        if copy is not None and IMPOSTOR_LABEL in labels_of(copy):
            self.promises.broken.append(f"{key} is given to {cluster_name(new)}, where an impostor has made its copy")

    async def run(self) -> None:
        """Strike now and then."""
        if self.dice.random() >= SHARE:
            return
        while anyio.current_time() < UNTIL:
            await anyio.sleep(self.dice.uniform(1.0, 30.0))
            worker = self.world.workers[self.dice.choice(sorted(self.world.workers))]
            waiting = [key for key in self._waiting() if find(worker, WORKLOAD, key) is None]
            if waiting and worker.name not in self.world.gone:
                with contextlib.suppress(ApiError):  # as users they may fail
                    await self._strike(worker, self.dice.choice(waiting))

    def _waiting(self) -> list[ObjectKey]:
        """Workloads of Jobs that no worker has."""
        return sorted(
            ObjectKey.of(workload) for workload in objects(self.world.manager, WORKLOAD) if _may_be_believed(workload)
        )

    async def _strike(self, worker: SimCluster, key: ObjectKey) -> None:
        workload = find(self.world.manager, WORKLOAD, key)
        its_owner = owner(workload) if workload is not None else None
        job = find(self.world.manager, JOB, ObjectKey(key.namespace, its_owner.name)) if its_owner is not None else None
        if workload is None or job is None:
            return
        self.promises.note(f"an impostor makes {key} on {worker.name}")
        made = ((WORKLOAD, key), (JOB, ObjectKey.of(job)))
        try:
            await worker.api.create(WORKLOAD, _workload(workload))
            await worker.api.create(JOB, _job(job, key.name))
            await self._wait_for_quota(key)
            for resource, of in made:
                await worker.api.merge_patch(resource, of, {"metadata": {"labels": {ORIGIN_LABEL: ORIGIN}}})
            await anyio.sleep(PATIENCE)
        finally:
            with anyio.CancelScope(shield=True):
                for resource, of in reversed(made):
                    await self._take_back(worker, resource, of)

    async def _wait_for_quota(self, key: ObjectKey) -> None:
        """Until the manager looks for a worker; a moment longer, so that theirs is admitted."""
        for _ in range(int(PATIENCE)):
            if has_quota(find(self.world.manager, WORKLOAD, key) or {}):
                break
            await anyio.sleep(1.0)
        await anyio.sleep(self.dice.uniform(0.0, 2.0))

    async def _take_back(self, worker: SimCluster, resource: Resource, key: ObjectKey) -> None:
        """Remove what is left of theirs: what never got the label is not ours to remove."""
        there = find(worker, resource, key)
        if there is not None and IMPOSTOR_LABEL in labels_of(there):
            with contextlib.suppress(ApiError):
                await worker.api.merge_patch(resource, key, {"metadata": {"finalizers": None}})
                await worker.api.delete(resource, key, propagation="Background")


def _may_be_believed(workload: Json) -> bool:
    """Whether a Job's Workload has no worker yet, and is to have one.

    One that is admitted has lost its record. It is looked for, and what has no proof is believed where nothing with one
    is seen for `workerLostTimeout`: so Kueue's own copies are taken over (`unrecorded.py`).
    """
    its_owner = owner(workload)
    over = is_admitted(workload) or is_finished(workload) or is_evicted(workload) or is_terminating(workload)
    return its_owner is not None and its_owner.gvk == JOB.gvk and not over and cluster_name(workload) is None


def _workload(workload: Json) -> Json:
    metadata = workload["metadata"]
    labels = {name: value for name, value in labels_of(workload).items() if name != JOB_UID_LABEL}
    return {
        **{field: clone(workload[field]) for field in ("apiVersion", "kind", "spec")},
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {**labels, IMPOSTOR_LABEL: "true"},
        },
    }


def _job(job: Json, workload: str) -> Json:
    metadata = job["metadata"]
    bare = without(job, [("spec", "managedBy"), ("spec", "selector"), ("spec", "template", "metadata", "labels")])
    labels = {**labels_of(job), PREBUILT_WORKLOAD: workload, IMPOSTOR_LABEL: "true"}
    return {
        **{field: clone(bare[field]) for field in ("apiVersion", "kind")},
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "labels": labels},
        "spec": {**clone(bare["spec"]), "suspend": True},
    }
