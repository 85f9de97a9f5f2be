"""
Sets of field paths: what `managedFields` is made of.

A path is a tuple of steps as they are written in FieldsV1: `f:name` for a field, `k:{...}` for an item of a list
with keys, `v:...` for an item of a set.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Set
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode, encode
from multikueue.sandbox.apiserver.kinds.shapes import ListShape, Path, Shape


class UnkeyedItemError(ValueError):
    """An item of a list has nothing that tells it from the others."""


def item_step(shape: ListShape, item: Any) -> str:
    """The path step of a list's item.

    Raises:
        UnkeyedItemError: it has none.
    """
    if not shape.keys:
        return _set_step(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise UnkeyedItemError(f"associative list with keys may not have {what}")
    keys = {}
    for key in sorted(shape.keys):
        value = item[key] if key in item else shape.key_default(key)
        if value is not None:
            keys[key] = value
    if not keys:
        named = json.dumps(list(shape.keys), separators=(" ", ":"))
        raise UnkeyedItemError(
            f"associative list with keys has an element that omits all key fields {named} "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + encode(keys).decode()


def _set_step(item: Any) -> str:
    if isinstance(item, dict):
        raise UnkeyedItemError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise UnkeyedItemError("not supported: associative list with lists as elements")
    if item is None:
        raise UnkeyedItemError("associative list without keys has an element that's an explicit null")
    return "v:" + encode(item).decode()


def display_step(step: str) -> str:
    """A step as people read it: `.spec`, `[name="a"]`, `[="x"]`."""
    if step.startswith("f:"):
        return "." + step[2:]
    if step.startswith("k:"):
        keys = json.loads(step[2:]).items()
        return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys) + "]"
    return f"[={step[2:]}]"


def display(path: Path) -> str:
    """A path as people read it: `.spec.entries[name="a"].value`."""
    return "".join(display_step(step) for step in path)


def with_named_fields(shape: Shape | None, paths: Set[Path]) -> set[Path]:
    """The set together with every declared field above one of its paths."""
    named = set(paths)
    for path in paths:
        here = shape
        for length, step in enumerate(path[:-1], start=1):
            if here is None:
                break
            here = _descend(here, step, path[:length], named)
    return named


def _descend(shape: Shape, step: str, path: Path, named: set[Path]) -> Shape | None:
    if step.startswith("f:"):
        key = step[2:]
        if shape.map is None:
            return None
        if shape.map.declares(key):
            named.add(path)
        return shape.map.child(key)
    return shape.list.items if shape.list and step.startswith("k:") else None


def without(paths: Set[Path], tops: Set[Path]) -> set[Path]:
    """The paths that are neither in `tops` nor below one of them."""
    if not tops:
        return set(paths)
    lengths = {len(top) for top in tops}
    return {path for path in paths if not any(path[:length] in tops for length in lengths)}


def tree_of(paths: Iterable[Path]) -> Json:
    """Nested dicts by step; the key `.` marks a path that is a member itself."""
    root: Json = {}
    for path in paths:
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return root


def to_fields_v1(paths: Iterable[Path]) -> Json:
    """Write a set in the FieldsV1 form. Treat it as read-only: it is shared."""
    return _written(frozenset(paths))


@functools.lru_cache(4096)
def _written(paths: frozenset[Path]) -> Json:
    """Managers mostly own what they owned before, and so do those of the next object."""
    return _tidy(tree_of(sorted(paths)))


def _tidy(node: Json) -> Json:
    if set(node) == {"."}:
        return {}
    return {key: value if key == "." else _tidy(value) for key, value in node.items()}


def from_fields_v1(fields: Json) -> set[Path]:
    """Read the FieldsV1 form."""
    return set(_read(encode(fields)))


@functools.lru_cache(4096)
def _read(fields: bytes) -> frozenset[Path]:
    """Every write reads what the last one left."""
    paths: set[Path] = set()
    _read_below(decode(fields), (), paths)
    return frozenset(paths)


def _read_below(fields: Json, path: Path, paths: set[Path]) -> None:
    for key, value in fields.items():
        if key == ".":
            paths.add(path)
        elif not value:
            paths.add((*path, key))
        else:
            _read_below(value, (*path, key), paths)
