"""What a server says of the kinds that it serves: their plurals, and the schemas that it publishes."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import GVK, SHORT_NAME, Json
from multikueue.core.model.objects import dig


@attrs.frozen
class ServedKind:
    """How a server serves one kind."""

    plural: str
    namespaced: bool
    subresources: frozenset[str]


def served(listed: Json, gvk: GVK) -> ServedKind | None:
    """Find a kind in the `APIResourceList` of its group and version; None if it is not there."""
    resources = [entry for entry in listed.get("resources") or () if isinstance(entry, dict)]
    for entry in resources:
        name = str(entry.get("name", ""))
        if entry.get("kind") == gvk.kind and SHORT_NAME.fullmatch(name):
            inside = (str(other.get("name", "")).partition("/") for other in resources)
            subresources = frozenset(part for owner, slash, part in inside if owner == name and slash)
            return ServedKind(name, bool(entry.get("namespaced")), subresources)
    return None


def served_by(document: Json) -> frozenset[GVK] | None:
    """The kinds in an aggregated discovery document; None: it is another document, or tells not all of them now."""
    items = document.get("items")
    if document.get("kind") != "APIGroupDiscoveryList" or not isinstance(items, list):
        return None
    versions = [(item, version) for item in items for version in _dicts(dig(item, "versions"))]
    if any(version.get("freshness") != "Current" for _, version in versions):
        return None  # an aggregated API server does not answer
    return frozenset(
        GVK(str(dig(item, "metadata", "name")), str(version.get("version")), str(dig(resource, "responseKind", "kind")))
        for item, version in versions
        for resource in _dicts(version.get("resources"))
    )


def _dicts(value: object) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def published_schema(document: Json, gvk: GVK) -> Json | None:
    """Find the schema of a kind in the OpenAPI document of its group and version; None if it is not there."""
    kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    schemas = dig(document, "components", "schemas")
    for schema in schemas.values() if isinstance(schemas, dict) else ():
        kinds = dig(schema, "x-kubernetes-group-version-kind")
        if isinstance(kinds, list) and kind in kinds:
            published: Json = schema
            return published
    return None
