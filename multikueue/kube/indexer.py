"""The store of an informer: objects by key and by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid

Index = Callable[[Json], Iterable[str] | None]
"""An index function: the values under which an object is found. None: unknown, keep the earlier values."""

_NONE: frozenset[str] = frozenset()


@attrs.define(eq=False)
class Indexer:
    """Objects by key, and by the values of their index functions. Indexes and objects always agree.

    Objects are shared with all who read them: do not change them.

    It remembers the values of each object, because the index function of a plugin may return others for the same object
    later.
    """

    indexes: Mapping[str, Index]
    _objects: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _indexed: dict[str, dict[str, set[ObjectKey]]] = attrs.field(factory=dict, init=False)
    _values: dict[str, dict[ObjectKey, frozenset[str]]] = attrs.field(factory=dict, init=False)
    """By index and object, the values; without objects that have none."""

    def __repr__(self) -> str:
        return f"<Indexer: {len(self)} objects, indexes {sorted(self.indexes)}>"

    def put(self, key: ObjectKey, new: Json | None) -> Json | None:
        """Store an object, or remove it with None; return the earlier object."""
        old = self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
        for name, index in self.indexes.items():
            entries, known = self._indexed.setdefault(name, {}), self._values.setdefault(name, {})
            before = known.get(key, _NONE)
            after = _values_of(index, new, old, before)
            known.pop(key, None)
            if after:
                known[key] = after
            for value in before - after:
                entries[value].remove(key)
                if not entries[value]:
                    del entries[value]
            for value in after - before:
                entries.setdefault(value, set()).add(key)
        return old

    def get(self, key: ObjectKey) -> Json | None:
        """The object with that key."""
        return self._objects.get(key)

    def by(self, index: str, value: str) -> list[Json]:
        """The objects under a value of an index, in the order of their keys."""
        return [self._objects[key] for key in sorted(self._indexed.get(index, {}).get(value, ()))]

    def keys_by(self, index: str, value: str) -> Set[ObjectKey]:
        """The keys of the objects under a value of an index; not a copy."""
        return self._indexed.get(index, {}).get(value, frozenset())

    def entries(self, index: str) -> list[str]:
        """The values of an index under which there are objects."""
        return sorted(self._indexed.get(index, {}))

    def values_of(self, index: str, key: ObjectKey) -> Set[str]:
        """The values of an object in an index; not a copy."""
        return self._values.get(index, {}).get(key, _NONE)

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


def _values_of(index: Index, new: Json | None, old: Json | None, before: frozenset[str]) -> frozenset[str]:
    found = index(new) if new is not None else ()
    if found is not None:
        return frozenset(found)
    return before if old is not None and new is not None and uid(old) == uid(new) else _NONE
