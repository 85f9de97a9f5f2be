"""Roles and bindings as a cluster stores them, and those that every cluster begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import packaged
from multikueue.sandbox.apiserver.identity.rbac import GROUP
from multikueue.sandbox.apiserver.storage.cluster import Cluster


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


@cache
def first_roles() -> list[Json]:
    """What a cluster has from the start; `first_roles.yaml` says what. Treat it as read-only: it is shared."""
    found: list[Json] = packaged(__package__, "first_roles.yaml")
    return found
