"""What was computed of parts of cached objects: nobody changes them, and versions of an object share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from multikueue.core.model.names import Json

Value = TypeVar("Value")


@attrs.define(eq=False)
class ByIdentity(Generic[Value]):
    """The values of a function for the objects that it was asked for lately."""

    compute: Callable[[Json], Value]
    size: int
    """How many objects are kept, and with them what they hold."""
    _known: dict[int, tuple[Json, Value]] = attrs.field(factory=dict, init=False, repr=False)
    """With the object, so that no other one gets its `id`."""

    def of(self, obj: Json) -> Value:
        """The value for an object."""
        known = self._known.get(id(obj))
        if known is None:
            if len(self._known) >= self.size:
                del self._known[next(iter(self._known))]
            known = self._known[id(obj)] = obj, self.compute(obj)
        return known[1]
