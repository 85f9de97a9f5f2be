"""Requests as values: method, path, query, headers and body of every verb. Built without a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

import attrs
import orjson

from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.protocols import Propagation, Subresource

PAGE_SIZE: Final = 500
"""Objects asked for at once: bounds the memory of a list, at one more round trip per 500."""

_JSON: Final = "application/json"


@attrs.frozen
class Request:
    """One request to an API server."""

    verb: str
    """As audit logs and RBAC name it."""
    resource: Resource
    method: str
    path: str
    """Path and query, encoded."""
    body: bytes | None = attrs.field(default=None, repr=False)
    content_type: str = _JSON


def _path(resource: Resource, namespace: str, name: str = "", subresource: Subresource = "") -> str:
    gvk = resource.gvk
    parts = ["/apis", gvk.group, gvk.version] if gvk.group else ["/api", gvk.version]
    if namespace and resource.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(resource.plural)
    if name:
        parts.append(quote(name, safe=""))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def _with_query(path: str, query: Mapping[str, str]) -> str:
    given = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def get(resource: Resource, key: ObjectKey) -> Request:
    """Read one object."""
    return Request("get", resource, "GET", _path(resource, key.namespace, key.name))


def list_page(
    resource: Resource, *, namespace: str, label_selector: str, limit: int = PAGE_SIZE, continue_token: str = ""
) -> Request:
    """Read one page of a list; a limit of 0 asks for everything at once."""
    query = {"labelSelector": label_selector, "limit": str(limit) if limit else "", "continue": continue_token}
    return Request("list", resource, "GET", _with_query(_path(resource, namespace), query))


def watch(resource: Resource, *, namespace: str, label_selector: str, resource_version: str) -> Request:
    """Follow changes, with bookmarks so that silence means something."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "labelSelector": label_selector,
        "resourceVersion": resource_version,
    }
    return Request("watch", resource, "GET", _with_query(_path(resource, namespace), query))


def create(resource: Resource, obj: Json) -> Request:
    """Create an object in its own namespace."""
    namespace = ObjectKey.of(obj).namespace
    return Request("create", resource, "POST", _path(resource, namespace), orjson.dumps(obj))


def replace(resource: Resource, obj: Json, subresource: Subresource) -> Request:
    """Replace an object."""
    key = ObjectKey.of(obj)
    path = _path(resource, key.namespace, key.name, subresource)
    return Request("update", resource, "PUT", path, orjson.dumps(obj))


def merge_patch(resource: Resource, key: ObjectKey, patch: Json, subresource: Subresource) -> Request:
    """Change an object by a JSON merge patch."""
    path = _path(resource, key.namespace, key.name, subresource)
    return Request("patch", resource, "PATCH", path, orjson.dumps(patch), "application/merge-patch+json")


def apply(resource: Resource, obj: Json, field_manager: str, force: bool, subresource: Subresource) -> Request:
    """Server-side apply. (JSON is YAML.)"""
    key = ObjectKey.of(obj)
    path = _path(resource, key.namespace, key.name, subresource)
    query = {"fieldManager": field_manager, "force": "true" if force else ""}
    return Request(
        "patch", resource, "PATCH", _with_query(path, query), orjson.dumps(obj), "application/apply-patch+yaml"
    )


def delete(
    resource: Resource,
    key: ObjectKey,
    *,
    uid: str | None,
    resource_version: str | None,
    propagation: Propagation | None,
) -> Request:
    """Delete an object if the preconditions hold."""
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid or resource_version:
        options["preconditions"] = {field: value for field, value in preconditions.items() if value}
    if propagation:
        options["propagationPolicy"] = propagation
    path = _path(resource, key.namespace, key.name)
    return Request("delete", resource, "DELETE", path, orjson.dumps(options))
