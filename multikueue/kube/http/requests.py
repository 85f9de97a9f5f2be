"""Requests as values: method, path, query, headers and body of every verb. Building them does no I/O.

They raise `Invalid` if a key does not name exactly one object, or a resource exactly one: others choose the names. What
is no `Resource` or no `ObjectKey` at all is a TypeError: their caller has chosen it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import attrs
import orjson

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import namespace_of
from multikueue.errors import Invalid
from multikueue.protocols import Propagation, Subresource

PAGE_SIZE: Final = 500
"""Objects per page of a list. It bounds the memory of an answer, at one more round trip per 500 objects."""
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Asks for a list of the metadata alone: free-form fields, which may nest too deep to be decoded, are not in it."""

NAME_ONLY: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
"""Asks for a row about an object and, with includeObject=None, for nothing of the object itself. Its metadata would not
do: `kubectl apply` keeps a copy of all there is in an annotation.
"""

_AS_IT_IS: Final = re.compile(r"[A-Za-z0-9._-]+").fullmatch


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
    content_type: str = "application/json"
    accept: str = ""
    """The form of the answer that is asked for; empty: objects as they are."""

    @property
    def namespace(self) -> str:
        """Of what is asked for; empty: it is in none, or in several."""
        _, _, below = self.path.partition("/namespaces/")
        return re.split("[/?]", below, maxsplit=1)[0]

    @property
    def name(self) -> str:
        """The last part of the path: of one object its name, if it is about no subresource."""
        return unquote(self.path.partition("?")[0].rpartition("/")[2])


def _collection(resource: Resource, namespace: str) -> str:
    _check("Resource, as multikueue.JOB", Resource, resource)
    parts = [_version(resource, resource.gvk.group, resource.gvk.version)]
    if namespace and resource.namespaced:
        parts += ["namespaces", _segment(resource, "namespace", namespace)]
    return "/".join([*parts, _segment(resource, "plural", resource.plural)])


def _version(resource: Resource, group: str, version: str) -> str:
    """The path of one version of a group. A worker names groups, too: in the owners of its objects."""
    last = _segment(resource, "version", version)
    return f"/apis/{_segment(resource, 'group', group)}/{last}" if group else f"/api/{last}"


