"""
The OpenAPI schemas of builtin kinds, as a real API server publishes them.

`tests/conformance/builtin_schemas.py` writes the file. Two marks are added to OpenAPI's: `x-omit-empty`, the field is
left out when it is empty or zero, and `x-null`, it is written as null when it is not set.
"""

from __future__ import annotations

from functools import cache

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import packaged
from multikueue.sandbox.apiserver.kinds.shapes import DEDUCED, Reader, Shape

_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def _document() -> Json:
    document: Json = packaged(__package__, "builtin_schemas.json")
    return document


def definition(name: str) -> Json:
    """A schema that others refer to."""
    schema: Json = _document()["definitions"][name]
    return schema


def resolved(schema: Json) -> Json:
    """A schema, with what it refers to filled in; its own words come first."""
    reference = schema.get("$ref")
    return {**definition(reference), **schema} if reference else schema


def metadata_schema() -> Json:
    """The schema of `metadata`, of every kind."""
    return definition(_METADATA)


@cache
def builtin_schema(group: str, version: str, kind: str) -> Json | None:
    """The schema of a kind; None for kinds that have none here."""
    name = _document()["roots"].get(f"{group}/{version}/{kind}")
    return definition(name) if name else None


@cache
def builtin_shape(group: str, version: str, kind: str) -> Shape:
    """The shape of a kind for server-side apply."""
    schema = builtin_schema(group, version, kind)
    return reader().read(schema) if schema else DEDUCED


@cache
def reader() -> Reader:
    """Reads shapes of schemas that refer to these."""
    return Reader(_document()["definitions"])
