"""Structural schemas: drop undeclared fields, and nulls that mean "not set"; then fill in defaults."""

from __future__ import annotations

import copy
from typing import Any

from multikueue.core.model.names import Json

_EMBEDDED = ("apiVersion", "kind", "metadata")


def prune(schema: Json, value: Any, unknown: list[str], path: str = "") -> None:
    """Remove undeclared fields in place and collect their paths in `unknown`."""
    if isinstance(value, dict):
        for key in list(value):
            _prune_field(schema, value, key, unknown, path)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            prune(schema["items"], item, unknown, f"{path}[{index}]")


def _prune_field(schema: Json, value: Json, key: str, unknown: list[str], path: str) -> None:
    child = field_schema(schema, key)
    if child is not None:
        prune(child, value[key], unknown, f"{path}.{key}")
    elif not _keeps(schema, key):
        del value[key]
        unknown.append(f"{path}.{key}".lstrip("."))


def _keeps(schema: Json, key: str) -> bool:
    if schema.get("additionalProperties") is True or schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    return bool(schema.get("x-kubernetes-embedded-resource")) and key in _EMBEDDED


def field_schema(schema: Json, key: str) -> Json | None:
    """The schema of one field of an object: its property, else the schema of additional properties."""
    declared: Json | None = (schema.get("properties") or {}).get(key)
    if declared is not None:
        return declared
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) else None


def drop_nulls(schema: Json, value: Any) -> None:
    """Remove nulls in place where a field may not be null and has no default that takes its place."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            child = field_schema(schema, key)
            if child is None:
                continue
            if _is_unset(child, item) and "default" not in child:
                del value[key]
            else:
                drop_nulls(child, item)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            drop_nulls(schema["items"], item)


def fill_defaults(schema: Json, value: Any) -> None:
    """Set defaults in place, in the order parents before children."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, child in properties.items():
            if "default" in child and (key not in value or _is_unset(child, value[key])):
                value[key] = copy.deepcopy(child["default"])
        for key, item in value.items():
            child = field_schema(schema, key)
            if child is not None:
                if key not in properties and _is_unset(child, item):
                    value[key] = copy.deepcopy(child.get("default"))
                fill_defaults(child, value[key])
    elif isinstance(value, list) and "items" in schema:
        items = schema["items"]
        for index, item in enumerate(value):
            if _is_unset(items, item):
                value[index] = copy.deepcopy(items.get("default"))
            fill_defaults(items, value[index])


def _is_unset(schema: Json, value: Any) -> bool:
    return value is None and not schema.get("nullable")