def _object(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    """The path of one object. Without a name it would be the collection, and DELETE would delete all of it."""
    _check('ObjectKey, as ObjectKey("namespace", "name")', ObjectKey, key)
    collection = _collection(resource, key.namespace)
    if resource.namespaced and not key.namespace:
        raise Invalid(f"{resource} {key.name!r}: a namespace is required")
    path = f"{collection}/{_segment(resource, 'name', key.name)}"
    return f"{path}/{subresource}" if subresource else path


def _check(wanted: str, of: type, given: object) -> None:
    if not isinstance(given, of):
        raise TypeError(f"{given!r} is no {wanted}")


def _segment(resource: Resource, field: str, value: str) -> str:
    """A name as a path segment. API servers decode a path before they split it, so an encoded slash is a separator."""
    if not value or value in (".", "..") or "/" in value or "%" in value:
        raise Invalid(f"{resource}: {value!r} is not a {field}")
    return value if _AS_IT_IS(value) else quote(value, safe="")


def _encoded(resource: Resource, body: Json) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:  # nested more than 254 deep, which free-form fields allow
        raise Invalid(f"{resource}: it cannot be sent: {error}") from None


def _with_query(path: str, query: Mapping[str, str]) -> str:
    given = _given(query)
    return f"{path}?{urlencode(given)}" if given else path


def _given(fields: Mapping[str, Any]) -> Json:
    return {field: value for field, value in fields.items() if value}


def discover(group: str, version: str) -> Request:
    """Read which kinds are served of one version of a group."""
    resource = Resource(GVK("", "v1", "APIResourceList"), "apiresources", namespaced=False)
    return Request("get", resource, "GET", _version(resource, group, version))


def discover_all() -> Request:
    """Read which kinds are served of all groups but the core, in one document."""
    resource = Resource(GVK("", "v1", "APIGroupDiscoveryList"), "apigroups", namespaced=False)
    return Request("get", resource, "GET", "/apis", accept=f"{AGGREGATED},application/json")


def openapi(group: str, version: str) -> Request:
    """Read the OpenAPI document of one version of a group."""
    path = f"/openapi/v3/apis/{quote(group, safe='')}/{quote(version, safe='')}"
    return Request("get", Resource(GVK("", "v3", "OpenAPI"), "openapi", namespaced=False), "GET", path)


def get(resource: Resource, key: ObjectKey) -> Request:
    """Read one object."""
    return Request("get", resource, "GET", _object(resource, key))


def exists(resource: Resource, key: ObjectKey) -> Request:
    """Read of one object that it is there."""
    path = _with_query(_object(resource, key), {"includeObject": "None"})
    return Request("get", resource, "GET", path, accept=f"{NAME_ONLY},application/json")


def part(resource: Resource, key: ObjectKey, name: str) -> Request:
    """Read what an aggregated API has below an object."""
    return Request("get", resource, "GET", _object(resource, key, name))


def list_page(
    resource: Resource,
    *,
    namespace: str,
    label_selector: str,
    limit: int = PAGE_SIZE,
    continue_token: str = "",
    accept: str = "",
) -> Request:
    """Read one page of a list. A limit of 0 asks for everything in one page."""
    query = {"labelSelector": label_selector, "limit": str(limit) if limit else "", "continue": continue_token}
    return Request("list", resource, "GET", _with_query(_collection(resource, namespace), query), accept=accept)


def watch(resource: Resource, *, namespace: str, label_selector: str, resource_version: str) -> Request:
    """Watch changes, with bookmarks so that a silent watch can be detected."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "labelSelector": label_selector,
        "resourceVersion": resource_version,
    }
    return Request("watch", resource, "GET", _with_query(_collection(resource, namespace), query))


@attrs.frozen
class LogQuery:
    """What to read of a container's log. Each line begins with its time, which `log_stream` takes off."""

    container: str = ""
    """Its name; needed if the pod has several."""
    follow: bool = False
    """Whether to wait for more, until the container has ended."""
    since_seconds: int = 0
    """Only what is not older, by the node's clock; 0: all there is."""
    since: str = ""
    """Only what is not older than this time (RFC 3339), instead of `since_seconds`."""
    tail: int | None = None
    """Only so many lines before those that are waited for; None: all."""
    all_pods: bool = False
    """Of all pods of a job: only our own aggregated API knows that."""
    pod: str = ""
    """Of this pod of a job, likewise."""
    previous: bool = False
    """Of the container before its last restart."""


def pod_log(resource: Resource, key: ObjectKey, query: LogQuery) -> Request:
    """Read the log of one container, or of what else has a subresource `log`."""
    asked = {
        "container": query.container,
        "follow": "true" if query.follow else "",
        "timestamps": "true",
        "sinceTime": query.since,
        "sinceSeconds": "" if query.since or not query.since_seconds else str(query.since_seconds),
        "tailLines": "" if query.tail is None else str(query.tail),
    }
    own = {"allPods": "true" if query.all_pods else "", "pod": query.pod, "previous": "true" if query.previous else ""}
    asked |= {name: value for name, value in own.items() if value}
    return Request("get", resource, "GET", _with_query(_object(resource, key, "log"), asked))


def create(resource: Resource, obj: Json) -> Request:
    """Create an object in its own namespace."""
    path = _collection(resource, namespace_of(obj))
    return Request("create", resource, "POST", path, _encoded(resource, obj))


def token(account: ObjectKey, spec: Json) -> Request:
    """Ask for a token of a service account."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    resource = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")
    return Request("create", resource, "POST", _object(resource, account, "token"), _encoded(resource, body))


def replace(resource: Resource, obj: Json, subresource: Subresource) -> Request:
    """Replace an object."""
    path = _object(resource, ObjectKey.of(obj), subresource)
    return Request("update", resource, "PUT", path, _encoded(resource, obj))


def merge_patch(resource: Resource, key: ObjectKey, patch: Json, subresource: Subresource) -> Request:
    """Change an object by a JSON merge patch."""
    path = _object(resource, key, subresource)
    return Request("patch", resource, "PATCH", path, _encoded(resource, patch), "application/merge-patch+json")


def apply(resource: Resource, obj: Json, field_manager: str, force: bool, subresource: Subresource) -> Request:
    """Server-side apply. (JSON is YAML.)"""
    path = _object(resource, ObjectKey.of(obj), subresource)
    target = _with_query(path, {"fieldManager": field_manager, "force": "true" if force else ""})
    return Request("patch", resource, "PATCH", target, _encoded(resource, obj), "application/apply-patch+yaml")


def delete(
    resource: Resource,
    key: ObjectKey,
    *,
    uid: str | None,
    resource_version: str | None,
    propagation: Propagation | None,
    grace: int | None = None,
) -> Request:
    """Delete an object if the preconditions hold."""
    preconditions = _given({"uid": uid, "resourceVersion": resource_version})
    options = _given({"preconditions": preconditions, "propagationPolicy": propagation})
    ends = {} if grace is None else {"gracePeriodSeconds": grace}
    body = orjson.dumps({"apiVersion": "v1", "kind": "DeleteOptions", **options, **ends})
    return Request("delete", resource, "DELETE", _object(resource, key), body)
