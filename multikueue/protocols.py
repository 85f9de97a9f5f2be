"""The seams: what the runtime needs from an API server, split by need.

`multikueue.kube.KubeClient` speaks them over HTTP; the simulation speaks them in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource

Subresource = Literal["", "status"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@attrs.frozen
class ObjectList:
    """One consistent list: the items and the resourceVersion from which a watch continues."""

    items: list[Json]
    resource_version: str


@attrs.frozen
class WatchEvent:
    """One line of a watch stream. `type`: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (then `object` is a Status)."""

    type: str
    object: Json


class Reader(Protocol):
    """Reads from one API server. Every call has a deadline and raises nothing but `multikueue.errors.ApiError`."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """Return the object.

        Raises:
            NotFound: there is none.
        """
        ...

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        """Return all matching objects, read page by page; an empty namespace means all of them.

        They may lack their `managedFields`.
        """
        ...


class Watcher(Protocol):
    """Follows changes on one API server."""

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], None] | None = None,
    ) -> None:
        """Call `on_event` for each event until the server ends the stream (then return).

        What the callbacks raise is passed on as it is.

        Args:
            on_event: told of each event; ERROR events are raised instead.
            resource_version: where to continue, from a list or an earlier event.
            idle: seconds without a byte (bookmarks are asked for) after which the stream counts as dead.
            on_open: called once the server has accepted the watch, before any event.

        Raises:
            Expired: the resourceVersion is too old (HTTP 410 or an ERROR event of code 410): list again.
            ApiError: anything else that ended the stream, silence included.
        """
        ...


class Writer(Protocol):
    """Writes to one API server."""

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST; the namespace is the object's own.

        Raises:
            AlreadyExists: an object of that name is there.
        """
        ...

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """PUT the whole object; its `metadata.resourceVersion` is the precondition.

        Raises:
            Conflict: the object changed since it was read.
        """
        ...

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """JSON merge patch; put `metadata.resourceVersion` or `metadata.uid` into the patch for a precondition."""
        ...

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """Server-side apply; a `metadata.resourceVersion` in the object is a precondition."""
        ...

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """DELETE with preconditions.

        Raises:
            NotFound: it is already gone.
            Conflict: a precondition does not hold.
        """
        ...


class ApiClient(Reader, Watcher, Writer, Protocol):
    """Everything one API server can be asked."""
