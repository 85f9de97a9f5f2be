"""How much of the manager's Workloads and jobs is kept whole: each namespace has a share of that.

Large objects are kept slim anyway. Whoever may create jobs in a namespace decides how many small ones there are. Beyond
the share of a namespace they are kept slim, too: their bodies are read again where they are sent, and wait for a place.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from multikueue.core.machinery.shares import Shares
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import namespace_of
from multikueue.core.model.slimmed import LARGE, LEFT, Slimmer
from multikueue.logs import get_logger

WHOLE: Final = 128 << 20
"""Bytes, as sent, of all Workloads and jobs of the manager that are kept whole: 12,000 Jobs of 5 KiB with theirs."""
LEFT_OF_SMALL: Final = LEFT // 4
"""Bytes that are left of a body of those that are not, about. An object of less than twice as many is kept whole: what
is noted of one that is not takes as much."""

log = get_logger(__name__)

Kept: TypeAlias = Shares[tuple[str, ObjectKey]]
"""What is kept whole, by kind and object."""


@attrs.define(eq=False)
class KeptWhole:
    """Decides what is kept of each object of one kind: `Informer.slim`."""

    kind: str
    slimmer: Slimmer
    kept: Kept
    """Of all kinds."""
    _beyond: set[str] = attrs.field(factory=set, init=False)
    """The namespaces of which it was told."""

    def __call__(self, obj: Json, size: int, earlier: Json | None = None) -> Json:
        """What is kept of an object; see `Slimmer`."""
        key, namespace = (self.kind, ObjectKey.of(obj)), namespace_of(obj)
        if size > LARGE:
            self.kept.drop(key)
            return self.slimmer(obj, size, earlier)
        if key in self.kept or self.kept.has_room(namespace, size):
            self.kept.keep(key, namespace, size)
            return obj
        if namespace not in self._beyond:
            self._beyond.add(namespace)
            log.warning("a namespace has its share of what is kept whole", namespace=namespace, kind=self.kind)
        return self.slimmer(obj, size, earlier, above=2 * LEFT_OF_SMALL, left=LEFT_OF_SMALL)

    def changed(self, key: ObjectKey, _: Json | None, new: Json | None) -> None:
        """An object is gone, or kept as it is now."""
        if new is None:
            self.kept.drop((self.kind, key))
