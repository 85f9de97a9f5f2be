"""Workers that call the namespace of all jobs otherwise: nothing may be made there under the manager's name.

What runs there is looked at in one namespace in all runs. So it is the daemon's wire that changes names: what the
daemon calls `mk-default` is in `default` on such a worker, and what it calls `default` is elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, ORIGIN_LABEL, SLICE_REPLACEMENT_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, labels_of
from multikueue.protocols import ObjectList, Subresource, WatchEvent
from multikueue.sandbox.apiserver import DirectClient

THERE: Final = "mk-default"
SAID: Final = {NAMESPACES_ANNOTATION: json.dumps({"default": THERE})}
"""By a MultiKueueCluster."""
_SWAPPED: Final = {"default": THERE, THERE: "default"}


def _key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(_SWAPPED.get(key.namespace, key.namespace), key.name)


def _object(obj: Json) -> Json:
    metadata = obj.get("metadata") or {}
    if metadata.get("namespace") not in _SWAPPED:
        return obj
    metadata = {**metadata, "namespace": _SWAPPED[metadata["namespace"]]}
    if (replaced := annotations_of(obj).get(SLICE_REPLACEMENT_ANNOTATION)) is not None:
        slices = str(_key(ObjectKey.parsed(replaced)))
        metadata["annotations"] = {**metadata["annotations"], SLICE_REPLACEMENT_ANNOTATION: slices}
    return {**obj, "metadata": metadata}


def swapped(obj: Json) -> Json:
    """An object with its namespace under the other name."""
    return _object(obj)


class RenamingClient(DirectClient):
    """The daemon's way to such a worker."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return _object(await super().get(resource, _key(key)))

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0
    ) -> ObjectList:
        """See `Reader`."""
        there = _SWAPPED.get(namespace, namespace)
        found = await super().list(resource, namespace=there, label_selector=label_selector, limit=limit)
        return attrs.evolve(found, items=[*map(_object, found.items)])

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        return _object(await super().create(resource, _object(obj)))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer`."""
        return _object(await super().replace(resource, _object(obj), subresource=subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        return _object(await super().merge_patch(resource, _key(key), patch, subresource=subresource))

    async def apply(self, resource: Resource, obj: Json, **options: Any) -> Json:
        """See `Writer`."""
        return _object(await super().apply(resource, _object(obj), **options))

    async def delete(self, resource: Resource, key: ObjectKey, **options: Any) -> None:
        """See `Writer`."""
        await super().delete(resource, _key(key), **options)

    async def watch(self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Any) -> None:
        """See `Watcher`."""
        await super().watch(resource, partial(_told, on_event), **options)


def _told(on_event: Callable[[WatchEvent], None], event: WatchEvent) -> None:
    on_event(attrs.evolve(event, object=_object(event.object)))


async def say(manager: DirectClient, worker: str, said: str | None) -> None:
    """Change what a MultiKueueCluster says of namespaces."""
    patch = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: said}}}
    await manager.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", worker), patch)


def is_made_elsewhere(obj: Json) -> bool:
    """Whether something of ours is under the name that the namespace has on the manager."""
    return obj["metadata"].get("namespace") == THERE and ORIGIN_LABEL in labels_of(obj)
