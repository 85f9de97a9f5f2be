"""The verb create."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.managedfields import Write
from multikueue.sandbox.apiserver.apply.ownership import track_update
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, StatusError, already_exists, forbidden, not_found
from multikueue.sandbox.apiserver.storage.cluster import Cluster, WriteOptions
from multikueue.sandbox.apiserver.validation.decoding import decode_object, empty_object
from multikueue.sandbox.apiserver.validation.every_kind import admit, check_identity
from multikueue.sandbox.apiserver.validation.hooks import hooks_of

SYSTEM_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def create(
    cluster: Cluster,
    row: ResourceType,
    namespace: str | None,
    body: Any,
    options: WriteOptions,
    managed: list[Json] | None = None,
) -> Json:
    """Create an object from a body, which is taken over; `managed` is set when an apply creates it.

    Raises:
        StatusError: as kube-apiserver refuses.
    """
    obj = check_identity(row, namespace, None, body)
    obj = decode_object(row, obj, strict=options.strict, applied=managed is not None, unknown=options.unknown)
    metadata = obj["metadata"]
    if metadata.get("resourceVersion") not in (None, "", "0"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + cluster.new_suffix()
    if row.namespaced:
        _check_namespace(cluster, row, namespace or "", metadata.get("name"))
    hooks = hooks_of(row.group_resource)
    hooks.fill(obj)
    _record_manager(cluster, row, obj, options, managed)
    _stamp(cluster, row, obj)
    hooks.prepare(obj)
    admit(row, obj, None, hooks.create(obj))
    stored = clone(obj) if hooks.fills else None
    hooks.fill(obj)  # as every read from the store does
    key = (namespace or "", metadata["name"])
    if cluster.store.get(row.group_resource, key):
        raise already_exists(row, metadata["name"])
    if options.dry_run:
        return obj
    if stored is not None and stored != obj:
        cluster.filled_on_read.add(metadata["uid"])
    return cluster.put(row, key, obj, None)


def _check_namespace(cluster: Cluster, row: ResourceType, namespace: str, name: str | None) -> None:
    there = cluster.namespace(namespace)
    if there is None:
        raise not_found(cluster.namespace_type, namespace)
    if there["metadata"].get("deletionTimestamp"):
        cause = Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(row, name, why, [cause])


def _stamp(cluster: Cluster, row: ResourceType, obj: Json) -> None:
    metadata = obj["metadata"]
    for key in (*SYSTEM_METADATA, "resourceVersion"):
        metadata.pop(key, None)
    metadata["uid"] = cluster.new_uid()
    metadata["creationTimestamp"] = cluster.now()
    if row.generation:
        metadata["generation"] = 1
    if "status" in row.subresources and not row.starts_with_status:
        obj.pop("status", None)
        if row.schema:
            obj["status"] = {}


def _record_manager(
    cluster: Cluster, row: ResourceType, obj: Json, options: WriteOptions, managed: list[Json] | None
) -> None:
    obj["metadata"].pop("managedFields", None)
    if managed is not None:
        if managed:
            obj["metadata"]["managedFields"] = managed
    elif options.manager is not None:
        write = Write(options.manager, row.api_version, "", cluster.now(), row.reset(""))
        track_update(row.shape, empty_object(row), obj, write, created=True)
