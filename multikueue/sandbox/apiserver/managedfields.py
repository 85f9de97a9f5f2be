"""`metadata.managedFields`: who owns which field, read, kept up to date on plain writes, and written back."""

from __future__ import annotations

import attrs

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.fieldsets import Difference, Path, Schema, from_fields_v1, to_fields_v1

UNMANAGED = frozenset(
    (
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "selfLink",
        "generateName",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
)
"""Metadata the server owns."""


@attrs.define(eq=False)
class Manager:
    """One line of managedFields: a manager, how it writes, and what it owns."""

    entry: Json
    paths: set[Path]

    @classmethod
    def new(cls, name: str, operation: str, subresource: str, api_version: str) -> Manager:
        """A manager that owns nothing yet."""
        entry = {"manager": name, "operation": operation, "apiVersion": api_version}
        if subresource:
            entry["subresource"] = subresource
        return cls(entry, set())

    def is_for(self, name: str, operation: str, subresource: str) -> bool:
        """Whether a write by this name, in this way, is this line's."""
        entry = self.entry
        mine = (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "")
        return mine == (name, operation, subresource)

    def touched(self, now: str, api_version: str) -> None:
        """Note a write."""
        self.entry["time"] = now
        self.entry["apiVersion"] = api_version


def read_managers(obj: Json | None) -> list[Manager]:
    """The lines of an object."""
    lines = ((obj or {}).get("metadata") or {}).get("managedFields") or []
    return [Manager(dict(line), from_fields_v1(line.get("fieldsV1") or {})) for line in lines]


def write_managers(managers: list[Manager]) -> list[Json]:
    """The lines as they go into an object; those who own nothing are left out."""
    lines = []
    for manager in managers:
        if manager.paths:
            fields = to_fields_v1(manager.paths)
            lines.append({**manager.entry, "fieldsType": "FieldsV1", "fieldsV1": fields})
    return lines


def managed_part(obj: Json) -> Json:
    """The part of an object that can be owned: without identity and the server's own metadata."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in UNMANAGED}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": metadata} if metadata else rest


@attrs.frozen
class Write:
    """Who writes, through what, and when."""

    manager: str
    api_version: str
    subresource: str
    now: str


def track_update(schema: Schema, old: Json | None, new: Json, write: Write) -> None:
    """Give the fields a plain write changed to its manager; sets `new.metadata.managedFields`."""
    difference = Difference.between(schema, managed_part(old) if old else {}, managed_part(new))
    if not difference:
        new["metadata"]["managedFields"] = ((old or {}).get("metadata") or {}).get("managedFields") or []
        return
    managers, mine = read_managers(old), None
    for manager in managers:
        manager.paths -= difference.removed
        if manager.is_for(write.manager, "Update", write.subresource):
            mine = manager
        else:
            manager.paths -= difference.changed
    gained = difference.added | difference.changed
    if gained:
        if mine is None:
            mine = Manager.new(write.manager, "Update", write.subresource, write.api_version)
            managers.append(mine)
        mine.paths |= gained
        mine.touched(write.now, write.api_version)
    new["metadata"]["managedFields"] = write_managers(managers)
