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
from multikueue.errors import NotFound
from multikueue.protocols import ObjectList, Subresource, WatchEvent
from multikueue.sandbox.apiserver import DirectClient

THERE: Final = "mk-default"
SAID: Final = {NAMESPACES_ANNOTATION: json.dumps({"default": THERE})}
"""By a MultiKueueCluster."""
OTHER: Final = "mk-other"
"""What it is called later, in some runs."""
CALLED: Final = "example.com/called"
"""On a worker's object: how the daemon called the namespace when it made it, if not `THERE`."""
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
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        """See `Reader`."""
        there = _SWAPPED.get(namespace, namespace)
        objects = await super().list(resource, namespace=there, label_selector=label_selector, limit=limit)
        return attrs.evolve(objects, items=[*map(_object, objects.items)])

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

    async def delete(self, resource: Resource, key: ObjectKey, **options: Any) -> Json | None:
        """See `Writer`."""
        left = await super().delete(resource, _key(key), **options)
        return None if left is None else _object(left)

    async def watch(self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Any) -> None:
        """See `Watcher`."""
        await super().watch(resource, partial(_pass_on, on_event), **options)


def _pass_on(on_event: Callable[[WatchEvent], None], event: WatchEvent) -> None:
    on_event(attrs.evolve(event, object=_object(event.object)))


async def say(manager: DirectClient, worker: str, said: str | None) -> None:
    """Change what a MultiKueueCluster says of namespaces."""
    patch = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: said}}}
    await manager.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", worker), patch)


def is_made_elsewhere(obj: Json) -> bool:
    """Whether something of ours is under the name that the namespace has on the manager."""
    return obj["metadata"].get("namespace") == THERE and ORIGIN_LABEL in labels_of(obj)


def called(obj: Json) -> str:
    """How the namespace of an object in `default` on such a worker was called when it was made."""
    return annotations_of(obj).get(CALLED) or THERE


class MovingClient(RenamingClient):
    """The way to a worker of which the mapping changes: each object stays in the namespace that it was made in.

    The two of them are one on the worker, so that all that runs there is seen.
    """

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return _moved(await DirectClient.get(self, resource, await self._key_there(resource, key)))

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        """See `Reader`. The daemon lists all namespaces."""
        objects = await DirectClient.list(
            self, resource, namespace=namespace, label_selector=label_selector, limit=limit
        )
        return attrs.evolve(objects, items=[*map(_moved, objects.items)])

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        return _moved(await DirectClient.create(self, resource, _sent(obj)))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer`."""
        await self._key_there(resource, ObjectKey.of(obj))
        return _moved(await DirectClient.replace(self, resource, _sent(obj), subresource=subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        there = await self._key_there(resource, key)
        return _moved(await DirectClient.merge_patch(self, resource, there, patch, subresource=subresource))

    async def apply(self, resource: Resource, obj: Json, **options: Any) -> Json:
        """See `Writer`. An object that is there keeps what it is called."""
        return _moved(await DirectClient.apply(self, resource, _sent(obj, note=False), **options))

    async def delete(self, resource: Resource, key: ObjectKey, **options: Any) -> Json | None:
        """See `Writer`."""
        left = await DirectClient.delete(self, resource, await self._key_there(resource, key), **options)
        return None if left is None else _moved(left)

    async def watch(self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Any) -> None:
        """See `Watcher`."""

        def moved(event: WatchEvent) -> None:
            on_event(attrs.evolve(event, object=_moved(event.object)))

        await DirectClient.watch(self, resource, moved, **options)

    async def _key_there(self, resource: Resource, key: ObjectKey) -> ObjectKey:
        """The key of an object on the worker, if it was made in the namespace that is asked for."""
        there = ObjectKey("default", key.name) if key.namespace == OTHER else _key(key)
        if there.namespace == "default" and called(await DirectClient.get(self, resource, there)) != key.namespace:
            raise NotFound(f"{resource} {key} not found", status=404)
        return there


def _moved(obj: Json) -> Json:
    """An object as the daemon sees it."""
    metadata, name = obj.get("metadata") or {}, called(obj)
    if metadata.get("namespace") != "default" or name == THERE:
        return _object(obj)
    annotations = {key: value for key, value in metadata["annotations"].items() if key != CALLED}
    replaced = annotations.get(SLICE_REPLACEMENT_ANNOTATION)
    if replaced is not None:
        annotations[SLICE_REPLACEMENT_ANNOTATION] = str(ObjectKey(name, ObjectKey.parsed(replaced).name))
    return {**obj, "metadata": {**metadata, "namespace": name, "annotations": annotations}}


def _sent(obj: Json, *, note: bool = True) -> Json:
    """An object as the worker gets it."""
    metadata = obj.get("metadata") or {}
    if metadata.get("namespace") != OTHER:
        return _object(obj)
    annotations = {**metadata.get("annotations", {}), **({CALLED: OTHER} if note else {})}
    return {**obj, "metadata": {**metadata, "namespace": "default", "annotations": annotations}}
