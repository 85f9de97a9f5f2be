"""From a CustomResourceDefinition to the resource types it serves, one per served version."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.storage.resources import CustomKind, ResourceType

_AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def types_of(definition: Json) -> Iterator[ResourceType]:
    """The rows of a valid CRD."""
    spec = definition["spec"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    for version in spec["versions"]:
        if version.get("served", True):
            yield _type_of(definition, version, storage)


def _type_of(definition: Json, version: Json, storage: str) -> ResourceType:
    spec, names = definition["spec"], definition["spec"]["names"]
    subresources = version.get("subresources") or {}
    fields = version.get("selectableFields") or ()
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(subresources),
        selectable=tuple(field["jsonPath"].lstrip(".") for field in fields),
        unconditional=False,
        generation=True,
        custom=CustomKind(
            definition=definition["metadata"]["name"],
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            storage=storage,
            columns=version.get("additionalPrinterColumns") or [_AGE],
            scale=subresources.get("scale"),
        ),
    )
