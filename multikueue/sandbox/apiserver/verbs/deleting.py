"""The verb delete: at once, or a deletionTimestamp while finalizers or a grace period hold the object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import NAMESPACES, PODS, ResourceType
from multikueue.sandbox.apiserver.status_errors import bad_request, invalid_options, precondition
from multikueue.sandbox.apiserver.storage.cluster import Cluster
from multikueue.sandbox.apiserver.validation.rules import unsupported
from multikueue.sandbox.apiserver.verbs.updating import Target

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = ("Foreground", "Background", "Orphan")
_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}
_TYPES: Final = {
    "preconditions": dict,
    "gracePeriodSeconds": int,
    "propagationPolicy": str,
    "orphanDependents": bool,
    "dryRun": list,
}


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

    def check(self) -> None:
        """Refuse what no server does.

        Raises:
            StatusError: 422, there is no such policy.
        """
        if self.propagation not in ("", *_POLICIES):
            cause = unsupported("propagationPolicy", self.propagation, [*_POLICIES, "nil"])
            raise invalid_options("DeleteOptions", cause)

    @classmethod
    def from_body(cls, body: Any) -> DeleteOptions:
        """Read a DeleteOptions object.

        Raises:
            StatusError: 400, it is none; 422, there is no such dry run.
        """
        given = {field: value for field, value in body.items() if value is not None} if isinstance(body, dict) else None
        if given is None or any(type(given.get(field, kind())) is not kind for field, kind in _TYPES.items()):
            raise bad_request("the object provided is unrecognized: no DeleteOptions")
        preconditions = given.get("preconditions") or {}
        return cls(
            propagation="Orphan" if given.get("orphanDependents") else given.get("propagationPolicy") or "",
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
            grace=given.get("gracePeriodSeconds"),
            dry_run=is_dry_run("DeleteOptions", given.get("dryRun", [])),
        )


def is_dry_run(kind: str, values: Sequence[Any]) -> bool:
    """Whether a request is only tried; `dryRun=true` says nothing.

    Raises:
        StatusError: 422, there is no such dry run.
    """
    if any(value != "All" for value in values):
        raise invalid_options(kind, unsupported("dryRun", values, ("All",)))
    return bool(values)


def delete(cluster: Cluster, target: Target, options: DeleteOptions) -> tuple[Json, bool]:
    """Delete an object; returns its last state and whether it is gone already.

    Raises:
        StatusError: 404, 422 for an unknown policy, or 409 when a precondition does not hold.
    """
    options.check()
    row = target.row
    obj = row.viewed(cluster.entry(row, target.namespace, target.name).obj)
    _check_preconditions(target, obj, options)
    new = clone(obj)
    grace = _grace(obj, options.grace) if row.group_resource == PODS else None
    if grace is not None and not _shortens(obj, grace, given=options.grace is not None):
        return obj, False
    finalizers = _finalizers(row, obj, options.propagation)
    if row.group_resource == NAMESPACES:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif not finalizers and not (grace is not None and _starts(obj)):
        return (obj if options.dry_run else cluster.remove(row, target.key)), True
    _mark(cluster, row, new, finalizers, grace or 0)
    if not options.dry_run and new != obj:
        new = cluster.put(row, target.key, new, obj)
    if finalizers or grace or row.group_resource == NAMESPACES:
        return new, False
    if not options.dry_run:
        cluster.remove(row, target.key)
    return new, True


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


def _finalizers(row: ResourceType, obj: Json, propagation: str) -> list[str]:
    """The finalizers that hold the object from now on: a policy adds its own and takes the other away."""
    finalizers = list(obj["metadata"].get("finalizers") or [])
    if not propagation:
        if row.orphans and not set(finalizers) & set(_FINALIZERS.values()):
            return [*finalizers, ORPHAN]
        return finalizers
    wanted = _FINALIZERS.get(propagation)
    kept = [name for name in finalizers if name not in _FINALIZERS.values() or name == wanted]
    return [*kept, wanted] if wanted and wanted not in kept else kept


def _grace(obj: Json, requested: int | None) -> int:
    """Seconds a pod gets that has a node; its kubelet deletes it again with 0 when it has stopped."""
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    own: int = spec.get("terminationGracePeriodSeconds", 30)
    grace = own if requested is None else requested
    return 1 if grace < 0 else grace


def _starts(pod: Json) -> bool:
    """Whether this is the first delete of a pod, or one that ends the grace period it was given."""
    metadata = pod["metadata"]
    return not metadata.get("deletionTimestamp") or metadata.get("deletionGracePeriodSeconds", 0) > 0


def _shortens(pod: Json, grace: int, *, given: bool) -> bool:
    """Whether a delete of a pod does anything: a grace period that runs can only be made shorter."""
    metadata = pod["metadata"]
    running = metadata.get("deletionGracePeriodSeconds", 0) if metadata.get("deletionTimestamp") else 0
    return not running or (given and grace < running)


def _mark(cluster: Cluster, row: ResourceType, new: Json, finalizers: list[str], grace: int) -> None:
    metadata = new["metadata"]
    starts = not metadata.get("deletionTimestamp")
    if starts or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = cluster.now(grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if starts and row.generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
