"""Words and small checks that the rules of several builtin kinds share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from multikueue.core.model.names import Json
from multikueue.core.model.written_values import LABEL_KEY, LABEL_VALUE
from multikueue.sandbox.apiserver.status_errors import Cause

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NAME_PART: Final = "name part must consist of alphanumeric characters, '-', '_' or '.'"


def invalid_value(field: str, why: str, value: object = None) -> Cause:
    """A value that breaks a rule."""
    shown = f"{value}: " if value is not None else ""
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}{why}")


def required(field: str, why: str = "") -> Cause:
    """A value that is missing."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def forbidden_field(field: str, why: str) -> Cause:
    """A change that is not allowed."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def unsupported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """A value that is not one of some."""
    listed = ", ".join(f'"{item}"' for item in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return Cause("FieldValueNotSupported", field, message)


def duplicate(field: str, value: object) -> Cause:
    """A value that is there twice."""
    return Cause("FieldValueDuplicate", field, f'Duplicate value: "{value}"')


def not_negative(obj: Json, path: str, *fields: str) -> Iterator[Cause]:
    """Each of some numbers is zero or more."""
    for field in fields:
        if (obj.get(field) or 0) < 0:
            yield invalid_value(f"{path}.{field}", "must be greater than or equal to 0", obj[field])


def unchanged(old: Json, new: Json, path: str, *fields: str) -> Iterator[Cause]:
    """Each of some fields is as it was."""
    for field in fields:
        if old.get(field) != new.get(field):
            yield invalid_value(f"{path}.{field}".lstrip("."), "field is immutable")


def is_dns_label(name: str) -> bool:
    """Whether a name may be a host's."""
    return len(name) <= 63 and bool(_LABEL.fullmatch(name))


def is_qualified(name: str) -> bool:
    """Whether a name may be a label's key or a resource's name."""
    return bool(LABEL_KEY.fullmatch(name))


def is_label_value(text: str) -> bool:
    """Whether a label may have a value."""
    return not text or bool(LABEL_VALUE.fullmatch(text))


MAX_ANNOTATIONS: Final = 1 << 18
"""Bytes of the annotations of an object or a template, keys and values together."""
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def check_metadata(metadata: Json) -> Iterator[Cause]:
    """Labels, annotations, finalizers and owners are what a server takes."""
    yield from check_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from check_annotations(metadata.get("annotations") or {}, "metadata.annotations")
    for index, name in enumerate(metadata.get("finalizers") or []):
        if not is_qualified(name) or ("/" not in name and name not in _STANDARD_FINALIZERS):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", why, f'"{name}"')
    owners = metadata.get("ownerReferences") or []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield invalid_value(f"metadata.ownerReferences.{field}", "must not be empty", '""')
    if sum(owner.get("controller") is True for owner in owners) > 1:
        yield invalid_value("metadata.ownerReferences", "Only one reference can have Controller set to true")


def check_annotations(annotations: Json, field: str) -> Iterator[Cause]:
    """Keys are qualified names, and all together are not too long."""
    for key in annotations:
        if not is_qualified(key.lower()):
            yield invalid_value(field, NAME_PART, f'"{key}"')
    if sum(len(text.encode()) for pair in annotations.items() for text in pair) > MAX_ANNOTATIONS:
        yield Cause("FieldValueTooLong", field, f"Too long: may not be more than {MAX_ANNOTATIONS} bytes")


def check_labels(labels: Json, field: str) -> Iterator[Cause]:
    """Keys are qualified names, values are short words."""
    for key, value in labels.items():
        if not is_label_value(value):
            rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
            yield invalid_value(field, rule, f'"{value}"')
        if not is_qualified(key):
            yield invalid_value(field, NAME_PART, f'"{key}"')
