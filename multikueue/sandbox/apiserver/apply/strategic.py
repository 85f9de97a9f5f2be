"""
Strategic merge patch: a merge patch that knows from the schema which lists merge, by which key, and has directives.

Only builtin kinds take it.
"""

from __future__ import annotations

import copy
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.builtin_schemas import resolved

_ORDER = "$setElementOrder/"
_DELETE_SCALARS = "$deleteFromPrimitiveList/"


def strategic_patch(schema: Json | None, target: Any, patch: Any) -> Any:
    """Merge a patch into an object, with its directives; neither argument is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        _patch_field(schema, merged, key, value)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            _reorder(schema, merged, key.removeprefix(_ORDER), order)
    retained = patch.get("$retainKeys")
    if retained:
        merged = {key: value for key, value in merged.items() if key in retained}
    return merged


def _field(schema: Json | None, key: str) -> Json:
    """The schema of a field, empty if it is not known."""
    known = schema or {}
    field: Json = (known.get("properties") or {}).get(key) or known.get("additionalProperties") or {}
    return resolved(field)


def _patch_field(schema: Json | None, merged: Json, key: str, value: Any) -> None:
    if key in ("$patch", "$retainKeys") or key.startswith(_ORDER):
        return
    field = _field(schema, key)
    if key.startswith(_DELETE_SCALARS):
        name = key.removeprefix(_DELETE_SCALARS)
        merged[name] = [item for item in merged.get(name) or [] if item not in value]
    elif value is None:
        merged.pop(key, None)
    elif isinstance(value, dict) and "$patch" in value and key not in merged:
        return  # where there is nothing to replace or delete the library drops all of it
    elif isinstance(value, dict):
        merged[key] = strategic_patch(field, merged.get(key), value)
    elif isinstance(value, list) and "merge" in field.get("x-kubernetes-patch-strategy", ""):
        merged[key] = _merge_list(field, merged.get(key) or [], value)
    else:
        merged[key] = value


def _reorder(schema: Json | None, merged: Json, name: str, order: list[Any]) -> None:
    key = _field(schema, name).get("x-kubernetes-patch-merge-key")
    current = merged.get(name)
    if isinstance(current, list):
        position = {_identity(item, key): index for index, item in enumerate(order)}
        merged[name] = sorted(current, key=lambda item: position.get(_identity(item, key), len(position)))


def _identity(item: Any, key: str | None) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _merge_list(field: Json, current: list[Any], patch: list[Any]) -> list[Any]:
    key = field.get("x-kubernetes-patch-merge-key")
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    by_identity = {_identity(item, key): item for item in current}
    items, given = resolved(field.get("items") or {}), []
    for item in patch:
        name = _identity(item, key)
        if isinstance(item, dict) and item.get("$patch") == "delete":
            by_identity.pop(name, None)
            continue
        by_identity[name] = strategic_patch(items, by_identity.get(name) or {}, item) if key else item
        given.append(name)
    return _in_order([_identity(item, key) for item in current], by_identity, list(dict.fromkeys(given)))


def _in_order(before: list[Any], items: dict[Any, Any], given: list[Any]) -> list[Any]:
    """The patch's items in its order; the others go in front of the first one they were in front of."""
    others = [name for name in before if name in items and name not in given]
    merged: list[Any] = []
    while given and others:
        first = given[0] in before and before.index(others[0]) < before.index(given[0])
        merged.append(items[(others if first else given).pop(0)])
    return merged + [items[name] for name in given + others]
