"""A list that was read before its informer begins: large ones take seconds, and need not be read twice."""

from __future__ import annotations

import attrs

from multikueue.protocols import ObjectList


@attrs.define(eq=False)
class InitialList:
    """All objects of a kind, as they were a moment ago. Whoever takes them may change them, so only one does."""

    _listed: ObjectList | None = None

    def __repr__(self) -> str:
        return f"<InitialList: {len(self._listed.items) if self._listed is not None else 'no'} objects>"

    def take(self) -> ObjectList | None:
        """The list, once; then None."""
        listed, self._listed = self._listed, None
        return listed
