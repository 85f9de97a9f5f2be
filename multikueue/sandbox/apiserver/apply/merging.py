"""The two patch formats that know no schema: merge patch and JSON patch."""

from __future__ import annotations

from typing import Any

import jsonpatch
from jsonpointer import JsonPointerException

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.verbs.statuses import StatusError, bad_request


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
    failures = (jsonpatch.JsonPatchException, JsonPointerException)
    try:
        return jsonpatch.apply_patch(obj, operations)
    except failures as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        raise StatusError(422, "Invalid", message) from error
    except (TypeError, KeyError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
