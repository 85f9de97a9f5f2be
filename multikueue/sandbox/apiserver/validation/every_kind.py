"""Checks for every kind: the body belongs to its URL, its metadata is valid, and a custom object fits its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, bad_request, invalid
from multikueue.sandbox.apiserver.validation.cel_rules import check_rules
from multikueue.sandbox.apiserver.validation.rules import check_metadata
from multikueue.sandbox.apiserver.validation.schema_validation import validate

_DROPPED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RBAC_NAME = re.compile(r"[^/%]+")
_BLOCKING = frozenset(
    f"FieldValue{reason}" for reason in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
"""What keeps CEL rules from being evaluated at all."""
_UNCHECKED = Cause(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def check_identity(
    row: ResourceType, namespace: str | None, name: str | None, obj: Any, *, applied: bool = False
) -> Json:
    """Check a body and complete its metadata, and what kind a built-in one is, from the URL, in place.

    Raises:
        StatusError: 400 or 422, it belongs elsewhere.
    """
    if not isinstance(obj, dict):
        raise bad_request("the object provided is unrecognized")
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if not isinstance(obj["metadata"], dict):
        raise bad_request("the object provided is unrecognized: metadata is not an object")
    _check_kind(row, obj, applied=applied)
    _check_place(row, namespace, name, obj["metadata"], applied=applied)
    for key in _DROPPED_WHEN_EMPTY:
        if key in obj["metadata"] and not obj["metadata"][key]:
            del obj["metadata"][key]
    return obj


def _check_kind(row: ResourceType, obj: Json, *, applied: bool) -> None:
    if not row.custom and not applied:  # typed clients leave out what the path says
        obj.update({name: obj.get(name) or own for name, own in (("apiVersion", row.api_version), ("kind", row.kind))})
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


def _check_place(row: ResourceType, namespace: str | None, name: str | None, metadata: Json, *, applied: bool) -> None:
    if row.namespaced:
        if metadata.get("namespace") not in (None, "", namespace):
            message = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(message)
        metadata["namespace"] = namespace
    if name is not None and not metadata.get("name") and not applied:
        why = "name must be provided"
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: {why}")
    if name is not None and metadata.setdefault("name", name) != name:
        given = metadata["name"]
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def admit(row: ResourceType, obj: Json, old: Json | None, broken: Sequence[Cause]) -> None:
    """Check an object, besides the rules of its own kind that it has broken.

    Raises:
        StatusError: 422 with everything that is wrong.
    """
    name = obj["metadata"].get("name") or ""
    causes = [*_check_name(row, name), *check_metadata(obj["metadata"]), *broken]
    if row.custom:
        causes += validate(row.custom.body_schema, obj, old)
        if any(cause.reason in _BLOCKING for cause in causes):
            causes += [_UNCHECKED] * row.custom.has_rules
        else:
            causes += check_rules(row.custom.body_schema, obj, old)
    if causes:
        raise invalid(row, name, causes)


def _check_name(row: ResourceType, name: str) -> Iterator[Cause]:
    if not name:
        message = "Required value: name or generateName is required"
        yield Cause("FieldValueRequired", "metadata.name", message)
        return
    free = row.group == "rbac.authorization.k8s.io"  # RBAC names may hold colons and capitals
    pattern = _RBAC_NAME if free else _SUBDOMAIN
    if not pattern.fullmatch(name) or len(name) > 253:
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        yield Cause("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": {rule}')
