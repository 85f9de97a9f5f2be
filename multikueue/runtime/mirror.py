"""A cache that knows its own writes.

A write is seen by the watch a moment later. In between a decision made from the cache alone would ask for the same
write again. A mirror therefore remembers what was written until the cache has caught up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import anyio
import attrs

from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import resource_version, uid
from multikueue.kube.caching import ObjectCache

DELETION_GRACE: Final = 30.0
"""Seconds for which an object we deleted stays hidden if the watch does not confirm it. Long enough for a slow watch;
a worker that refuses to let go of an object is asked again after that."""


@attrs.define(eq=False)
class Mirror:
    """One kind on one cluster, as the cache shows it plus what we wrote since."""

    cache: ObjectCache
    index: Callable[[Json], Iterable[str]] = lambda _: ()
    """The Workload keys an object belongs to, for `of`."""
    _written: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _deleted: dict[ObjectKey, tuple[str, float]] = attrs.field(factory=dict, init=False)

    def get(self, key: ObjectKey) -> Json | None:
        """The object as it is or soon will be; None if it is gone or about to be."""
        cached = self.cache.get(key)
        written = self._written.get(key)
        if written is not None:
            if self._is_ahead(written):
                cached = written
            else:
                del self._written[key]
        return None if cached is None or self._is_deleted(key, cached) else cached

    def of(self, workload: ObjectKey) -> list[Json]:
        """The objects that belong to a Workload."""
        wanted = str(workload)
        keys = {ObjectKey.of(obj) for obj in self.cache.by("workload", wanted)}
        keys.update(key for key, obj in self._written.items() if wanted in self.index(obj))
        found = (self.get(key) for key in sorted(keys))
        return [obj for obj in found if obj is not None]

    def wrote(self, obj: Json) -> None:
        """The server answered a write with this object."""
        self._written[ObjectKey.of(obj)] = obj
        self._deleted.pop(ObjectKey.of(obj), None)

    def removed(self, key: ObjectKey, object_uid: str) -> None:
        """The server accepted the deletion of this object."""
        self._written.pop(key, None)
        self._deleted[key] = (object_uid, anyio.current_time() + DELETION_GRACE)

    def _is_ahead(self, written: Json) -> bool:
        # The cache has seen everything up to its own resourceVersion, so an older write is in it, or was undone since.
        return _number(resource_version(written)) > _number(self.cache.resource_version)

    def _is_deleted(self, key: ObjectKey, obj: Json) -> bool:
        deleted = self._deleted.get(key)
        if deleted is None:
            return False
        object_uid, until = deleted
        if object_uid == uid(obj) and anyio.current_time() < until and "deletionTimestamp" not in obj["metadata"]:
            return True
        del self._deleted[key]
        return False


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
