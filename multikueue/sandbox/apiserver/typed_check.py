"""Server-side apply needs a typed configuration: wrong types and unknown fields fail before the merge (HTTP 500)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.fieldsets import list_rule
from multikueue.sandbox.apiserver.resources import ResourceType
from multikueue.sandbox.apiserver.statuses import StatusError

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "string"),
    "boolean": ((bool,), "boolean"),
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
}


def check_typed(row: ResourceType, config: Json, namespace: str, name: str) -> None:
    """Check an applied configuration of a custom kind.

    Raises:
        StatusError: 500, as kube-apiserver answers.
    """
    schema = row.managed_schema or {}
    failures = list(_check_root(schema, config))
    if not failures:
        return
    where = f"({namespace}/{name}; {row.api_version}, Kind={row.kind})"
    listed = failures[0] if len(failures) == 1 else "errors:\n" + "".join(f"  {text}\n" for text in failures)
    raise StatusError(500, "", f"failed to create typed patch object {where}: {listed}")


def _check_root(schema: Json, config: Json) -> Iterator[str]:
    properties = schema.get("properties") or {}
    for key, value in config.items():
        if key in ("apiVersion", "kind", "metadata"):
            continue
        if key in properties:
            yield from _check(properties[key], value, "." + key)
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f".{key}: field not declared in schema"


def _check(schema: Json, value: Any, path: str) -> Iterator[str]:
    loose = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
    if value is None or any(schema.get(key) for key in loose):
        return
    wanted = schema.get("type", "")
    if wanted == "object":
        yield from _check_object(schema, value, path)
    elif wanted == "array":
        yield from _check_array(schema, value, path)
    elif wanted in _SCALARS:
        types, words = _SCALARS[wanted]
        if not isinstance(value, types) or (isinstance(value, bool) and wanted != "boolean"):
            yield _expected(words, value, path)


def _expected(words: str, value: Any, path: str) -> str:
    shown = f'"{value}"' if isinstance(value, str) else json.dumps(value)
    return f"{path}: expected {words}, got &value.valueUnstructured{{Value:{shown}}}"


def _check_object(schema: Json, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _expected("map", value, path)
        return
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        child = properties.get(key, additional if isinstance(additional, dict) else None)
        if child:
            yield from _check(child, item, f"{path}.{key}")
        elif properties and additional is None:
            yield f"{path}.{key}: field not declared in schema"


def _check_array(schema: Json, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield _expected("list", value, path)
        return
    rule, seen = list_rule(schema, ""), set()
    for index, item in enumerate(value):
        if rule.kind == "set" or (rule.kind == "map" and isinstance(item, dict)):
            step = rule.step(item)
            if step in seen:
                yield f"{path}: duplicate entries for key [{step[2:]}]"
            seen.add(step)
        if isinstance(schema.get("items"), dict):
            yield from _check(schema["items"], item, f"{path}[{index}]")
