"""The state of one cluster: the store, the kinds it serves, its clock and its random numbers. The verbs use it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import (
    DEFINITIONS,
    NAMESPACES,
    GroupResource,
    ResourceType,
    builtin_types,
    types_of,
)
from multikueue.sandbox.apiserver.status_errors import no_route, not_found
from multikueue.sandbox.apiserver.storage.store import Entry, Key, Store

Clock: TypeAlias = Callable[[], datetime]

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # kube-apiserver's: no vowels, so no words


@attrs.frozen
class WriteOptions:
    """How a write is to be done.

    Attributes:
        manager: who the changed fields belong to; None for the server's own writes, which are not recorded.
        dry_run: answer as if, store nothing.
        strict: unknown fields are an error instead of being dropped.
        force: for apply: take fields over from other managers.
        unknown: gets the fields that are dropped because the kind does not have them.
    """

    manager: str | None = "unknown"
    dry_run: bool = False
    strict: bool = False
    force: bool = False
    unknown: list[str] | None = None


class Cluster:
    """Objects and kinds. NOTHING HERE AWAITS: each verb is one uninterrupted step."""

    def __init__(self, *, history: int, clock: Clock, seed: str) -> None:
        self.store = Store(history)
        self.types: dict[tuple[str, str, str], ResourceType] = {}
        self.random = random.Random(seed)
        self.listeners: list[Callable[[ResourceType, Json | None, Json | None], None]] = []
        """Called after every change with the old and the new object; None for absent."""
        self.filled_on_read: set[str] = set()
        """Uids of objects that were stored without defaults they are read with: their next write is a change."""
        self._clock = clock
        for row in builtin_types():
            self._serve(row)

    def _serve(self, row: ResourceType) -> None:
        self.types[row.group, row.version, row.plural] = row

    def type_of(self, group: str, version: str, plural: str) -> ResourceType:
        """The kind at a URL.

        Raises:
            StatusError: 404, it is not served.
        """
        row = self.types.get((group, version, plural))
        if row is None:
            raise no_route()
        return row

    def any_version(self, resource: GroupResource) -> ResourceType | None:
        """Some served version of a resource, the storage version if it is served."""
        rows = [row for row in self.types.values() if row.group_resource == resource]
        return next((row for row in rows if row.stored_version == row.version), rows[0] if rows else None)

    def type_of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The served type an owner reference names; any version of its group will do."""
        group = api_version.rpartition("/")[0]
        rows = self.types.values()
        return next((row for row in rows if row.kind == kind and row.group == group), None)

    @property
    def namespace_type(self) -> ResourceType:
        """The row of namespaces."""
        return self.types["", "v1", "namespaces"]

    def namespace(self, name: str) -> Json | None:
        """A namespace object."""
        entry = self.store.get(NAMESPACES, ("", name))
        return entry.obj if entry else None

    def now(self, seconds: float = 0.0) -> str:
        """The wall clock in RFC 3339, `seconds` later."""
        return timestamp(self._clock() + timedelta(seconds=seconds))

    def moment(self) -> datetime:
        """The wall clock."""
        return self._clock()

    def new_uid(self) -> str:
        """A random uid."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def new_suffix(self) -> str:
        """The random end of a generated name."""
        return "".join(self.random.choices(_NAME_LETTERS, k=5))

    def entry(self, row: ResourceType, namespace: str | None, name: str) -> Entry:
        """The stored object.

        Raises:
            StatusError: 404, there is none.
        """
        entry = self.store.get(row.group_resource, (namespace or "", name))
        if entry is None:
            raise not_found(row, name)
        return entry

    def put(self, row: ResourceType, key: Key, obj: Json, old: Json | None) -> Json:
        """Store an object, which is taken over; returns it in the requested version."""
        entry = self.store.put(row.group_resource, key, row.to_store(obj))
        if old is not None:
            self.filled_on_read.discard(obj["metadata"]["uid"])
        self._changed(row, old, entry.obj)
        return row.viewed(entry.obj)

    def remove(self, row: ResourceType, key: Key) -> Json:
        """Delete an object; returns its final state."""
        entry = self.store.remove(row.group_resource, key)
        self.filled_on_read.discard(entry.obj["metadata"]["uid"])
        self._changed(row, entry.obj, None)
        return row.viewed(entry.obj)

    def _changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.group_resource == DEFINITIONS:
            self._serve_definition(old, new)
        for listener in self.listeners:
            listener(row, old, new)

    def _serve_definition(self, old: Json | None, new: Json | None) -> None:
        definition = new or old or {}
        name, spec = definition["metadata"]["name"], definition["spec"]
        for place, row in list(self.types.items()):
            if row.custom and row.custom.definition == name:
                del self.types[place]
        if new is None:
            self.store.drop((spec["group"], spec["names"]["plural"]))
            return
        for row in types_of(new):
            self._serve(row)
