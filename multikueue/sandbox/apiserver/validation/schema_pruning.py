"""Structural schemas, part one: drop what the schema does not declare."""

from __future__ import annotations

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
