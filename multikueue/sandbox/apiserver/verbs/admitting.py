"""May this object be stored: metadata rules for every kind, schema and CEL rules for custom ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.rules import check_labels
from multikueue.sandbox.apiserver.storage.resources import ResourceType
from multikueue.sandbox.apiserver.validation.cel_rules import check_rules
from multikueue.sandbox.apiserver.validation.schema_validation import validate
from multikueue.sandbox.apiserver.verbs.statuses import Cause, invalid

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


def admit(row: ResourceType, obj: Json, old: Json | None, broken: Sequence[Cause]) -> None:
    """Check an object, besides the rules of its own kind that it has broken.

    Raises:
        StatusError: 422 with everything that is wrong.
    """
    name = obj["metadata"].get("name") or ""
    causes = [*_check_name(row, name), *check_labels(obj["metadata"].get("labels") or {}, "metadata.labels"), *broken]
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
