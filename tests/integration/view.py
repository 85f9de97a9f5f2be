"""What an administrator sees of a cluster, kept up to date by watches: tests wait for it without asking again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.kube import Informer, KubeClient
from tests.controlplane.errors import NotReady

POD: Final = Resource(GVK("", "v1", "Pod"), "pods")
NAMESPACE: Final = "default"
SECONDS: Final = 75.0
"""How long a test waits for what must happen. A worker that was away is asked again after at most 72 s."""

T = TypeVar("T")


@attrs.define(eq=False)
class Changes:
    """Tells that something has changed on some cluster."""

    _event: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def tell(self) -> None:
        """Wake up everybody who waits."""
        self._event.set()
        self._event = anyio.Event()

    def next(self) -> anyio.Event:
        """The next change; take it before looking at what is, so that none is missed in between."""
        return self._event

    async def until(
        self, look: Callable[[], T | None], *, otherwise: str | Callable[[], str], seconds: float = SECONDS
    ) -> T:
        """Look after every change until there is something to see, and return it.

        Raises:
            NotReady: there was nothing in time; `otherwise` is the message, or makes it then.
        """
        with anyio.move_on_after(seconds):
            while True:
                changed = self.next()
                shown = look()
                if shown is not None and shown is not False:
                    return shown
                await changed.wait()
        raise NotReady(f"{otherwise if isinstance(otherwise, str) else otherwise()} (after {seconds:g} s)")


@attrs.define(eq=False)
class View:
    """One cluster, as its administrator sees it."""

    client: KubeClient
    changes: Changes
    last: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """The newest version of every object there ever was in our namespace, by kind and name."""
    pods_made: dict[str, str] = attrs.field(factory=dict, init=False)
    """The Job of every pod there ever was, by the pod's UID."""
    _caches: dict[Resource, Informer] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        def cache(resource: Resource) -> Informer:
            def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
                del old
                if new is not None:
                    self.last[resource, key.name] = new
                    if resource == POD:
                        self.pods_made[new["metadata"]["uid"]] = job_of(new)
                self.changes.tell()

            return Informer(self.client, resource, on_change=changed, on_status=lambda _: self.changes.tell())

        self._caches = {resource: cache(resource) for resource in (JOB, WORKLOAD, POD, MULTIKUEUE_CLUSTER)}

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the cluster until cancelled; started once all there is has been seen."""
        async with anyio.create_task_group() as watches:
            for cache in self._caches.values():
                watches.start_soon(cache.run)
            for cache in self._caches.values():
                await cache.wait_synced()
            task_status.started()

    def get(self, resource: Resource, name: str) -> Json | None:
        """An object of our namespace, or of the cluster."""
        return self._caches[resource].get(ObjectKey(NAMESPACE if resource.namespaced else "", name))

    def all(self, resource: Resource) -> list[Json]:
        """All objects of a kind."""
        return list(self._caches[resource].values())

    def workload_of(self, job: str) -> Json | None:
        """The Workload that Kueue made for a Job of our namespace."""
        for workload in (workload for workload in self.all(WORKLOAD) if ObjectKey.of(workload).namespace == NAMESPACE):
            owners = workload["metadata"].get("ownerReferences") or []
            if any(owner["name"] == job for owner in owners):
                return workload
        return None


def job_of(pod: Json) -> str:
    """The Job a pod belongs to."""
    return str((pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-name", ""))
