"""Structural schemas, part two: fill in defaults, and drop nulls where null means "not set"."""

from __future__ import annotations

import copy
from typing import Any

from multikueue.core.names import Json


def fill_defaults(schema: Json, value: Any) -> None:
    """Set defaults in place, in the order parents before children."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, child in properties.items():
            _fill_field(child, value, key)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for key in value.keys() - properties.keys():
                fill_defaults(additional, value[key])
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            fill_defaults(schema["items"], item)


def _fill_field(schema: Json, value: Json, key: str) -> None:
    if key in value and value[key] is None and not schema.get("nullable"):
        del value[key]
    if key not in value and "default" in schema:
        value[key] = copy.deepcopy(schema["default"])
    if isinstance(value.get(key), dict | list):
        fill_defaults(schema, value[key])
