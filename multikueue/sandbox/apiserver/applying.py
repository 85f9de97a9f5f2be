"""Server-side apply: merge a manager's configuration into the live object, by field ownership."""

from __future__ import annotations

import json
from typing import Any

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.fieldsets import (
    Difference,
    Path,
    Schema,
    child_schema,
    collect,
    is_atomic_map,
    item_schema,
    list_rule,
    prefixes,
)
from multikueue.sandbox.apiserver.managedfields import (
    UNMANAGED,
    Manager,
    Write,
    managed_part,
    read_managers,
    write_managers,
)
from multikueue.sandbox.apiserver.statuses import StatusError


def apply_config(schema: Schema, live: Json | None, config: Json, write: Write, *, force: bool) -> Json:
    """The object after the apply, managedFields included; `live` is None when it is created by it.

    Raises:
        StatusError: 409, other managers own fields with other values and `force` is off.
    """
    base = live if live is not None else _empty(config)
    managers = read_managers(base)
    mine = next((m for m in managers if m.is_for(write.manager, "Apply", write.subresource)), None)
    others = [manager for manager in managers if manager is not mine]
    if mine is None:
        mine = Manager.new(write.manager, "Apply", write.subresource, write.api_version)
        managers.append(mine)
    owned = _owned(schema, config)
    before = managed_part(base)
    after = merge(schema, before, managed_part(config))
    dropped = _dropped(mine.paths, owned, others)
    if dropped:
        after = remove(schema, after, dropped)
    difference = Difference.between(schema, before, after)
    _take_over(others, difference, force=force)
    if mine.paths != owned or difference:
        mine.entry["time"] = write.now
    mine.paths = owned
    mine.entry["apiVersion"] = write.api_version
    return _assemble(base, after, managers)


def _empty(config: Json) -> Json:
    metadata = {key: config["metadata"][key] for key in ("name", "namespace") if config["metadata"].get(key)}
    return {"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": metadata}


def _owned(schema: Schema, config: Json) -> set[Path]:
    paths: set[Path] = set()
    collect(schema, managed_part(config), paths)
    paths.discard(("f:metadata",))
    return paths


def _dropped(last: set[Path], owned: set[Path], others: list[Manager]) -> set[Path]:
    """What this manager applied before, applies no longer, and nobody else owns: it goes."""
    kept = prefixes(owned).union(*(prefixes(manager.paths) for manager in others))
    return {path for path in last - owned if path not in kept}


def _take_over(others: list[Manager], difference: Difference, *, force: bool) -> None:
    touched = difference.changed | difference.added
    conflicts = []
    for manager in others:
        lost = manager.paths & touched
        if not force:
            conflicts += [(manager, path) for path in sorted(lost)]
        manager.paths -= lost | difference.removed
    if conflicts:
        raise _conflict(conflicts)


def _conflict(conflicts: list[tuple[Manager, Path]]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": _who(manager), "field": _display(path)}
        for manager, path in conflicts
    ]
    plural = "s" if len(causes) > 1 else ""
    listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    message = f"Apply failed with {len(causes)} conflict{plural}: {listed}"
    return StatusError(409, "Conflict", message, details={"causes": causes})


def _who(manager: Manager) -> str:
    entry = manager.entry
    text = f'conflict with "{entry["manager"]}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry["operation"] == "Update":
        text += f" using {entry['apiVersion']} at {entry.get('time')}"
    return text


def _display(path: Path) -> str:
    """A path as people read it: `.spec.entries[name="a"].value`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += "." + step[2:]
        elif step.startswith("k:"):
            keys = json.loads(step[2:]).items()
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys) + "]"
        else:
            text += f"[={step[2:]}]"
    return text


def _assemble(base: Json, after: Json, managers: list[Manager]) -> Json:
    kept = {key: value for key, value in base["metadata"].items() if key in UNMANAGED}
    metadata = {**kept, **(after.get("metadata") or {}), "managedFields": write_managers(managers)}
    body = {key: value for key, value in after.items() if key != "metadata"}
    return {"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": metadata, **body}


def merge(schema: Schema, live: Any, config: Any, field: str = "") -> Any:
    """Merge an applied value into the live one; lists with keys and sets merge item by item."""
    if isinstance(live, dict) and isinstance(config, dict) and not is_atomic_map(schema):
        merged = dict(live)
        for key, value in config.items():
            merged[key] = merge(child_schema(schema, key)[0], live.get(key), value, key)
        return merged
    if isinstance(live, list) and isinstance(config, list):
        return _merge_items(schema, live, config, field)
    return config


def _merge_items(schema: Schema, live: list[Any], config: list[Any], field: str) -> list[Any]:
    rule = list_rule(schema, field)
    if rule.kind == "set":
        return live + [item for item in config if item not in live]
    if rule.kind != "map":
        return config
    merged = list(live)
    index = {rule.step(item): position for position, item in enumerate(merged)}
    for item in config:
        position = index.get(rule.step(item))
        if position is None:
            merged.append(item)
        else:
            merged[position] = merge(item_schema(schema), merged[position], item)
    return merged


def remove(schema: Schema, value: Any, paths: set[Path]) -> Any:
    """A copy without the given paths; containers that the removal empties go too."""
    return _remove(schema, value, paths, prefixes(paths), ())


def _remove(schema: Schema, value: Any, paths: set[Path], touched: set[Path], path: Path) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            step = (*path, "f:" + key)
            if step in paths:
                continue
            child = item
            if isinstance(item, dict | list) and step in touched:
                child = _remove(child_schema(schema, key)[0], item, paths, touched, step)
                if not child:
                    continue
            kept[key] = child
        return kept
    return _remove_items(schema, value, paths, touched, path)


def _remove_items(schema: Schema, value: list[Any], paths: set[Path], touched: set[Path], path: Path) -> list[Any]:
    rule = list_rule(schema, path[-1][2:] if path else "")
    kept = []
    for item in value:
        step = (*path, rule.step(item)) if rule.kind != "atomic" else path
        if rule.kind != "atomic" and step in paths:
            continue
        deep = rule.kind == "map" and step in touched
        kept.append(_remove(item_schema(schema), item, paths, touched, step) if deep else item)
    return kept
