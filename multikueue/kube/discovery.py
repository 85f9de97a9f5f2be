"""What an API server says of the kinds it serves (`APIResourceList`)."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import GVK, Json


@attrs.frozen
class Served:
    """How one kind is served."""

    plural: str
    namespaced: bool
    subresources: frozenset[str]


def served(listed: Json, gvk: GVK) -> Served | None:
    """Find a kind in the list of its group and version; None if it is not there."""
    resources = [entry for entry in listed.get("resources") or () if isinstance(entry, dict)]
    for entry in resources:
        name = str(entry.get("name", ""))
        if entry.get("kind") == gvk.kind and name and "/" not in name:
            inside = (str(other.get("name", "")).partition("/") for other in resources)
            subresources = frozenset(part for owner, slash, part in inside if owner == name and slash)
            return Served(name, bool(entry.get("namespaced")), subresources)
    return None
