"""ClusterPermissions: roles and bindings that the hub wants on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.errors import ApiError
from multikueue.protocols import ApiClient, read
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import (
    AGENT_NAMESPACE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    PERMISSION,
    ROLE,
    ROLE_BINDING,
)
from multikueue.sandbox.ocm.spokes import Spoke
from multikueue.sandbox.ocm.writing import ensure, remove, write_status

MADE_LABEL: Final = "open-cluster-management.io/cluster-permission"
"""On what was made for a ClusterPermission: its name."""
APPLIED: Final = ("AppliedRBACManifestWork", "Applied")
"""The condition's type, in versions until now and in newer ones."""
_GROUP: Final = CLUSTER_ROLE.gvk.group


def manifests(permission: Json) -> Iterator[tuple[Resource, Json]]:
    """The roles and bindings that a ClusterPermission stands for; those with a namespaceSelector are left out."""
    name, spec = name_of(permission), permission.get("spec") or {}
    labels = {MADE_LABEL: name}
    if role := spec.get("clusterRole"):
        yield CLUSTER_ROLE, built(CLUSTER_ROLE, name, labels=labels, rules=role.get("rules") or [])
    if binding := spec.get("clusterRoleBinding"):
        fields = _bound(binding, "ClusterRole", name)
        yield CLUSTER_ROLE_BINDING, built(CLUSTER_ROLE_BINDING, binding.get("name") or name, labels=labels, **fields)
    for role in spec.get("roles") or []:
        if role.get("namespace"):
            yield ROLE, built(ROLE, name, role["namespace"], labels=labels, rules=role.get("rules") or [])
    for binding in spec.get("roleBindings") or []:
        if binding.get("namespace"):
            fields = _bound(binding, "Role", name)
            made = built(ROLE_BINDING, binding.get("name") or name, binding["namespace"], labels=labels, **fields)
            yield ROLE_BINDING, made


def _bound(binding: Json, kind: str, name: str) -> Json:
    subjects = binding.get("subjects") or ([binding["subject"]] if binding.get("subject") else [])
    reference = {"apiGroup": _GROUP, "kind": kind, "name": name, **(binding.get("roleRef") or {})}
    return {"roleRef": reference, "subjects": [_subject(subject) for subject in subjects]}


def _subject(subject: Json) -> Json:
    """A ManagedServiceAccount is the service account that its agent makes."""
    if subject["kind"] == "ManagedServiceAccount":
        return {"kind": "ServiceAccount", "name": subject["name"], "namespace": AGENT_NAMESPACE}
    return {field: value for field, value in subject.items() if value}


@attrs.define(eq=False)
class PermissionReconciler:
    """Applies ClusterPermissions. Keys are theirs; the namespace is the cluster's name."""

    client: ApiClient
    clock: Callable[[], datetime]
    spokes: Mapping[str, Spoke]

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring the roles on a cluster in line with a ClusterPermission, and say so."""
        spoke = self.spokes.get(key.namespace)
        if spoke is None or not spoke.available:
            return Action.done()
        permission = await read(self.client, PERMISSION, key)
        gone = permission is None or is_terminating(permission)
        wanted = [] if gone or permission is None else list(manifests(permission))
        refused = await self._apply(spoke, wanted)
        await self._prune(spoke, key.name, {(kind, ObjectKey.of(obj)) for kind, obj in wanted})
        if permission is not None and not gone:
            said = ("Applied", "Apply manifest work complete") if not refused else ("AppliedFailed", refused)
            conditions = [new_condition(kind, not refused, *said, now=self.clock()) for kind in APPLIED]
            await write_status(self.client, PERMISSION, permission, {"conditions": conditions})
        return Action.done()

    async def _apply(self, spoke: Spoke, wanted: list[tuple[Resource, Json]]) -> str:
        """Write all of them; what the cluster refuses, or nothing."""
        for resource, obj in wanted:
            try:
                await ensure(spoke.client, resource, obj, "rules", "subjects")
            except ApiError as error:
                return str(error)
        return ""

    async def _prune(self, spoke: Spoke, name: str, wanted: set[tuple[Resource, ObjectKey]]) -> None:
        for resource in (CLUSTER_ROLE_BINDING, ROLE_BINDING, CLUSTER_ROLE, ROLE):
            there = await spoke.client.list(resource, label_selector=f"{MADE_LABEL}={name}")
            for obj in there.items:
                if (resource, ObjectKey.of(obj)) not in wanted:
                    await remove(spoke.client, resource, obj)
