"""`metadata.managedFields`: who owns which field, read and written back."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import from_fields_v1, to_fields_v1
from multikueue.sandbox.apiserver.kinds.shapes import Path

APPLY, UPDATE = "Apply", "Update"
_SYSTEM = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
)
UNOWNED: frozenset[Path] = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{key}") for key in _SYSTEM)]
)
"""What nobody owns, though everybody sends it."""
_MOST_UPDATERS = 10


@attrs.frozen
class ManagerId:
    """What tells one line of managedFields from another; appliers are the same in every version."""

    name: str
    operation: str
    version: str
    subresource: str

    @classmethod
    def of(cls, name: str, operation: str, version: str, subresource: str) -> ManagerId:
        """The id of a manager."""
        return cls(name, operation, version if operation == UPDATE else "", subresource)


@attrs.define(eq=False)
class Manager:
    """One line of managedFields: what a manager owns, in which version, and when it last changed something."""

    version: str
    paths: set[Path]
    time: str | None = None


Managers = dict[ManagerId, Manager]


@attrs.frozen
class Write:
    """Who writes, through what, and when; `ignored` is what the server resets on this path anyway."""

    manager: str
    api_version: str
    subresource: str
    now: str
    ignored: frozenset[Path] = frozenset()

    def by(self, operation: str) -> ManagerId:
        """The id of the manager that writes."""
        return ManagerId.of(self.manager, operation, self.api_version, self.subresource)


def read_managers(obj: Json) -> Managers:
    """The managers of an object."""
    managers: Managers = {}
    for line in (obj.get("metadata") or {}).get("managedFields") or []:
        who = ManagerId.of(line["manager"], line["operation"], line["apiVersion"], line.get("subresource") or "")
        managers[who] = Manager(line["apiVersion"], from_fields_v1(line.get("fieldsV1") or {}), line.get("time"))
    return managers


def write_managers(obj: Json, managers: Managers) -> None:
    """Put the managers into an object's metadata; those who own nothing are left out."""
    order = sorted(managers.items(), key=lambda item: (item[0].operation, item[1].time or "", *attrs.astuple(item[0])))
    lines = [_line(who, manager) for who, manager in order if manager.paths]
    metadata = obj["metadata"]
    metadata.pop("managedFields", None)
    if lines:
        metadata["managedFields"] = lines


def _line(who: ManagerId, manager: Manager) -> Json:
    line: Json = {"manager": who.name, "operation": who.operation, "apiVersion": manager.version}
    if manager.time:
        line["time"] = manager.time
    line |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(manager.paths)}
    if who.subresource:
        line["subresource"] = who.subresource
    return line


def cap_updaters(managers: Managers) -> None:
    """Merge the oldest lines of plain writes into one, once there are too many."""
    updaters = [who for who in managers if who.operation == UPDATE]
    updaters.sort(key=lambda who: (managers[who].time or "", who.name))
    first: dict[str, ManagerId] = {}
    excess = len(updaters) - _MOST_UPDATERS
    for who in updaters:
        if excess <= 0:
            return
        version = managers[who].version
        if version not in first:
            first[version] = who
            continue
        bucket = ManagerId.of("ancient-changes", UPDATE, version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first[version])
        merged = managers.pop(who)
        managers[bucket] = Manager(version, merged.paths | managers[bucket].paths, merged.time)
        excess -= 1
