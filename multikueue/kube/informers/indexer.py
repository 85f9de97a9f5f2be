"""The store of an informer: objects by key and by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid

Index = Callable[[Json], Iterable[str] | None]
"""An index function: the values under which an object is found. None: unknown, keep the earlier values."""

_Values: TypeAlias = str | frozenset[str]
"""The values of an object in an index. Of most objects it is one, which takes no memory of its own."""
_Keys: TypeAlias = ObjectKey | set[ObjectKey]
"""The objects under a value, in the same way."""

_NONE: Final[frozenset[str]] = frozenset()


@attrs.define(eq=False)
class Indexer:
    """Objects by key, and by the values of their index functions. Indexes and objects always agree.

    Objects are shared with all who read them: do not change them.

    It remembers the values of each object, because the index function of a plugin may return others for the same object
    later.
    """

    indexes: Mapping[str, Index]
    _objects: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _indexed: dict[str, dict[str, _Keys]] = attrs.field(factory=dict, init=False)
    _values: dict[str, dict[ObjectKey, _Values]] = attrs.field(factory=dict, init=False)
    """By index and object, the values; without objects that have none."""

    def __repr__(self) -> str:
        return f"<Indexer: {len(self)} objects, indexes {sorted(self.indexes)}>"

    def add_indexes(self, indexes: Mapping[str, Index]) -> None:
        """Keep these indexes, too: before there is any object."""
        if self._objects:
            raise RuntimeError(f"{self!r}: an index is added before there are objects")
        self.indexes = {**self.indexes, **indexes}

    def put(self, key: ObjectKey, new: Json | None) -> Json | None:
        """Store an object, or remove it with None; return the earlier object."""
        old = self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
        for name, index in self.indexes.items():
            known = self._values.setdefault(name, {})
            before = _set_of(known.get(key, _NONE))
            after = _values_of(index, new, old, before)
            if after == before:
                continue
            if after:
                known[key] = next(iter(after)) if len(after) == 1 else after
            else:
                del known[key]
            entries = self._indexed.setdefault(name, {})
            for value in before - after:
                _remove(entries, value, key)
            for value in after - before:
                _add(entries, value, key)
        return old

    def get(self, key: ObjectKey) -> Json | None:
        """The object with that key."""
        return self._objects.get(key)

    def by(self, index: str, value: str) -> list[Json]:
        """The objects under a value of an index, in the order of their keys."""
        return [self._objects[key] for key in sorted(self.keys_by(index, value))]

    def keys_by(self, index: str, value: str) -> Set[ObjectKey]:
        """The keys of the objects under a value of an index. Do not keep the set: later changes may show in it."""
        keys = self._indexed.get(index, {}).get(value)
        if keys is None:
            return frozenset()
        return {keys} if isinstance(keys, ObjectKey) else keys

    def entries(self, index: str) -> list[str]:
        """The values of an index under which there are objects."""
        return sorted(self._indexed.get(index, {}))

    def indexed(self, index: str) -> Set[ObjectKey]:
        """The keys of the objects that have a value in an index. Do not keep the set."""
        return self._values.get(index, {}).keys()

    def values_of(self, index: str, key: ObjectKey) -> Set[str]:
        """The values of an object in an index."""
        return _set_of(self._values.get(index, {}).get(key, _NONE))

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
    values = index(new) if new is not None else ()
    if values is not None:
        return frozenset(values)
    return before if old is not None and new is not None and uid(old) == uid(new) else _NONE


def _set_of(values: _Values) -> frozenset[str]:
    return frozenset((values,)) if isinstance(values, str) else values


def _add(entries: dict[str, _Keys], value: str, key: ObjectKey) -> None:
    known = entries.get(value)
    if known is None:
        entries[value] = key
    elif isinstance(known, set):
        known.add(key)
    else:
        entries[value] = {known, key}


def _remove(entries: dict[str, _Keys], value: str, key: ObjectKey) -> None:
    known = entries[value]
    if isinstance(known, set):
        known.remove(key)
    if known == key or not known:
        del entries[value]
