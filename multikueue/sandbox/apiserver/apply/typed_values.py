"""Values and their shapes: does a value fit, which paths does it set, and what is left of it without some paths."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import UnkeyedItemError, display_step, item_step, tree_of
from multikueue.sandbox.apiserver.kinds.shapes import (
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    STRING,
    UNTYPED_ATOMIC,
    ListShape,
    MapShape,
    Path,
    Shape,
)

_WORDS = {NUMERIC: "numeric (int or float)", STRING: "string", BOOLEAN: "boolean"}


def misfits(shape: Shape, value: Any, *, duplicates: bool = False) -> list[str]:
    """What does not fit, in the server's words; `duplicates` allows items of a list that are the same."""
    checking = _Checking(duplicates)
    checking.check(shape, value, None)
    return checking.errors


_Steps: TypeAlias = "tuple[_Steps, str | int] | None"
"""Where a value is: the steps to what holds it, and the last one, an index where the list is atomic."""


@attrs.define(eq=False)
class _Checking:
    """One look at a whole value. Steps become paths and text only where something is wrong: as a rule nothing is."""

    duplicates: bool
    errors: list[str] = attrs.field(factory=list)

    def check(self, shape: Shape, value: Any, steps: _Steps) -> None:
        """Check a value and what is below it."""
        if value is None or shape is DEDUCED or shape is UNTYPED_ATOMIC:  # any value fits those
            return
        narrowed = shape.deduced(value)
        if narrowed.map:
            self._check_map(narrowed.map, value, steps)
        elif narrowed.scalar:
            if not _is_scalar(narrowed.scalar, value):
                self._expected(_WORDS.get(narrowed.scalar, "any scalar"), value, steps)
        elif narrowed.list:
            self._check_list(narrowed.list, value, steps)

    def _check_map(self, shape: MapShape, value: Any, steps: _Steps) -> None:
        if not isinstance(value, dict):
            self._expected("map", value, steps)
            return
        for key, item in value.items():
            child, here = shape.child(key), (steps, "f:" + key)
            if child is None:
                self.errors.append(f"{_where(here)}: field not declared in schema")
                return
            self.check(child, item, here)

    def _check_list(self, shape: ListShape, value: Any, steps: _Steps) -> None:
        if not isinstance(value, list):
            self._expected("list", value, steps)
            return
        seen = set()
        for index, item in enumerate(value):
            step: str | int = index
            if not shape.atomic:
                try:
                    step = item_step(shape, item)
                except UnkeyedItemError as error:
                    self.errors.append(f"{_where(steps)}: element {index}: {error}")
                    return
                if step in seen and not self.duplicates:
                    self.errors.append(f"{_where(steps)}: duplicate entries for key {display_step(step)}")
                seen.add(step)
            self.check(shape.items, item, (steps, step))

    def _expected(self, words: str, value: Any, steps: _Steps) -> None:
        shown = f"&value.valueUnstructured{{Value:{json.dumps(value)}}}"
        self.errors.append(f"{_where(steps)}: expected {words}, got {shown}")


def _where(steps: _Steps) -> str:
    shown = list[str]()
    while steps is not None:
        steps, last = steps
        shown.append(f"[{last}]" if isinstance(last, int) else display_step(last))
    return "".join(reversed(shown))


def _is_scalar(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind not in (NUMERIC, STRING)
    if kind == NUMERIC:
        return isinstance(value, int | float)
    if kind == STRING:
        return isinstance(value, str)
    return kind != BOOLEAN and isinstance(value, str | int | float)


def fields_of(shape: Shape, value: Any) -> set[Path]:
    """The paths a value sets: its leaves, and what is owned beside them."""
    paths: set[Path] = set()
    _collect(shape, value, (), paths)
    return paths


def _collect(shape: Shape, value: Any, path: Path, paths: set[Path]) -> None:
    narrowed = shape.deduced(value)
    if narrowed.map:
        if narrowed.map.atomic:
            paths.add(path)
        elif isinstance(value, dict):
            _collect_fields(narrowed.map, value, path, paths)
    elif narrowed.scalar:
        paths.add(path)
    elif narrowed.list:
        if narrowed.list.atomic:
            paths.add(path)
        elif isinstance(value, list):
            _collect_items(narrowed.list, value, path, paths)


def _collect_fields(shape: MapShape, value: Json, path: Path, paths: set[Path]) -> None:
    for key, item in value.items():
        step = (*path, "f:" + key)
        child = shape.child(key)
        if child is not None:
            _collect(child, item, step, paths)
        if item is None or item == {} or not shape.declares(key):
            paths.add(step)


def _collect_items(shape: ListShape, value: list[Any], path: Path, paths: set[Path]) -> None:
    steps = [_step_or_none(shape, item) for item in value]
    for step, item in zip(steps, value, strict=True):
        if step is None:
            continue
        paths.add((*path, step))
        if steps.count(step) == 1:  # what is there twice is owned as a whole
            _collect(shape.items, item, (*path, step), paths)


def _step_or_none(shape: ListShape, item: Any) -> str | None:
    try:
        return item_step(shape, item)
    except UnkeyedItemError:
        return None


def remove(shape: Shape, value: Json, paths: set[Path]) -> Json:
    """A copy without the given paths; containers that the removal empties become null."""
    if not paths:
        return value
    left: Json | None = _remove(shape, value, tree_of(paths))
    return left if left is not None else {}


def _remove(shape: Shape | None, value: Any, paths: Json) -> Any:
    narrowed = shape.deduced(value) if shape else None
    if narrowed is None or narrowed.scalar or not value:
        return value if narrowed is None or narrowed.scalar else None
    if narrowed.map and isinstance(value, dict) and not narrowed.map.atomic:
        return _remove_fields(narrowed.map, value, paths)
    if narrowed.list and isinstance(value, list) and not narrowed.list.atomic:
        return _remove_items(narrowed.list, value, paths)
    return None


def _remove_fields(shape: MapShape, value: Json, paths: Json) -> Json | None:
    kept = {}
    for key, item in value.items():
        below = paths.get("f:" + key)
        if below is None:
            kept[key] = item
        elif "." not in below:
            kept[key] = _remove(shape.child(key), item, below)
    return kept or None


def _remove_items(shape: ListShape, value: list[Any], paths: Json) -> list[Any] | None:
    kept = []
    for item in value:
        below = paths.get(_step_or_none(shape, item) or "")
        if below is None:
            kept.append(item)
        elif "." not in below:
            kept.append(_remove(shape.items, item, below))
    return kept or None
