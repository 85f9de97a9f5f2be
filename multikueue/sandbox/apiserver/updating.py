"""The verb update, of an object or of its status; patches end here too."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.admitting import admit
from multikueue.sandbox.apiserver.cluster import Cluster, WriteOptions, view
from multikueue.sandbox.apiserver.creating import SYSTEM_METADATA
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.hooks import hooks_of
from multikueue.sandbox.apiserver.identity import check_identity
from multikueue.sandbox.apiserver.managedfields import Write, track_update
from multikueue.sandbox.apiserver.resources import NAMESPACES, ResourceType
from multikueue.sandbox.apiserver.statuses import Cause, conflict, invalid
from multikueue.sandbox.apiserver.store import Key


@attrs.frozen
class Target:
    """What is written to."""

    row: ResourceType
    namespace: str | None
    name: str
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The key in the store."""
        return (self.namespace or "", self.name)


def update(
    cluster: Cluster,
    target: Target,
    body: Any,
    options: WriteOptions,
    *,
    is_patch: bool = False,
    applied: bool = False,
) -> Json:
    """Replace an object; the body is taken over.

    Args:
        cluster: the state.
        target: the object, or a subresource of it.
        body: the whole new object.
        options: how to write.
        is_patch: the body was made from the current object, so no resourceVersion is needed.
        applied: the body's managedFields are the result of an apply and are kept.

    Raises:
        StatusError: as kube-apiserver refuses.
    """
    row = target.row
    old = view(row, cluster.entry(row, target.namespace, target.name).obj)
    new = check_identity(row, target.namespace, target.name, body)
    _check_preconditions(target, old, new, needs_revision=not is_patch)
    managed = new["metadata"].pop("managedFields", None) if applied else None
    new = _combine(target, old, new)
    _check_finalizers(target, old, new)
    causes = hooks_of(row.group_resource).update(old, new) if not target.subresource else []
    if causes:
        raise invalid(row, target.name, causes)
    admit(row, new, old, strict=options.strict)
    _count_generation(target, old, new)
    if applied:
        new["metadata"]["managedFields"] = managed
    elif options.manager is not None:
        write = Write(options.manager, row.api_version, target.subresource, cluster.now())
        track_update(row.managed_schema, old, new, write)
    else:
        new["metadata"]["managedFields"] = old["metadata"].get("managedFields")
    if not new["metadata"].get("managedFields"):
        new["metadata"].pop("managedFields", None)
    return _commit(cluster, target, old, new, dry_run=options.dry_run)


def _check_preconditions(target: Target, old: Json, new: Json, *, needs_revision: bool) -> None:
    metadata, current = new["metadata"], old["metadata"]
    if metadata.get("uid") and metadata["uid"] != current["uid"]:
        given, kept = metadata["uid"], current["uid"]
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {kept}"
        raise conflict(target.row, target.name, why)
    revision = metadata.get("resourceVersion")
    if revision not in (None, "", "0"):
        if revision != current["resourceVersion"]:
            raise conflict(target.row, target.name)
    elif needs_revision and not target.row.unconditional:
        message = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", "metadata.resourceVersion", message)
        raise invalid(target.row, target.name, [cause], by_resource=True)


def _combine(target: Target, old: Json, new: Json) -> Json:
    """The new object with everything this write may not change taken from the old one."""
    metadata, current = new["metadata"], old["metadata"]
    if target.subresource == "status":
        combined = clone(old)
        combined.pop("status", None)
        if new.get("status") is not None:
            combined["status"] = new["status"]
    else:
        combined = new
        for key in SYSTEM_METADATA:
            metadata.pop(key, None)
            if key in current:
                metadata[key] = current[key]
        if "status" in target.row.subresources:
            combined.pop("status", None)
            if "status" in old:
                combined["status"] = clone({"status": old["status"]})["status"]
    combined["metadata"]["resourceVersion"] = current["resourceVersion"]
    combined["metadata"].pop("managedFields", None)
    return combined


def _check_finalizers(target: Target, old: Json, new: Json) -> None:
    if not old["metadata"].get("deletionTimestamp"):
        return
    kept = old["metadata"].get("finalizers") or []
    added = [name for name in new["metadata"].get("finalizers") or [] if name not in kept]
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        why = "no new finalizers can be added if the object is being deleted"
        message = f"Forbidden: {why}, found new finalizers []string{{{listed}}}"
        cause = Cause("FieldValueForbidden", "metadata.finalizers", message)
        raise invalid(target.row, target.name, [cause])


def _count_generation(target: Target, old: Json, new: Json) -> None:
    if not target.row.generation or target.subresource:
        return
    if _counted(target.row, old) != _counted(target.row, new):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _counted(row: ResourceType, obj: Json) -> Json:
    """The part of an object whose changes count as a new generation."""
    uncounted = {"metadata", "apiVersion", "kind"}
    if "status" in row.subresources:
        uncounted.add("status")
    return {key: value for key, value in obj.items() if key not in uncounted}


def _commit(cluster: Cluster, target: Target, old: Json, new: Json, *, dry_run: bool) -> Json:
    if new == old:
        return old
    if dry_run:
        return new
    if _is_finished(target.row, old, new):
        # The DELETED event carries the stored object, finalizers and all; the answer is the new one.
        answer = clone(new)
        cluster.remove(target.row, target.key)
        return answer
    return cluster.put(target.row, target.key, new, old)


def _is_finished(row: ResourceType, old: Json, new: Json) -> bool:
    """Whether this write takes away the last thing that kept a deleted object."""
    current = old["metadata"]
    if not current.get("deletionTimestamp") or new["metadata"].get("finalizers"):
        return False
    if row.group_resource == NAMESPACES:
        return not (new.get("spec") or {}).get("finalizers")
    return not current.get("deletionGracePeriodSeconds")
