"""
Sets of field paths: what `managedFields` is made of.

A path is a tuple of steps as they are written in FieldsV1: `f:name` for a field, `k:{...}` for an item of a list
with keys, `v:...` for an item of a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import attrs

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.merging import MERGE_KEYS

Path: TypeAlias = tuple[str, ...]
Schema: TypeAlias = Json | None
"""A structural schema; None or empty for builtin kinds, whose list keys are known by name."""


@attrs.frozen
class ListRule:
    """How the items of a list are told apart: `atomic` (not at all), `set` (by value) or `map` (by keys)."""

    kind: str = "atomic"
    keys: tuple[str, ...] = ()

    def step(self, item: Any) -> str:
        """The path step of an item."""
        if self.kind == "set":
            return "v:" + json.dumps(item, separators=(",", ":"))
        found = {key: item.get(key) for key in sorted(self.keys) if key in item}
        return "k:" + json.dumps(found, separators=(",", ":"), sort_keys=True)


def child_schema(schema: Schema, key: str) -> tuple[Schema, bool]:
    """The schema of a field, and whether the field is declared by name."""
    if not schema:
        return None, False
    declared = (schema.get("properties") or {}).get(key)
    if declared is not None:
        return declared, True
    additional = schema.get("additionalProperties")
    return (additional if isinstance(additional, dict) else None), False


def item_schema(schema: Schema) -> Schema:
    """The schema of a list's items."""
    return (schema or {}).get("items")


def list_rule(schema: Schema, field: str) -> ListRule:
    """How a list merges: as its schema says, or for builtin kinds by the name of its field."""
    kind = schema.get("x-kubernetes-list-type") if schema else None
    if schema and kind:
        return ListRule(kind, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
    if schema or field not in MERGE_KEYS:
        return ListRule()
    key = MERGE_KEYS[field]
    return ListRule("set") if key is None else ListRule("map", (key,))


def is_atomic_map(schema: Schema) -> bool:
    """Whether an object is owned as a whole."""
    return bool(schema) and (schema or {}).get("x-kubernetes-map-type") == "atomic"


def collect(schema: Schema, value: Any, into: set[Path], path: Path = (), *, nodes: bool = False) -> None:
    """Add the paths of everything in `value`; `nodes` adds the containers too, as an update that made them does."""
    if isinstance(value, dict) and not is_atomic_map(schema):
        for key, item in value.items():
            child, declared = child_schema(schema, key)
            step = (*path, "f:" + key)
            collect(child, item, into, step, nodes=nodes)
            free = bool(schema) and not declared
            if item is None or item == {} or free or (nodes and isinstance(item, dict)):
                into.add(step)
    elif isinstance(value, list):
        _collect_items(schema, value, into, path, nodes=nodes)
    elif path:
        into.add(path)


def _field(path: Path) -> str:
    """The field name a path ends with; empty for list items."""
    return path[-1][2:] if path and path[-1].startswith("f:") else ""


def _collect_items(schema: Schema, value: list[Any], into: set[Path], path: Path, *, nodes: bool) -> None:
    rule = list_rule(schema, _field(path))
    if nodes or rule.kind == "atomic":
        into.add(path)
    if rule.kind == "atomic":
        return
    for item in value:
        step = (*path, rule.step(item))
        into.add(step)
        if rule.kind == "map":
            collect(item_schema(schema), item, into, step, nodes=nodes)


@attrs.define(eq=False)
class Difference:
    """The paths by which one object differs from another."""

    added: set[Path] = attrs.field(factory=set)
    changed: set[Path] = attrs.field(factory=set)
    removed: set[Path] = attrs.field(factory=set)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @classmethod
    def between(cls, schema: Schema, old: Any, new: Any) -> Difference:
        """Compare two objects."""
        found = cls()
        found._compare(schema, old, new, ())
        return found

    def _compare(self, schema: Schema, old: Any, new: Any, path: Path) -> None:
        if isinstance(old, dict) and isinstance(new, dict) and not is_atomic_map(schema):
            self._compare_fields(schema, old, new, path)
            return
        if isinstance(old, list) and isinstance(new, list):
            rule = list_rule(schema, _field(path))
            if rule.kind != "atomic":
                self._compare_items(schema, rule, old, new, path)
                return
        if old != new:
            self.changed.add(path)

    def _compare_fields(self, schema: Schema, old: Json, new: Json, path: Path) -> None:
        for key in old.keys() | new.keys():
            child, step = child_schema(schema, key)[0], (*path, "f:" + key)
            if key not in new:
                self.removed.add(step)
                collect(child, old[key], self.removed, step, nodes=True)
            elif key not in old:
                self.added.add(step)
                collect(child, new[key], self.added, step, nodes=True)
            elif old[key] != new[key]:
                self._compare(child, old[key], new[key], step)

    def _compare_items(self, schema: Schema, rule: ListRule, old: list[Any], new: list[Any], path: Path) -> None:
        before = {rule.step(item): item for item in old}
        after = {rule.step(item): item for item in new}
        items, deep = item_schema(schema), rule.kind == "map"
        for key in before.keys() | after.keys():
            step = (*path, key)
            if key not in after:
                self.removed.add(step)
                if deep:
                    collect(items, before[key], self.removed, step, nodes=True)
            elif key not in before:
                self.added.add(step)
                if deep:
                    collect(items, after[key], self.added, step, nodes=True)
            elif deep and before[key] != after[key]:
                self._compare(items, before[key], after[key], step)


def to_fields_v1(paths: Iterable[Path]) -> Json:
    """Write a set in the FieldsV1 form."""
    root: Json = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return _tidy(root)


def _tidy(node: Json) -> Json:
    if set(node) == {"."}:
        return {}
    return {key: value if key == "." else _tidy(value) for key, value in node.items()}


def from_fields_v1(fields: Json, path: Path = ()) -> set[Path]:
    """Read the FieldsV1 form."""
    found: set[Path] = set()
    for key, value in fields.items():
        if key == ".":
            found.add(path)
        elif not value:
            found.add((*path, key))
        else:
            found |= from_fields_v1(value, (*path, key))
    return found


def prefixes(paths: Iterable[Path]) -> set[Path]:
    """Every path together with all paths above it."""
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}
