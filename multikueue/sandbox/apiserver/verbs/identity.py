"""Does this body belong to this URL: kind, version, namespace and name must agree."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.storage.resources import ResourceType
from multikueue.sandbox.apiserver.verbs.statuses import Cause, bad_request, invalid

_DROPPED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")


def check_identity(row: ResourceType, namespace: str | None, name: str | None, obj: Any) -> Json:
    """Check a body and complete its metadata from the URL, in place.

    Raises:
        StatusError: 400 or 422, it belongs elsewhere.
    """
    if not isinstance(obj, dict):
        raise bad_request("the object provided is unrecognized")
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    _check_kind(row, obj)
    _check_place(row, namespace, name, obj["metadata"])
    for key in _DROPPED_WHEN_EMPTY:
        if key in obj["metadata"] and not obj["metadata"][key]:
            del obj["metadata"][key]
    return obj


def _check_kind(row: ResourceType, obj: Json) -> None:
    if not obj.get("kind"):
        expected = f"(must be of type {row.kind})"
        raise bad_request(f"the object provided is unrecognized {expected}: Object 'Kind' is missing")
    if obj.get("apiVersion") != row.api_version:
        expected = f"does not match the expected API version ({row.api_version})"
        raise bad_request(f"the API version in the data ({obj.get('apiVersion')}) {expected}")
    if obj["kind"] == row.kind:
        return
    if row.custom:
        message = f'Invalid value: "{obj["kind"]}": must be {row.kind}'
        name = obj["metadata"].get("name") or ""
        raise invalid(row, name, [Cause("FieldValueInvalid", "kind", message)])
    raise bad_request(f'{obj["kind"]} in version "{row.version}" cannot be handled as a {row.kind}')


def _check_place(row: ResourceType, namespace: str | None, name: str | None, metadata: Json) -> None:
    if row.namespaced:
        if metadata.get("namespace") not in (None, "", namespace):
            message = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(message)
        metadata["namespace"] = namespace
    if name is not None and metadata.setdefault("name", name) != name:
        given = metadata["name"]
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
