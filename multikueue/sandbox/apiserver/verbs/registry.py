"""
The registry: every verb of the API on one cluster's objects, without HTTP, users or faults.

It waits for nothing and starts no task. Garbage collection is work that piles up: either call `collect()` when it
suits, or run `run_collector()` in a task group of your own (`ApiServer` does).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import anyio

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError, no_route
from multikueue.sandbox.apiserver.storage.cluster import Clock, Cluster, WriteOptions
from multikueue.sandbox.apiserver.storage.watching import WatchCursor, WatchOptions
from multikueue.sandbox.apiserver.verbs import binding, creating, deleting, listing, patching, updating
from multikueue.sandbox.apiserver.verbs.collecting import Collector
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.listing import ListOptions, Page
from multikueue.sandbox.apiserver.verbs.updating import Target

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PLAIN = WriteOptions()


class Registry:
    """One cluster's API.

    Objects that come out are shared with the store: read them, copy them, never change them.
    Bodies that go in are taken over.

    Args:
        name: of the cluster; a part of the seed, so that clusters do not share uids.
        clock: the wall clock that timestamps are read from.
        seed: of uids and generated names.
        history: changes remembered per resource; older resourceVersions are answered with 410.
        garbage_collection: whether owner references and deleted namespaces have an effect.
        bookmark_interval: seconds between the bookmarks of a watch that asks for them.
    """

    def __init__(
        self,
        name: str = "cluster",
        *,
        clock: Clock = utc_now,
        seed: int = 0,
        history: int = 20_000,  # some minutes of a busy cluster, about 30 MB
        garbage_collection: bool = True,
        bookmark_interval: float = 60.0,  # about what the real server does
    ) -> None:
        self.name = name
        self.cluster = Cluster(history=history, clock=clock, seed=f"{seed}/{name}")
        self.collector = Collector(self.cluster)
        self.bookmark_interval = bookmark_interval
        self._watch_random = random.Random(f"{seed}/{name}/watches")
        self._work_came_up: anyio.Event | None = None
        if garbage_collection:
            self.collector.on_work = self._wake
            self.cluster.listeners.append(self.collector.note)
        for namespace in _NAMESPACES:
            self.create_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def type_of(self, resource: Resource) -> ResourceType:
        """The served type of a resource.

        Raises:
            StatusError: 404, it is not served.
        """
        return self.cluster.type_of(resource.gvk.group, resource.gvk.version, resource.plural)

    def create_object(self, manifest: Json, *, manager: str = "unknown") -> Json:
        """Create an object of any served kind from a manifest, which is left alone; good for set-up.

        Raises:
            StatusError: as for `create`.
        """
        obj = clone(manifest)
        gvk = GVK.of(obj.get("apiVersion") or "", obj.get("kind") or "")
        rows = self.cluster.types.values()
        wanted = (gvk.group, gvk.version, gvk.kind)
        row = next((row for row in rows if (row.group, row.version, row.kind) == wanted), None)
        if row is None:
            raise no_route()
        namespace = (obj.get("metadata") or {}).get("namespace") or "default"
        return self.create(row, namespace if row.namespaced else None, obj, WriteOptions(manager=manager))

    def get(self, row: ResourceType, namespace: str | None, name: str) -> Json:
        """The object.

        Raises:
            StatusError: 404.
        """
        return row.viewed(self.cluster.entry(row, namespace, name).obj)

    def list(self, row: ResourceType, namespace: str | None, options: ListOptions) -> Page:
        """Objects of one namespace, or of all for None; see `listing`."""
        return listing.list_objects(self.cluster, row, namespace, options)

    def watch(self, row: ResourceType, namespace: str | None, options: WatchOptions) -> WatchCursor:
        """A cursor into the changes; see `watching`."""
        return WatchCursor(self.cluster, row, namespace, options)

    def create(self, row: ResourceType, namespace: str | None, body: Any, options: WriteOptions = _PLAIN) -> Json:
        """Create; see `creating`. A Binding is none that is kept; see `binding`."""
        if row.write_only:
            return binding.bind(self.cluster, row, namespace, body, options)
        return creating.create(self.cluster, row, namespace, body, options)

    def update(self, target: Target, body: Any, options: WriteOptions = _PLAIN) -> Json:
        """Replace; see `updating`."""
        return updating.update(self.cluster, target, body, options)

    def patch(self, target: Target, format_: str, body: Any, options: WriteOptions = _PLAIN) -> tuple[Json, bool]:
        """Patch or apply; returns the object and whether it was created; see `patching`."""
        if format_ == patching.APPLY_PATCH:
            return patching.apply(self.cluster, target, body, options)
        return patching.patch(self.cluster, target, format_, body, options), False

    def delete(self, target: Target, options: DeleteOptions) -> tuple[Json, bool]:
        """Delete; returns the last state and whether it is gone; see `deleting`."""
        return deleting.delete(self.cluster, target, options)

    def delete_collection(
        self, row: ResourceType, namespace: str | None, which: ListOptions, options: DeleteOptions
    ) -> Sequence[Json]:
        """Delete everything a list selects; returns what it selected."""
        selected = [row.viewed(entry.obj) for entry in self.list(row, namespace, which).entries]
        for obj in selected:
            metadata = obj["metadata"]
            target = Target(row, metadata.get("namespace"), metadata["name"])
            try:
                self.delete(target, options)
            except StatusError as error:
                if error.code != 404:
                    raise
        return selected

    def watch_timeout(self) -> float:
        """Seconds a watch lasts that does not say how long: 30 to 60 minutes, so that they do not end together."""
        return self._watch_random.uniform(1800, 3600)

    def compact(self) -> None:
        """Forget all history: whoever continues from an older resourceVersion gets 410."""
        self.cluster.store.compact()

    def collect(self) -> int:
        """Do the garbage collection that has piled up; returns how much there was."""
        return self.collector.collect()

    async def run_collector(self) -> None:
        """Collect garbage as it comes up, until cancelled."""
        while True:
            self.collect()
            self._work_came_up = anyio.Event()
            await self._work_came_up.wait()

    def _wake(self) -> None:
        if self._work_came_up is not None:
            self._work_came_up.set()
