"""The objects of a cache, found by key and by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

import attrs

from multikueue.core.names import Json, ObjectKey

Index = Callable[[Json], Iterable[str]]
"""The values under which an object is found."""


@attrs.define(eq=False)
class ObjectStore:
    """Objects by key, and by the values their indexes give; the indexes are always in line with the objects."""

    indexes: Mapping[str, Index]
    _objects: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _indexed: dict[str, dict[str, set[ObjectKey]]] = attrs.field(factory=dict, init=False)

    def put(self, key: ObjectKey, new: Json | None) -> Json | None:
        """Keep an object, or with None forget it; returns what was there before."""
        old = self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
        for name, index in self.indexes.items():
            entries = self._indexed.setdefault(name, {})
            before, after = _values(index, old), _values(index, new)
            if before == after:
                continue
            for value in before - after:
                entries[value].remove(key)
                if not entries[value]:
                    del entries[value]
            for value in after - before:
                entries.setdefault(value, set()).add(key)
        return old

    def get(self, key: ObjectKey) -> Json | None:
        """The object of that key."""
        return self._objects.get(key)

    def by(self, index: str, value: str) -> list[Json]:
        """The objects an index has under a value, in the order of their keys."""
        return [self._objects[key] for key in sorted(self._indexed.get(index, {}).get(value, ()))]

    def keys_by(self, index: str, value: str) -> Set[ObjectKey]:
        """The keys of the objects an index has under a value; not a copy."""
        return self._indexed.get(index, {}).get(value, frozenset())

    def keys(self) -> Iterator[ObjectKey]:
        """The keys now; safe against changes while iterating."""
        return iter(list(self._objects))

    def values(self) -> Iterator[Json]:
        """The objects now; safe against changes while iterating."""
        return iter(list(self._objects.values()))

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)


def _values(index: Index, obj: Json | None) -> set[str]:
    return set(index(obj)) if obj is not None else set()
