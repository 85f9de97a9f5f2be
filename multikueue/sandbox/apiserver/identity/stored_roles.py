"""Roles and bindings as a cluster stores them, and those that every cluster begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.identity.rbac import GROUP
from multikueue.sandbox.apiserver.identity.users import ADMINISTRATORS, AUTHENTICATED
from multikueue.sandbox.apiserver.storage.cluster import Cluster

_READ: Final = ("get", "list", "watch")
_WRITE: Final = (*_READ, "create", "delete", "deletecollection", "patch", "update")
_OPEN: Final = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz")
_DAILY: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("", ("configmaps", "events", "persistentvolumeclaims", "pods", "pods/status", "serviceaccounts", "services")),
    ("apps", ("deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets")),
    ("batch", ("cronjobs", "jobs", "jobs/status")),
)
"""What `view` shows; `edit` may change it, and Secrets as well."""


@attrs.frozen
class StoredRoles:
    """Reads roles and bindings; a `Roles`."""

    cluster: Cluster

    def bindings(self, namespace: str) -> Iterator[Json]:
        """The ClusterRoleBindings, then the RoleBindings of a namespace."""
        yield from self._all("clusterrolebindings", "")
        if namespace:
            yield from self._all("rolebindings", namespace)

    def rules(self, kind: str, namespace: str, name: str) -> Sequence[Json] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""
        plural, within = ("roles", namespace) if kind == "Role" else ("clusterroles", "")
        entry = self.cluster.store.get((GROUP, plural), (within, name))
        return (entry.obj.get("rules") or ()) if entry else None

    def _all(self, plural: str, namespace: str) -> Iterator[Json]:
        bucket = self.cluster.store.buckets.get((GROUP, plural))
        if bucket is not None:
            yield from (bucket.objects[key].obj for key in bucket.keys_of(namespace))


def _rule(verbs: Iterable[str], group: str, resources: Sequence[str]) -> Json:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources)}


def _role(name: str, *rules: Json) -> Json:
    return _object("ClusterRole", name, rules=list(rules))


def _binding(role: str, group: str) -> Json:
    subject = {"apiGroup": GROUP, "kind": "Group", "name": group}
    return _object(
        "ClusterRoleBinding", role, subjects=[subject], roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    )


def _object(kind: str, name: str, **fields: Any) -> Json:
    metadata = {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **fields}


def first_roles() -> Iterator[Json]:
    """What a cluster has from the start: everybody may look at the API, administrators may do everything.

    `view`, `edit` and `admin` are shorter than a real cluster's: they name the kinds that are served here.
    """
    yield _role("cluster-admin", _rule(("*",), "*", ("*",)), {"verbs": ["*"], "nonResourceURLs": ["*"]})
    yield _binding("cluster-admin", ADMINISTRATORS)
    yield _role("system:discovery", {"verbs": ["get"], "nonResourceURLs": [*_OPEN, "/version", "/version/"]})
    yield _binding("system:discovery", AUTHENTICATED)
    own = _rule(("create",), "authorization.k8s.io", ("selfsubjectaccessreviews", "selfsubjectrulesreviews"))
    yield _role("system:basic-user", own, _rule(("create",), "authentication.k8s.io", ("selfsubjectreviews",)))
    yield _binding("system:basic-user", AUTHENTICATED)
    edits = [*(_rule(_WRITE, *row) for row in _DAILY), _rule(_WRITE, "", ("secrets",))]
    edits.append(_rule(("create",), "", ("serviceaccounts/token",)))
    yield _role("view", *(_rule(_READ, *row) for row in _DAILY))
    yield _role("edit", *edits)
    yield _role("admin", *edits, _rule(_WRITE, GROUP, ("rolebindings", "roles")))
