"""What the server serves: one `ResourceType` per group, version and plural, builtin or from a CRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import packaged
from multikueue.sandbox.apiserver.kinds.builtin_schemas import (
    builtin_schema,
    builtin_shape,
    metadata_schema,
    reader,
)
from multikueue.sandbox.apiserver.kinds.shapes import Path, Shape

GroupResource: TypeAlias = tuple[str, str]
"""Group and plural: the versions of a kind share one set of objects."""

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
NAMESPACES: GroupResource = ("", "namespaces")
PODS: GroupResource = ("", "pods")
DEFINITIONS: GroupResource = ("apiextensions.k8s.io", "customresourcedefinitions")
_STATUS: frozenset[Path] = frozenset([("f:status",)])
_SPEC: frozenset[Path] = frozenset([("f:spec",)])
_METADATA: frozenset[Path] = frozenset([("f:metadata",)])
_POD_METADATA: frozenset[Path] = frozenset([("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")])
_AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


@attrs.define(eq=False, slots=False)
class CustomKind:
    """What only a kind from a CRD has.

    Attributes:
        definition: the CRD's name.
        schema: the version's structural schema.
        storage: the version objects are stored in.
        columns: its `additionalPrinterColumns`.
        scale: its scale subresource, if it has one.
    """

    definition: str
    schema: Json
    storage: str
    columns: list[Json] = attrs.field(factory=list)
    scale: Json | None = None

    @cached_property
    def body_schema(self) -> Json:
        """The schema without `required` at the root, which names fields the server itself fills in."""
        return {key: value for key, value in self.schema.items() if key != "required"}

    @cached_property
    def shape(self) -> Shape:
        """The shape of the kind for server-side apply."""
        own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata_schema()}
        return reader().read({**self.schema, "properties": {**(self.schema.get("properties") or {}), **own}})

    @cached_property
    def has_rules(self) -> bool:
        """Whether any CEL rule is in the schema."""
        return _any_rules(self.schema)


@attrs.frozen
class Twin:
    """Another group in which the same objects are served, and kept: its name, and what it calls their fields."""

    group: str
    names: Mapping[str, str]
    """Its names of the fields at the top, by ours; those called the same are left out."""

    def theirs(self, obj: Json, api_version: str) -> Json:
        """An object of ours, as it calls it."""
        return {**{self.names.get(field, field): value for field, value in obj.items()}, "apiVersion": api_version}

    def ours(self, obj: Json, api_version: str) -> Json:
        """An object of its, as we call it."""
        back = {name: field for field, name in self.names.items()}
        return {**{back.get(field, field): value for field, value in obj.items()}, "apiVersion": api_version}


def _any_rules(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    if schema.get("x-kubernetes-validations"):
        return True
    children = [*(schema.get("properties") or {}).values()]
    children += [schema.get("items"), schema.get("additionalProperties")]
    return any(_any_rules(child) for child in children)


@attrs.define(eq=False, slots=False, kw_only=True)
class ResourceType:
    """A kind in one version, and the rules by which the registry treats its objects.

    Attributes:
        subresources: `status`, `scale`, ...
        selectable: the field selectors it supports besides name and namespace.
        unconditional: a PUT without resourceVersion is allowed.
        generation: `metadata.generation` counts changes of the spec.
        returns_object: DELETE answers with the object instead of a Status.
        orphans: a DELETE that does not say what becomes of its dependents leaves them alone.
        custom: set for kinds that come from a CRD.
        twin: where its objects are kept, if another group serves them too.
        starts_with_status: a POST may say its status, and a PUT never does.
        write_only: it is a request and not an object: it can be created, and nothing is kept.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = attrs.field(
        default=attrs.Factory(lambda self: self.kind.lower(), takes_self=True)  # as kube-apiserver does
    )
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()
    unconditional: bool = True
    generation: bool = False
    returns_object: bool = False
    orphans: bool = False
    custom: CustomKind | None = None
    twin: Twin | None = None
    starts_with_status: bool = False
    write_only: bool = False

    @cached_property
    def group_resource(self) -> GroupResource:
        """Group and plural of where its objects are kept."""
        return (self.twin.group if self.twin else self.group, self.plural)

    @cached_property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """`jobs.batch`, `pods`: the name in errors."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified_kind(self) -> str:
        """`Job.batch`, `Pod`: the name in validation errors."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def fields(self) -> frozenset[str]:
        """Every field selector it supports."""
        own = ("metadata.name", "metadata.namespace") if self.namespaced else ("metadata.name",)
        return frozenset((*own, *self.selectable))

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done with its objects."""
        return ("create",) if self.write_only else VERBS

    def stored_path(self, field: str) -> str:
        """Where a field of a field selector is in stored objects."""
        first, dot, rest = field.partition(".")
        return (self.twin.names.get(first, first) if self.twin else first) + dot + rest

    def viewed(self, obj: Json) -> Json:
        """A stored object as this kind; versions differ only in name (conversion strategy None)."""
        if obj.get("apiVersion") == self.api_version:
            return obj
        return self.twin.ours(obj, self.api_version) if self.twin else {**obj, "apiVersion": self.api_version}

    def to_store(self, obj: Json) -> Json:
        """An object of this kind as it is stored."""
        if self.twin:
            return self.twin.theirs(obj, f"{self.twin.group}/{self.version}")
        if self.stored_version != self.version:
            return {**obj, "apiVersion": f"{self.group}/{self.stored_version}"}
        return obj

    @property
    def as_stored(self) -> bool:
        """Whether its objects are stored as they are shown."""
        return self.twin is None and self.stored_version == self.version

    @cached_property
    def schema(self) -> Json | None:
        """The schema of a builtin kind; None for custom kinds and for CustomResourceDefinitions."""
        return None if self.custom else builtin_schema(self.group, self.version, self.kind)

    @cached_property
    def shape(self) -> Shape:
        """What server-side apply knows about the kind."""
        return self.custom.shape if self.custom else builtin_shape(self.group, self.version, self.kind)

    def reset(self, subresource: str) -> frozenset[Path]:
        """The fields that a write to the object, or to a subresource of it, never changes."""
        if subresource != "status":
            return _STATUS if "status" in self.subresources else frozenset()
        if self.custom:
            return _SPEC | _METADATA
        return _SPEC | _POD_METADATA if self.group_resource == PODS else _SPEC

    @property
    def stored_version(self) -> str:
        """The version its objects are stored in."""
        return self.custom.storage if self.custom else self.version


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


@cache
def _rows() -> list[Json]:
    rows: list[Json] = packaged(__package__, "builtin_kinds.yaml")
    for row in rows:
        row.update({name: tuple(value) for name, value in row.items() if isinstance(value, list)})
        if "twin" in row:
            row["twin"] = Twin(**row["twin"])
    return rows


def builtin_types() -> Iterator[ResourceType]:
    """Fresh rows, for one server."""
    return (ResourceType(**row) for row in _rows())
