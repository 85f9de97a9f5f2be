"""
OpenAPI documents, as far as kubectl reads them: version 3 tells it that the server validates fields, and holds the
schemas that `kubectl explain` prints.

The patches of builtin kinds are described without strategic merge: kubectl then computes strategic merge patches from
the types compiled into it. Version 2 describes builtin kinds without their fields; kubectl reads version 3.
"""

from __future__ import annotations

from collections.abc import Iterable

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds import builtin_openapi
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import no_route

_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_KIND = "x-kubernetes-group-version-kind"
_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class OpenApi:
    """Answers from the kinds served at this moment."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._rows: dict[str, list[ResourceType]] = {}
        for row in (row for row in types if not row.write_only):
            place = f"apis/{row.api_version}" if row.group else f"api/{row.version}"
            self._rows.setdefault(place, []).append(row)

    def answer(self, segments: list[str]) -> Json:
        """The document at a path below `/openapi`.

        Raises:
            StatusError: 404.
        """
        match segments:
            case ["v2"]:
                return self._version_2()
            case ["v3"]:
                urls = {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in self._rows}
                return {"paths": urls}
            case ["v3", *rest] if "/".join(rest) in self._rows:
                return self._version_3(self._rows["/".join(rest)], "/".join(rest))
        raise no_route()

    def _version_2(self) -> Json:
        definitions = {_schema_name(row): _schema(row) for rows in self._rows.values() for row in rows}
        info = {"title": "Kubernetes", "version": "v1.36.0-sandbox"}
        return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}

    def _version_3(self, rows: list[ResourceType], place: str) -> Json:
        own = {_published_name(row): row for row in rows}
        shared = builtin_openapi.schemas(filter(None, map(_packaged_name, rows)))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1.36.0-sandbox"},
            "paths": {_object_path(row, place): _operations(row, name) for name, row in own.items()},
            "components": {"schemas": {**shared, **{name: _published(row, shared) for name, row in own.items()}}},
        }


def _object_path(row: ResourceType, place: str) -> str:
    within = "namespaces/{namespace}/" if row.namespaced else ""
    return f"/{place}/{within}{row.plural}/{{name}}"


def _kind(row: ResourceType) -> Json:
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _schema_name(row: ResourceType) -> str:
    group = ".".join(reversed(row.group.split("."))) if row.group else "io.k8s.api.core"
    return f"{group}.{row.version}.{row.kind}"


def _schema(row: ResourceType) -> Json:
    schema = dict(row.custom.schema) if row.custom else dict(_ANY)
    return {**schema, _KIND: [_kind(row)]}


def _published_name(row: ResourceType) -> str:
    """What the schema is called in version 3: a builtin one as a real API server calls it."""
    return _packaged_name(row) or _schema_name(row)


def _packaged_name(row: ResourceType) -> str:
    """Of the schema that came from a real API server; empty: there is none, of a kind that was defined here for one."""
    return "" if row.custom else builtin_openapi.schema_name(row.group, row.version, row.kind)


def _published(row: ResourceType, shared: Json) -> Json:
    """The schema in version 3."""
    name = _packaged_name(row)
    return {**shared[name], _KIND: [_kind(row)]} if name else _schema(row)


def _operations(row: ResourceType, schema: str) -> Json:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _PARAMETERS
    ]
    body = {"content": {form: {"schema": {"type": "object"}} for form in _PATCHES}, "required": True}
    kind = {_KIND: _kind(row)}
    return {
        "get": {"x-kubernetes-action": "get", "responses": answer, **kind},
        "patch": {
            "x-kubernetes-action": "patch",
            "parameters": parameters,
            "requestBody": body,
            "responses": answer,
            **kind,
        },
    }
