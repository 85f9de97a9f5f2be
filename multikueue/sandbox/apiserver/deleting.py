"""The verb delete: at once, or a deletionTimestamp while finalizers or a grace period hold the object."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.cluster import Cluster, view
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.resources import NAMESPACES, PODS, ResourceType
from multikueue.sandbox.apiserver.statuses import precondition
from multikueue.sandbox.apiserver.updating import Target

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


@attrs.frozen
class DeleteOptions:
    """How to delete.

    Attributes:
        propagation: `Background`, `Foreground`, `Orphan`; empty for the default.
        uid: precondition.
        resource_version: precondition.
        grace: seconds; None for the object's own.
        dry_run: answer as if, delete nothing.
    """

    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    grace: int | None = None
    dry_run: bool = False

    @classmethod
    def from_body(cls, body: Any) -> DeleteOptions:
        """Read a DeleteOptions object; anything else means the defaults."""
        given = body if isinstance(body, dict) else {}
        preconditions = given.get("preconditions") or {}
        return cls(
            propagation="Orphan" if given.get("orphanDependents") else given.get("propagationPolicy") or "",
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
            grace=given.get("gracePeriodSeconds"),
            dry_run=given.get("dryRun") == ["All"],
        )


def delete(cluster: Cluster, target: Target, options: DeleteOptions) -> tuple[Json, bool]:
    """Delete an object; returns its last state and whether it is gone already.

    Raises:
        StatusError: 404, or 409 when a precondition does not hold.
    """
    row = target.row
    obj = view(row, cluster.entry(row, target.namespace, target.name).obj)
    _check_preconditions(target, obj, options)
    if options.dry_run:
        return obj, False
    finalizers = _finalizers(obj, options.propagation)
    grace = _grace(row, obj, options.grace)
    if not finalizers and not grace and row.group_resource != NAMESPACES:
        return cluster.remove(row, target.key), True
    new = _terminating(cluster, row, obj, finalizers, grace)
    return (cluster.put(row, target.key, new, obj) if new != obj else obj), False


def _check_preconditions(target: Target, obj: Json, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise precondition(target.row, target.name, why)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise precondition(target.row, target.name, why)


def _finalizers(obj: Json, propagation: str) -> list[str]:
    """The finalizers that hold the object from now on: a policy adds its own and takes the other away."""
    found = list(obj["metadata"].get("finalizers") or [])
    if not propagation:
        return found
    wanted = _FINALIZERS.get(propagation)
    kept = [name for name in found if name not in _FINALIZERS.values() or name == wanted]
    return [*kept, wanted] if wanted and wanted not in kept else kept


def _grace(row: ResourceType, obj: Json, requested: int | None) -> int:
    """Seconds a pod that runs somewhere gets; its kubelet deletes it again with 0 when it has stopped."""
    if row.group_resource != PODS:
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    own: int = spec.get("terminationGracePeriodSeconds", 30)
    grace = own if requested is None else requested
    given = obj["metadata"].get("deletionGracePeriodSeconds")
    return grace if given is None else min(given, grace)


def _terminating(cluster: Cluster, row: ResourceType, obj: Json, finalizers: list[str], grace: int) -> Json:
    new = clone(obj)
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = cluster.now(grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if row.generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
    if finalizers:
        metadata["finalizers"] = finalizers
    if row.group_resource == NAMESPACES:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    return new
