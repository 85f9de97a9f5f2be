"""The newest known version of each object: from the watch, or from the answer to a write of our own.

A controller that has just written must not decide again from what its watch has not caught up with.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import resource_version, uid

_REMEMBERED_DELETIONS = 1_000  # more than can be between an answer and its watch event


def _no_places(_obj: Json) -> Iterable[Hashable]:
    return ()


@attrs.define(eq=False)
class Newest:
    """Objects of one kind by key, never older than what was seen before.

    It compares resourceVersions as numbers, which holds for the sandbox's server (and for etcd's).
    """

    places: Callable[[Json], Iterable[Hashable]] = _no_places
    """What an object can be looked up by, besides its key."""
    _objects: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _index: dict[Hashable, dict[ObjectKey, None]] = attrs.field(factory=dict, init=False)
    _deleted: OrderedDict[str, None] = attrs.field(factory=OrderedDict, init=False)

    def get(self, key: ObjectKey) -> Json | None:
        """The object, if there is one."""
        return self._objects.get(key)

    def by(self, place: Hashable) -> list[Json]:
        """The objects with this value among their `places`."""
        return [self._objects[key] for key in self._index.get(place, ())]

    def observe(self, obj: Json) -> bool:
        """Take note of a version; whether it was news."""
        key = ObjectKey.of(obj)
        old = self._objects.get(key)
        if uid(obj) in self._deleted or (old is not None and _version(old) >= _version(obj)):
            return False
        self._unindex(key)
        self._objects[key] = obj
        for place in self.places(obj):
            self._index.setdefault(place, {})[key] = None
        return True

    def remove(self, obj: Json) -> bool:
        """Take note that exactly this object (by UID) is gone; whether that was news."""
        self._deleted[uid(obj)] = None
        while len(self._deleted) > _REMEMBERED_DELETIONS:
            self._deleted.popitem(last=False)
        key = ObjectKey.of(obj)
        known = self._objects.get(key)
        if known is None or uid(known) != uid(obj):
            return False
        self._unindex(key)
        del self._objects[key]
        return True

    def __iter__(self) -> Iterator[Json]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def _unindex(self, key: ObjectKey) -> None:
        old = self._objects.get(key)
        if old is None:
            return
        for place in self.places(old):
            members = self._index.get(place, {})
            members.pop(key, None)
            if not members:
                self._index.pop(place, None)


def _version(obj: Json) -> int:
    return int(resource_version(obj) or 0)
