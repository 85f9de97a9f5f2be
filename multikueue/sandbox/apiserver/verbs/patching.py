"""The verb patch: four formats, one of which (apply) also creates."""

from __future__ import annotations

import re
from typing import Any, Final

import jsonpatch
from jsonpointer import JsonPointer, JsonPointerException

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.managedfields import Write
from multikueue.sandbox.apiserver.apply.ownership import apply_config
from multikueue.sandbox.apiserver.apply.strategic import strategic_patch
from multikueue.sandbox.apiserver.apply.typed_values import misfits
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request, conflict, invalid_options, not_found
from multikueue.sandbox.apiserver.storage.cluster import Cluster, WriteOptions
from multikueue.sandbox.apiserver.validation.decoding import empty_object
from multikueue.sandbox.apiserver.validation.every_kind import check_identity
from multikueue.sandbox.apiserver.validation.rules import required
from multikueue.sandbox.apiserver.verbs.creating import create
from multikueue.sandbox.apiserver.verbs.updating import Target, update

_ADDING: Final = ("add", "copy", "move")
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def accepted_formats(row: ResourceType) -> list[str]:
    """The patch formats a kind takes: strategic merge needs a builtin kind."""
    strategic = [] if row.custom else [STRATEGIC_PATCH]
    return [JSON_PATCH, MERGE_PATCH, *strategic, APPLY_PATCH]


def patch(cluster: Cluster, target: Target, format_: str, body: Any, options: WriteOptions) -> Json:
    """Change an object by a patch in one of the three formats without ownership.

    Raises:
        StatusError: as kube-apiserver refuses.
    """
    old = clone(target.row.viewed(cluster.entry(target.row, target.namespace, target.name).obj))
    if format_ == JSON_PATCH:
        new = json_patch(old, body)
    elif not isinstance(body, dict):
        raise bad_request("error decoding patch: must be an object")
    elif format_ == MERGE_PATCH:
        new = merge_patch(old, body)
    else:
        new = strategic_patch(target.row.schema, old, _whole_numbers(body))
    return update(cluster, target, clone(new), options, is_patch=True)


def apply(cluster: Cluster, target: Target, body: Any, options: WriteOptions) -> tuple[Json, bool]:
    """Server-side apply; returns the object and whether it was created.

    Raises:
        StatusError: as kube-apiserver refuses; 409 with the conflicting managers.
    """
    row = target.row
    config = _checked_config(target, body, options)
    entry = cluster.store.get(row.group_resource, target.key)
    live = row.viewed(entry.obj) if entry else None
    if live is None and target.subresource:
        raise not_found(row, target.name)
    metadata = config["metadata"]
    current = ("", "0", live["metadata"]["resourceVersion"]) if live else ()
    if metadata.get("uid") if live is None else (metadata.get("resourceVersion") or "") not in current:
        raise conflict(row, target.name)
    _check_fits(target, config)
    reset = row.reset(target.subresource)
    write = Write(options.manager or "", row.api_version, target.subresource, cluster.now(), reset)
    empty = empty_object(row)
    new = clone(apply_config(row.shape, empty, live or empty, config, write, force=options.force))
    if live is None:
        managed = new["metadata"].pop("managedFields", None)
        new["metadata"].pop("resourceVersion", None)
        return create(cluster, row, target.namespace, new, options, managed=managed or []), True
    return update(cluster, target, new, options, is_patch=True, applied=True), False


def _check_fits(target: Target, config: Json) -> None:
    failures = misfits(target.row.shape, config)
    if failures:
        where = f"({target.namespace or ''}/{target.name}; {target.row.api_version}, Kind={target.row.kind})"
        listed = failures[0] if len(failures) == 1 else "errors:\n" + "".join(f"  {text}\n" for text in failures)
        raise StatusError(500, "", f"failed to create typed patch object {where}: {listed}")


def _checked_config(target: Target, body: Any, options: WriteOptions) -> Json:
    if not options.manager:
        raise invalid_options("PatchOptions", required("fieldManager", "is required for apply patch"))
    if not isinstance(body, dict):
        raise bad_request("apply patch must be an object")
    config = check_identity(target.row, target.namespace, target.name, _whole_numbers(body), applied=True)
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return config


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


def json_patch(obj: Json, operations: Any) -> Json:
    """RFC 6902.

    Raises:
        StatusError: 422 when an operation fails, 400 when it is no patch.
    """
    if not isinstance(operations, list) or not all(map(_is_operation, operations)):
        raise bad_request("error decoding patch: json patch must be an array of operations")
    try:
        for operation in operations:
            obj = jsonpatch.apply_patch(obj, _as_go_does(obj, operation or {}))
        if not isinstance(obj, dict):
            raise TypeError("the result is no object")
        return obj
    except (jsonpatch.JsonPatchException, JsonPointerException, TypeError, KeyError, AttributeError) as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        raise StatusError(422, "Invalid", message) from error


def _is_operation(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    return all(isinstance(value.get(field), str | None) for field in ("op", "path", "from"))


def _as_go_does(obj: Any, operation: Json) -> list[Json]:
    """The operation as the standard has it, for what Go's library takes beside that: what is absent is null, in the
    operation too, and pointers of other forms."""
    name, is_new = operation.get("op"), {"path": operation.get("op") in _ADDING, "from": False}
    pointers = {field: _pointer(obj, operation[field], is_new[field]) for field in is_new if field in operation}
    if name in _ADDING and "" in pointers.values():
        raise jsonpatch.JsonPatchException("the whole object is neither added to, nor copied or moved")
    operation = {"value": None, **operation, **pointers}
    path = JsonPointer(operation["path"])
    if name == "test" and operation["value"] is None and path.resolve(obj, None) is None:
        JsonPointer.from_parts(path.parts[:-1]).resolve(obj)  # what it is a member of has to be there
        return []
    if name == "replace" and path.parts and isinstance(JsonPointer.from_parts(path.parts[:-1]).resolve(obj), dict):
        return [{**operation, "op": "add"}]
    if name == "copy" and JsonPointer(operation["from"]).resolve(obj, None) is None:
        return [{"op": "add", "path": operation["path"], "value": None}]
    return [operation]


def _pointer(obj: Any, pointer: str, is_new: bool) -> str:
    """The pointer as the standard has it: what stands before its first slash does not count, items of lists may be
    counted from the end, and their numbers have signs and zeros before them."""
    _, slash, rest = pointer.partition("/")
    if not slash:
        return pointer
    parts = JsonPointer(slash + rest).parts
    for index, part in enumerate(parts):
        items = JsonPointer.from_parts(parts[:index]).resolve(obj, None)
        if isinstance(items, list) and re.fullmatch(r"[+-]?\d{1,9}", part, re.ASCII):
            size = len(items) + (is_new and index == len(parts) - 1)  # a new item counts, too
            parts[index] = str(int(part) + size * (int(part) < 0))
    return JsonPointer.from_parts(parts).path


def _whole_numbers(value: Any) -> Any:
    """Strategic patches and applies are read without a type first: there 3.0 is 3."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63 else value
