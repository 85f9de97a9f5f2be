"""The objects of one resource that are there and cannot be read: unknown, neither absent nor as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version
from multikueue.core.model.shape import Check, has_odd_labels, outline
from multikueue.core.model.slimmed import small_metadata
from multikueue.errors import Unreadable
from multikueue.kube.informers.indexer import Index, Indexer
from multikueue.logs import get_logger
from multikueue.protocols import ObjectList, UnreadableObject

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

    def note(self, unreadable: UnreadableObject) -> bool:
        """One cannot be read; return whether that is new, or it has changed."""
        key = ObjectKey.of(unreadable.object)
        old = self.outlines.get(key)
        if (
            old is not None
            and resource_version(old) == resource_version(unreadable.object)
            and self._why[key] == unreadable.why
        ):
            return False
        if self._why.get(key) != unreadable.why:
            log.warning("object cannot be read", resource=self.resource, object=str(key), error=unreadable.why)
        self.outlines.put(key, unreadable.object)
        self._why[key] = unreadable.why
        return True

    def forget(self, key: ObjectKey) -> Json | None:
        """It can be read now, or is gone; return what could be told of it."""
        if self._why.pop(key, None) is None:
            return None
        return self.outlines.put(key, None)


@attrs.frozen
class ObjectShapes:
    """Which of a server's objects can be read, and what is known of the others."""

    resource: Resource
    flaw: Check
    """What is wrong with an object's shape."""
    belongs: Callable[[Json], bool]
    """Whether the selector selects an object."""
    keeps_unreadable: bool

    def sorted_out(self, listed: ObjectList) -> tuple[list[Json], list[UnreadableObject]]:
        """The items of a list that can be read, and those that cannot; see `unknown`."""
        sound: list[Json] = []
        unknown = [unreadable for unreadable in map(self.unknown, listed.unreadable) if unreadable is not None]
        for obj in listed.items:
            if not (flaw := self.flaw(obj)):
                sound.append(obj)
            elif (unreadable := self.unknown(UnreadableObject(obj, flaw))) is not None:
                unknown.append(unreadable)
        return sound, unknown

    def unknown(self, unreadable: UnreadableObject) -> UnreadableObject | None:
        """An object that cannot be read, without what would be wrong for others, too; None if it is not selected.

        Raises:
            Unreadable: none may be.
        """
        known = outline(unreadable.object)
        known["metadata"] = small_metadata(known["metadata"], ("finalizers",))
        if not self.belongs(known) and not has_odd_labels(unreadable.object):
            return None
        if not self.keeps_unreadable:
            raise Unreadable(f'{self.resource} "{ObjectKey.of(known)}" cannot be read: {unreadable.why}')
        return UnreadableObject(known, unreadable.why)
