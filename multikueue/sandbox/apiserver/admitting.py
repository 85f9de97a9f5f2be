"""May this object be stored: metadata rules for every kind, schema and CEL rules for custom ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.cel_rules import check_rules
from multikueue.sandbox.apiserver.resources import CustomKind, ResourceType
from multikueue.sandbox.apiserver.schema_defaulting import fill_defaults
from multikueue.sandbox.apiserver.schema_pruning import prune
from multikueue.sandbox.apiserver.schema_validation import validate
from multikueue.sandbox.apiserver.statuses import Cause, bad_request, invalid

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RBAC_NAME = re.compile(r"[^/%]+")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_OWN = ("apiVersion", "kind", "metadata")
_UNCHECKED = Cause(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def admit(row: ResourceType, obj: Json, old: Json | None, *, strict: bool) -> None:
    """Prune and default a custom object in place, then check it.

    Raises:
        StatusError: 422 with everything that is wrong, or 400 for unknown fields in strict mode.
    """
    name = obj["metadata"].get("name") or ""
    causes = [*_check_name(row, name), *_check_labels(obj["metadata"].get("labels") or {})]
    if row.custom:
        _shape(row.custom, obj, strict=strict)
        causes += validate(row.custom.body_schema, obj)
        if row.custom.has_rules and any(cause.reason != "FieldValueInvalid" for cause in causes):
            causes.append(_UNCHECKED)
    if row.custom and not causes:
        causes += check_rules(row.custom.body_schema, obj, old)
    if causes:
        raise invalid(row, name, causes)


def _shape(custom: CustomKind, obj: Json, *, strict: bool) -> None:
    body = {key: value for key, value in obj.items() if key not in _OWN}
    unknown: list[str] = []
    prune(custom.schema, body, unknown)
    fill_defaults(custom.schema, body)
    if strict and unknown:
        listed = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise bad_request(f"strict decoding error: {listed}")
    for key in list(obj):
        if key not in _OWN and key not in body:
            del obj[key]
    obj.update(body)


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


def _check_labels(labels: Json) -> Iterator[Cause]:
    for key, value in labels.items():
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value) or len(value) > 63:
            rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
            yield Cause("FieldValueInvalid", "metadata.labels", f'Invalid value: "{value}": {rule}')
        if not _LABEL_KEY.fullmatch(key):
            rule = "name part must consist of alphanumeric characters, '-', '_' or '.'"
            yield Cause("FieldValueInvalid", "metadata.labels", f'Invalid value: "{key}": {rule}')
