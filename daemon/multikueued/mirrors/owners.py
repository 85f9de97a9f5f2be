"""From a pod on a worker to the manager's job that it runs for.

By the UIDs of controllers, never by names or labels alone. (Whoever may create pods in that namespace of the worker can
write such a UID, too, and so have a pod of theirs shown.) What stands between a job and its pods, as the Jobs of a
JobSet, is read by name, once each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import attrs

from multikueue.adapters import AVAILABLE
from multikueue.adapters.declaration import kind_of, usual_plural
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.copies import is_copy_of
from multikueue.core.model.kinds import JOB
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, name_of, namespace_of, uid
from multikueue.core.model.shape import object_flaw
from multikueue.core.model.worker_names import namespace_on, origin_key
from multikueue.core.model.workloads import cluster_name
from multikueue.errors import Forbidden, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.workers.children import is_child
from multikueue.runtime.workers.informers import WorkerInformers
from multikueued.mirrors.mirror import Run

log = get_logger(__name__)

DEPTH: Final = 5
"""How many controllers stand above a pod at most: TrainJob, JobSet, Job, and one to spare."""
MOST: Final = 20_000
"""Objects in between that are remembered."""
_DECLARED: Final = tuple(kind_of(profile.name) for profile in PROFILES.values())
_BETWEEN: Final[Mapping[tuple[str, str], Resource]] = {
    (resource.gvk.group, resource.gvk.kind): resource
    for resource in (
        JOB,
        *(kind.resource for kind in AVAILABLE),
        *(Resource(gvk, usual_plural(gvk.kind)) for gvk in _DECLARED),
    )
}


_ON_THE_MANAGER: Final = frozenset(
    (kind.resource.gvk.group, kind.resource.gvk.kind) for kind in AVAILABLE if kind.keeps_check_pending
)
"""Kinds whose pods the manager has already, gated: mirrors would have their names."""


@attrs.define(eq=False)
class Owners:
    """Finds whose a pod is."""

    manager: ManagerCluster
    marks: Marks
    _between: dict[str, Json | None] = attrs.field(factory=dict, init=False)
    """By UID of what stands in between, the reference to its controller."""
    _told: set[Resource] = attrs.field(factory=set, init=False)

    async def run_of(self, worker: str, known: WorkerInformers, pod: Json) -> tuple[Run | None, bool]:
        """The run that a pod is of, and whether that is the attempt that counts; None: it is nobody's here.

        Raises:
            ApiError: what stands in between cannot be read.
        """
        owned = await self._copy(known, pod)
        return (None, False) if owned is None else self._run(worker, known, *owned)

    def _run(self, worker: str, known: WorkerInformers, gvk: GVK, copy: Json) -> tuple[Run | None, bool]:
        cache, key = self.manager.jobs.get(gvk), origin_key(copy)
        job = cache.get(key) if cache is not None else None
        if cache is None or job is None or (gvk.group, gvk.kind) in _ON_THE_MANAGER or not is_copy_of(copy, job):
            return None, False
        workloads = [*filter(None, map(self.manager.workloads.get, self.manager.owned(gvk, key)))]
        if _is_another_there(known, gvk, copy, {namespace_on(workload, worker) for workload in workloads}):
            return None, False
        exact = [
            workload for workload in workloads if self.marks.proof(copy, workload, ClusterName(worker)) is Proof.EXACT
        ]
        if not exact and not self.marks.made_copy(copy, job, worker):
            return None, False
        current = any(cluster_name(workload) == worker for workload in exact)
        return Run(worker, job, cache.informer.resource.gvk, uid(copy), key.namespace), current

    async def _copy(self, known: WorkerInformers, pod: Json) -> tuple[GVK, Json] | None:
        """Our job copy that a pod goes back to."""
        reference, namespace = controller_of(pod), namespace_of(pod)
        for _ in range(DEPTH):
            if reference is None:
                return None
            gvk = GVK.of(reference.get("apiVersion", ""), reference.get("kind", ""))
            name, owner_uid = ObjectKey(namespace, reference.get("name", "")), reference.get("uid", "")
            cache = _cache_of(known, gvk)
            copy = cache.get(name) if cache is not None else None
            if cache is not None and copy is not None and uid(copy) == owner_uid and not is_child(copy, known.jobs):
                return cache.informer.resource.gvk, copy
            resource = cache.informer.resource if cache is not None else _BETWEEN.get((gvk.group, gvk.kind))
            if resource is None:
                return None
            reference = await self._above(known.client, attrs.evolve(resource, gvk=gvk), name, owner_uid)
        return None

    async def _above(self, client: ApiClient, resource: Resource, name: ObjectKey, owner_uid: str) -> Json | None:
        """The controller of what stands in between."""
        if owner_uid in self._between:
            return self._between[owner_uid]
        try:
            between = await client.get(resource, name)
        except NotFound:
            return None
        except Forbidden as error:
            if resource not in self._told:
                self._told.add(resource)
                log.warning("pods of runs are not shown", error=str(error), advice="grant get of that kind there")
            return None
        if object_flaw(between) or uid(between) != owner_uid:
            return None
        while len(self._between) >= MOST:
            del self._between[next(iter(self._between))]
        above = self._between[owner_uid] = controller_of(between)
        return above


def _is_another_there(known: WorkerInformers, gvk: GVK, copy: Json, places: Collection[str]) -> bool:
    """Whether the copy is in one of the namespaces that our Workloads name, and this one elsewhere: who reads what that
    says of itself can make another one that says the same, in a namespace of theirs."""
    cache = _cache_of(known, gvk)
    if cache is None or namespace_of(copy) in places:
        return False
    twins = (cache.get(ObjectKey(place, name_of(copy))) for place in places)
    return any(twin is not None and origin_key(twin) == origin_key(copy) for twin in twins)


def _cache_of(known: WorkerInformers, gvk: GVK) -> MutationCache | None:
    same = ((gvk.group, gvk.kind) == (kind.group, kind.kind) for kind in known.jobs)
    return next((cache for cache, is_same in zip(known.jobs.values(), same, strict=True) if is_same), None)
