"""Compare two objects by shape: which paths the second one adds, changes and removes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import UnkeyedItemError, item_step, without
from multikueue.sandbox.apiserver.apply.typed_merging import ABSENT
from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.kinds.shapes import ListShape, MapShape, Path, Shape


@attrs.define(eq=False)
class Comparison:
    """The paths by which one object differs from another."""

    added: set[Path] = attrs.field(factory=set)
    changed: set[Path] = attrs.field(factory=set)
    removed: set[Path] = attrs.field(factory=set)

    @classmethod
    def between(cls, shape: Shape, old: Json, new: Json, ignored: frozenset[Path]) -> Comparison:
        """Compare two objects, leaving out some paths and what is below them."""
        comparison = cls()
        comparison._compare(shape, old, new, ())
        sets = (comparison.added, comparison.changed, comparison.removed)
        return cls(*(without(paths, ignored) for paths in sets))

    def _compare(self, shape: Shape | None, old: Any, new: Any, path: Path) -> None:
        if old is new or (old == new and encode(old) == encode(new)):  # as a rule most of an object is what it was
            return
        shapes = _narrowed(shape, old, new) if shape else []
        in_leaf = False
        for narrowed in shapes:
            in_leaf = self._compare_as(narrowed, old, new, path)
        if not in_leaf:
            self._note(old, new, path, leaf=not shapes)

    def _note(self, old: Any, new: Any, path: Path, *, leaf: bool) -> None:
        if old is ABSENT:
            self.added.add(path)
        elif new is ABSENT:
            self.removed.add(path)
        elif leaf and not same(old, new):
            self.changed.add(path)

    def _compare_as(self, shape: Shape, old: Any, new: Any, path: Path) -> bool:
        """Compare as one of map, list and scalar; returns whether it was compared as a whole."""
        if shape.map and not shape.map.atomic and _has_any(dict, old, new):
            self._compare_maps(shape.map, old, new, path)
            return False
        as_list = shape.list if not shape.map and not shape.scalar else None
        if as_list and not as_list.atomic and _has_any(list, old, new):
            self._compare_lists(as_list, old, new, path)
            return False
        self._note(old, new, path, leaf=True)
        return True

    def _compare_maps(self, shape: MapShape, old: Any, new: Any, path: Path) -> None:
        left, right = (value if isinstance(value, dict) else {} for value in (old, new))
        for key in left.keys() | right.keys():
            self._compare(shape.child(key), left.get(key, ABSENT), right.get(key, ABSENT), (*path, "f:" + key))

    def _compare_lists(self, shape: ListShape, old: Any, new: Any, path: Path) -> None:
        left, right = (_grouped(shape, value) for value in (old, new))
        for step in left.keys() | right.keys():
            before, after, here = left.get(step, []), right.get(step, []), (*path, step)
            if len(before) <= 1 and len(after) <= 1:
                old_item, new_item = (items[0] if items else ABSENT for items in (before, after))
                self._compare(shape.items, old_item, new_item, here)
            elif len(before) > 1 and len(after) > 1:
                if not same(before, after):
                    self.changed.add(here)
            elif len(before) > 1:
                if after:
                    self._compare(shape.items, ABSENT, after[0], here)
                self.removed.add(here)
            else:
                if before:
                    self._compare(shape.items, before[0], ABSENT, here)
                self.added.add(here)


def _narrowed(shape: Shape, old: Any, new: Any) -> list[Shape]:
    """The shapes to compare by: two when the values are of different kinds."""
    old_shape, new_shape = shape.deduced(old), shape.deduced(new)
    if new is ABSENT:
        return [old_shape]
    return [new_shape] if old is ABSENT or old_shape.is_like(new_shape) else [old_shape, new_shape]


def _has_any(kind: type, old: Any, new: Any) -> bool:
    return any(isinstance(value, kind) and value for value in (old, new))


def _grouped(shape: ListShape, value: Any) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for item in value if isinstance(value, list) else ():
        try:
            groups[item_step(shape, item)].append(item)
        except UnkeyedItemError:
            continue
    return groups


def same(old: Any, new: Any) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)
