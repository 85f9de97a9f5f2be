"""The verb update, of an object, its status or its scale. Patches end here too."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.managedfields import Write
from multikueue.sandbox.apiserver.apply.ownership import track_update
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import NAMESPACES, PODS, ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, bad_request, conflict, invalid
from multikueue.sandbox.apiserver.storage.cluster import Cluster, WriteOptions
from multikueue.sandbox.apiserver.storage.selectors import field_value
from multikueue.sandbox.apiserver.storage.store import Key
from multikueue.sandbox.apiserver.validation.decoding import decode_object
from multikueue.sandbox.apiserver.validation.every_kind import admit, check_identity
from multikueue.sandbox.apiserver.validation.hooks import hooks_of
from multikueue.sandbox.apiserver.validation.rules import invalid_value
from multikueue.sandbox.apiserver.verbs.creating import SYSTEM_METADATA

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


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
        is_patch: the body was made from the current object: its uid is no precondition.
        applied: it was made by an apply: its managedFields are kept, and it needs no resourceVersion.

    Raises:
        StatusError: as kube-apiserver refuses.
    """
    row = target.row
    new = check_identity(row, target.namespace, target.name, body)
    new = decode_object(row, new, strict=options.strict, patched=is_patch, applied=applied, unknown=options.unknown)
    old = row.viewed(cluster.entry(row, target.namespace, target.name).obj)
    _check_preconditions(target, old, new, is_patch=is_patch, applied=applied)
    hooks = hooks_of(row.group_resource)
    hooks.fill(new)
    managed = _managed(cluster, target, old, new, options, applied=applied)
    new = _combine(target, old, new)
    if not target.subresource:
        hooks.adjust(old, new)
    hooks.fill(new)
    broken = (hooks.status if target.subresource == "status" else hooks.update)(old, new)
    admit(row, new, old, [*_added_finalizers(old, new), *broken])
    _count_generation(target, old, new)
    if managed:
        new["metadata"]["managedFields"] = managed
    return _commit(cluster, target, old, new, dry_run=options.dry_run)


def _managed(
    cluster: Cluster, target: Target, old: Json, new: Json, options: WriteOptions, *, applied: bool
) -> list[Json]:
    """The managedFields after this write; the new object loses its own."""
    given = new["metadata"].pop("managedFields", None)
    kept = old["metadata"].get("managedFields") or []
    if applied:
        return given or []
    if options.manager is None or not kept:
        return kept
    row = target.row
    reset = row.reset(target.subresource)
    write = Write(options.manager, row.api_version, target.subresource, cluster.now(), reset)
    probe = {**new, "metadata": dict(new["metadata"])}
    track_update(row.shape, old, probe, write)
    return probe["metadata"].get("managedFields") or []


def _check_preconditions(target: Target, old: Json, new: Json, *, is_patch: bool, applied: bool) -> None:
    """A UID is a precondition of an update only. In a patch it is a field, of a custom kind's status one that is
    taken from the old object like all but the status."""
    metadata, current = new["metadata"], old["metadata"]
    given, kept = metadata.get("uid") or current["uid"], current["uid"]
    if given != kept and not is_patch:
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {kept}"
        raise conflict(target.row, target.name, why)
    revision = metadata.get("resourceVersion")
    if revision not in (None, "", "0"):
        if revision != current["resourceVersion"]:
            raise conflict(target.row, target.name)
    elif not applied and not target.row.unconditional:
        message = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", "metadata.resourceVersion", message)
        raise invalid(target.row, target.name, [cause], by_resource=True)
    fixed = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
    changed = [field for field in fixed if (metadata.get(field) or current.get(field)) != current.get(field)]
    if changed and not (target.row.custom and target.subresource == "status"):
        causes = [invalid_value(f"metadata.{field}", "field is immutable", f'"{metadata[field]}"') for field in changed]
        raise invalid(target.row, target.name, causes)


def _combine(target: Target, old: Json, new: Json) -> Json:
    """The new object with everything this write may not change taken from the old one."""
    current = old["metadata"]
    if target.subresource != "status":
        combined = new
        if "status" in target.row.subresources:
            _take(combined, old, "status")
    elif target.row.custom:
        combined = clone(old)
        _take(combined, new, "status")
    else:
        combined = new
        for key in {*old, *new} - {"metadata", "status"}:
            _take(combined, old, key)
    for key in (*SYSTEM_METADATA, "resourceVersion"):
        combined["metadata"].pop(key, None)
        if key in current:
            combined["metadata"][key] = current[key]
    combined["metadata"].pop("managedFields", None)
    if target.row.group_resource == PODS and target.subresource == "status":
        _take(combined["metadata"], current, "ownerReferences")
        combined["status"] = {**_pod_class(old), **combined["status"]}
    return combined


def _take(obj: Json, other: Json, key: str) -> None:
    obj.pop(key, None)
    if key in other:
        obj[key] = clone({key: other[key]})[key]


def _pod_class(pod: Json) -> Json:
    """The part of a pod's status that a write which leaves it out keeps."""
    return {key: value for key, value in pod["status"].items() if key in ("qosClass", "observedGeneration")}


def _added_finalizers(old: Json, new: Json) -> list[Cause]:
    if not old["metadata"].get("deletionTimestamp"):
        return []
    kept = old["metadata"].get("finalizers") or []
    added = [name for name in new["metadata"].get("finalizers") or [] if name not in kept]
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    why = "no new finalizers can be added if the object is being deleted"
    message = f"Forbidden: {why}, found new finalizers []string{{{listed}}}"
    return [Cause("FieldValueForbidden", "metadata.finalizers", message)]


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
    if new == old and old["metadata"]["uid"] not in cluster.filled_on_read:
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


def _path(row: ResourceType, which: str) -> str:
    declared = (row.custom.scale if row.custom else None) or {}
    path: str = declared.get(f"{which}ReplicasPath") or f".{which}.replicas"
    return path.lstrip(".")


def scale_of(row: ResourceType, obj: Json) -> Json:
    """The Scale of an object."""
    metadata = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _KEPT if key in metadata},
        "spec": {"replicas": field_value(obj, _path(row, "spec")) or 0},
        "status": {"replicas": field_value(obj, _path(row, "status")) or 0},
    }


def scaled(row: ResourceType, obj: Json, scale: Any) -> Json:
    """A copy of an object with the replicas of a Scale.

    Raises:
        StatusError: 400, it is no Scale.
    """
    replicas = field_value(scale, "spec.replicas")
    if not isinstance(replicas, int):
        raise bad_request("the scale has no spec.replicas")
    changed = node = clone(obj)
    *parents, last = _path(row, "spec").split(".")
    for parent in parents:
        node = node.setdefault(parent, {})
    node[last] = replicas
    return changed
