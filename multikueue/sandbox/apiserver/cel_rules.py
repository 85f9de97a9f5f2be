"""CEL rules of CRDs (`x-kubernetes-validations`): checked when the object is otherwise valid."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import cel

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.schema_pruning import field_schema
from multikueue.sandbox.apiserver.schema_validation import item_identity
from multikueue.sandbox.apiserver.statuses import Cause


@functools.lru_cache(2048)
def _compile(rule: str) -> cel.Program:
    return cel.compile(rule)


def check_rules(schema: Json, value: Any, old: Any = None, path: str = "") -> Iterator[Cause]:
    """Every broken rule of an object or a part of it; `old` is the stored value, None for a new one."""
    if value is None:
        return
    yield from _check_own(schema, value, old, path)
    if isinstance(value, dict):
        for key, item in value.items():
            child = field_schema(schema, key)
            if child:
                before = old.get(key) if isinstance(old, dict) else None
                yield from check_rules(child, item, before, f"{path}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        before_by_key = _keyed(schema, old)
        for index, item in enumerate(value):
            before = before_by_key.get(item_identity(schema, item))
            yield from check_rules(schema["items"], item, before, f"{path}[{index}]")


def _keyed(schema: Json, old: Any) -> dict[str, Any]:
    """The old items of a list by identity; only lists with keys have items that stay the same."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return {item_identity(schema, item): item for item in old if isinstance(item, dict)}


def _check_own(schema: Json, value: Any, old: Any, path: str) -> Iterator[Cause]:
    for rule in schema.get("x-kubernetes-validations") or ():
        # Transition rules need an old value; a value that did not change is not judged again (ratcheting).
        if (old is not None and old == value) or (old is None and "oldSelf" in rule["rule"]):
            continue
        failure = _evaluate(rule["rule"], value, old)
        if failure is not None:
            reason = rule.get("message") or failure
            message = f"Invalid value: {_short(value)}: {reason}"
            yield Cause("FieldValueInvalid", path.lstrip(".") or "<nil>", message)


def _evaluate(rule: str, value: Any, old: Any) -> str | None:
    """None when the rule holds, else why not; a rule that cannot be evaluated does not hold."""
    try:
        result = _compile(rule).execute({"self": value, "oldSelf": old})
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        return str(error)
    return None if result is True else f"failed rule: {rule}"


def _short(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return '"object"'
    return '"array"' if isinstance(value, list) else str(value)
