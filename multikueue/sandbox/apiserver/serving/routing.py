"""From a method and a URL to what is asked: the kind, the object, and the verb as RBAC names it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.sandbox.apiserver.faults import Call
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import method_not_allowed, no_route
from multikueue.sandbox.apiserver.storage.cluster import Cluster
from multikueue.sandbox.apiserver.storage.watching import is_true
from multikueue.sandbox.apiserver.verbs.updating import Target

TOKEN = "token"
"""The subresource of service accounts that tokens are created by."""
LOG = "log"
PROXY = "proxy"
"""The subresource of nodes that leads to any path of a kubelet."""
_READ = {"GET": "get", "HEAD": "get"}
_STREAM = {"GET": "get", "POST": "create"}
_METHODS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("serviceaccounts", TOKEN): {"POST": "create"},
    ("pods", LOG): _READ,
    ("pods", "exec"): _STREAM,
    ("pods", "attach"): _STREAM,
    ("pods", "portforward"): _STREAM,
    ("nodes", PROXY): {**_READ, "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"},
}
"""The verbs of subresources that are no part of an object, by method."""
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@attrs.frozen
class Route:
    """One API call. An empty `name` means the collection; `selected` is the name a field selector asks for in it."""

    verb: str
    row: ResourceType
    namespace: str | None
    name: str = ""
    subresource: str = ""
    selected: str = ""
    path: str = ""
    """What follows on `proxy`."""

    @property
    def target(self) -> Target:
        """The object."""
        return Target(self.row, self.namespace, self.name, self.subresource)

    @property
    def attributes(self) -> Attributes:
        """What roles must allow."""
        row, name = self.row, self.name or self.selected
        return Attributes(self.verb, row.group, row.plural, self.subresource, self.namespace or "", name)

    def call(self, user: str) -> Call:
        """What faults match on."""
        row = self.row
        return Call(user, self.verb, row.qualified, self.namespace or "", self.name, self.subresource)


def split(path: str) -> list[str]:
    """The segments of a path."""
    return [segment for segment in path.split("/") if segment]


def group_version(segments: list[str]) -> tuple[str, str, list[str]] | None:
    """Group, version and the rest of a path to a resource; None for every other path."""
    if segments[:1] == ["api"] and len(segments) >= 3:
        return "", segments[1], segments[2:]
    if segments[:1] == ["apis"] and len(segments) >= 4:
        return segments[1], segments[2], segments[3:]
    return None


def route(cluster: Cluster, method: str, segments: list[str], query: Mapping[str, str]) -> Route:
    """Find what a request asks for.

    Raises:
        StatusError: 404 or 405.
    """
    parts = group_version(segments)
    if parts is None:
        raise no_route()
    group, version, rest = parts
    namespace, rest = _namespace(group, rest)
    row = cluster.type_of(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if (len(rest) > 3 and subresource != PROXY) or (subresource and subresource not in row.subresources):
        raise no_route()
    if (row.namespaced and namespace is None and name) or (namespace is not None and not row.namespaced):
        raise no_route()
    methods = _METHODS.get((row.plural, subresource)) if row.group == "" else None
    if methods is not None:
        if method not in methods:
            raise method_not_allowed()
        return Route(methods[method], row, namespace, name, subresource, path="/".join(["", *rest[3:]]))
    verb = _verb(method, name, row, namespace, query)
    return Route(verb, row, namespace, name, subresource, "" if name else _selected(query))


def _namespace(group: str, rest: list[str]) -> tuple[str | None, list[str]]:
    if rest[0] != "namespaces" or len(rest) < 3:
        return None, rest
    if group == "" and len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES:
        return None, rest
    return rest[1], rest[2:]


def _selected(query: Mapping[str, str]) -> str:
    """The name that a field selector asks for."""
    terms = (term.partition("=") for term in query.get("fieldSelector", "").split(","))
    return next((value.removeprefix("=") for field, _, value in terms if field.strip() == "metadata.name"), "")


def _verb(method: str, name: str, row: ResourceType, namespace: str | None, query: Mapping[str, str]) -> str:
    watch = is_true(query.get("watch"))
    verbs = {
        "GET": "watch" if watch else "get" if name else "list",
        "POST": "" if name or (row.namespaced and namespace is None) else "create",
        "PUT": "update" if name else "",
        "PATCH": "patch" if name else "",
        "DELETE": "delete" if name else "deletecollection",
    }
    verb = verbs.get(method)
    if not verb or verb not in row.verbs:
        raise method_not_allowed()
    return verb
