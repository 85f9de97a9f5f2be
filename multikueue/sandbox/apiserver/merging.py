"""The three patch formats that do not track ownership: merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
from jsonpointer import JsonPointerException

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.statuses import StatusError, bad_request

MERGE_KEYS: dict[str, str | None] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "conditions": "type",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "finalizers": None,
    "schedulingGates": "name",
    "podIPs": "ip",
    "hostIPs": "ip",
    "taints": "key",
}
"""Lists of builtin kinds that merge by a key (the patchMergeKey tags of k8s.io/api); None: a set of scalars."""

_ORDER = "$setElementOrder/"
_DELETE_SCALARS = "$deleteFromPrimitiveList/"


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(obj: Json, operations: Any) -> Any:
    """RFC 6902.

    Raises:
        StatusError: 422 when an operation fails, 400 when it is no patch.
    """
    if not isinstance(operations, list):
        raise bad_request("json patch must be an array")
    failures = (jsonpatch.JsonPatchTestFailed, jsonpatch.JsonPatchConflict, JsonPointerException)
    try:
        return jsonpatch.apply_patch(obj, operations)
    except failures as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        raise StatusError(422, "Invalid", message) from error
    except (jsonpatch.JsonPatchException, TypeError, KeyError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error


def strategic_patch(target: Any, patch: Any) -> Any:
    """Strategic merge patch for builtin kinds, with its directives; neither argument is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        _patch_field(merged, key, value)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            _reorder(merged, key.removeprefix(_ORDER), order)
    retained = patch.get("$retainKeys")
    if retained:
        merged = {key: value for key, value in merged.items() if key in retained}
    return merged


def _patch_field(merged: Json, key: str, value: Any) -> None:
    if key in ("$patch", "$retainKeys") or key.startswith(_ORDER):
        return
    if key.startswith(_DELETE_SCALARS):
        field = key.removeprefix(_DELETE_SCALARS)
        merged[field] = [item for item in merged.get(field) or [] if item not in value]
    elif value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = strategic_patch(merged.get(key), value)
    elif isinstance(value, list) and key in MERGE_KEYS:
        merged[key] = _merge_list(merged.get(key) or [], value, MERGE_KEYS[key])
    else:
        merged[key] = value


def _reorder(merged: Json, field: str, order: list[Any]) -> None:
    current, key = merged.get(field), MERGE_KEYS.get(field)
    if not isinstance(current, list):
        return
    position = {_identity(item, key): index for index, item in enumerate(order)}
    merged[field] = sorted(current, key=lambda item: position.get(_identity(item, key), len(position)))


def _identity(item: Any, key: str | None) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _merge_list(current: list[Any], patch: list[Any], key: str | None) -> list[Any]:
    if key is None:
        return current + [item for item in patch if item not in current]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged = list(current)
    for item in patch:
        index = next((i for i, other in enumerate(merged) if other.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if index is not None:
                merged.pop(index)
        elif index is None:
            merged.append(strategic_patch({}, item))
        else:
            merged[index] = strategic_patch(merged[index], item)
    return merged
