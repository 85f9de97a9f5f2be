"""The objects of one resource that are there and cannot be read: unknown, neither absent nor as they were."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import resource_version
from multikueue.kube.indexer import Index, Indexer
from multikueue.logs import get_logger
from multikueue.protocols import UnreadableObject

log = get_logger(__name__)


@attrs.define(eq=False)
class UnreadableObjects:
    """What can be told of them: their metadata, found under the same indexes as the objects that can be read."""

    resource: str
    indexes: Mapping[str, Index]
    outlines: Indexer = attrs.field(init=False)
    _why: dict[ObjectKey, str] = attrs.field(factory=dict, init=False)

    @outlines.default
    def _empty(self) -> Indexer:
        return Indexer(self.indexes)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._why

    def __len__(self) -> int:
        return len(self._why)

    def why(self, key: ObjectKey) -> str:
        """Why the object of that key cannot be read; empty: there is none, or it can be."""
        return self._why.get(key, "") if self._why else ""

    def note(self, found: UnreadableObject) -> bool:
        """One cannot be read; return whether that is new, or it has changed."""
        key = ObjectKey.of(found.object)
        old = self.outlines.get(key)
        if old is not None and resource_version(old) == resource_version(found.object) and self._why[key] == found.why:
            return False
        if self._why.get(key) != found.why:
            log.warning("object cannot be read", resource=self.resource, object=str(key), error=found.why)
        self.outlines.put(key, found.object)
        self._why[key] = found.why
        return True

    def forget(self, key: ObjectKey) -> Json | None:
        """It can be read now, or is gone; return what could be told of it."""
        if self._why.pop(key, None) is None:
            return None
        return self.outlines.put(key, None)
