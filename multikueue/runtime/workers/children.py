"""Jobs on a worker that other jobs have made there: they may carry our label, and are not ours to delete.

KubeRay gives the RayCluster of a RayJob the labels and annotations of the RayJob, and Tekton a TaskRun and its Pod
those of the PipelineRun: our label, and the name of the Workload. The kind of its controller tells who made an object.
Where controllers of that kind also take what others have made, the controller's UID does.

A Workload is never asked: the worker's Kueue makes a job the controller of the Workload copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.adapters import AVAILABLE
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import controller_of, namespace_of, uid
from multikueue.runtime.caches.mutation_cache import MutationCache

_KNOWN: Final = frozenset(
    (
        *((row.resource.gvk.group, row.resource.gvk.kind) for row in AVAILABLE),
        *(("tekton.dev", kind) for kind in ("PipelineRun", "TaskRun", "CustomRun")),
        ("argoproj.io", "Workflow"),
    )
)
"""Groups and kinds of jobs, whether they are dispatched here or not."""
_ADOPTING: Final = frozenset((("batch", "Job"), ("apps", "StatefulSet")))
"""Those whose controllers take any pod that matches their selector and has no controller."""


def is_child(job: Json, caches: Mapping[GVK, MutationCache]) -> bool:
    """Whether another job on the same worker has made this one.

    Args:
        job: one with our label.
        caches: our jobs on that worker, by kind.
    """
    owner = controller_of(job)
    if owner is None:
        return False
    group, _, kind = GVK.of(owner.get("apiVersion", ""), owner.get("kind", ""))
    followed = [cache for gvk, cache in caches.items() if (gvk.group, gvk.kind) == (group, kind)]
    if not followed and (group, kind) not in _KNOWN:
        return False
    if (group, kind) not in _ADOPTING:
        return True
    key = ObjectKey(namespace_of(job), owner.get("name", ""))
    return any(_may_have(cache, key, owner.get("uid", "")) for cache in followed)


def adopter(copy: Json) -> str:
    """Who controls one of our copies, as `ReplicaSet "web-7d9f"`; empty if nobody does."""
    owner = controller_of(copy)
    return f'{owner.get("kind", "")} "{owner.get("name", "")}"' if owner is not None else ""


def _may_have(cache: MutationCache, key: ObjectKey, owner: str) -> bool:
    """Whether this very object is one of ours: what it has made goes with it. Also if that cannot be told now."""
    status = cache.informer.status
    if not status.synced or not cache.informer.current or status.failing_since is not None:
        return True
    return any(parent is not None and uid(parent) == owner for parent in (cache.get(key), cache.informer.get(key)))
