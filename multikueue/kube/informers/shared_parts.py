"""Keeps equal parts of objects once.

The objects of a store are much alike: jobs of one sweep have the same pod template, and conditions of one second the
same texts. Only their names and UIDs differ.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import orjson

from multikueue.core.model.names import Json

KEPT_BYTES: Final = 512 << 10
"""How many bytes of JSON of parts are known at a time, those of a hundred small jobs. Then all are forgotten: objects
keep what they have, and later ones share among themselves."""
DEPTH: Final = 10
"""How deep parts are looked for: `spec.podSets[0].template.spec.containers[0].resources.requests` is at 8. Each level
is written as JSON once more, and whoever creates an object decides how deep it is."""
MAX_PARTS: Final = 5_000
"""How many parts of one object are looked at: of a thousand empty lists each would cost as much as a whole job."""
BREATH: Final = 20
"""After so many objects of a list, which are compared with others, other tasks may run."""
_OVERHEAD: Final = 200
"""Bytes of an entry beside its JSON."""
_WITH_PARTS: Final = (dict, list)


@attrs.define(eq=False)
class SharedParts:
    """The parts of objects that were stored lately.

    Parts are equal if their JSON is, with the fields in the same order. Python's `==` also takes 1 for true.
    """

    kept_bytes: int = attrs.field(factory=lambda: KEPT_BYTES)
    _parts: dict[bytes, Any] = attrs.field(factory=dict, init=False)
    """By its JSON, each dict and list."""
    _bytes: int = attrs.field(default=0, init=False)
    _left: int = attrs.field(default=0, init=False)
    """How many parts of the object at hand may still be looked at."""

    def __repr__(self) -> str:
        return f"<SharedParts: {len(self._parts)} parts, {self._bytes} bytes>"

    def share(self, obj: Json, earlier: Json | None) -> None:
        """Replace parts of an object, in place, by equal ones of others; from then on nobody may change it.

        Args:
            obj: as it will be stored.
            earlier: its version so far. Its spec is taken over if the API server says that it is the same. No more is
                looked for then: the status of a running job changes all the time.
        """
        if earlier is None:
            self._left = MAX_PARTS
            for part in (obj, obj["metadata"]):
                for field, value in part.items():
                    if type(value) in _WITH_PARTS and value is not obj["metadata"]:
                        part[field] = self._shared(value, DEPTH)
        elif _has_same_spec(obj, earlier):
            obj["spec"] = earlier["spec"]

    def _shared(self, value: Any, depth: int) -> Any:
        """The first dict or list that is equal; or else this one, with its parts replaced."""
        self._left -= 1
        if self._left < 0:
            return value
        try:
            text = orjson.dumps(value)
        except TypeError:  # it nests too deep, or has a number that orjson reads and does not write
            return value
        known = self._parts.get(text)
        if known is not None:
            return known
        for field, part in (value.items() if type(value) is dict else enumerate(value)) if depth else ():
            if type(part) in _WITH_PARTS:
                value[field] = self._shared(part, depth - 1)
        self._note(text, value)
        return value

    def _note(self, text: bytes, value: Any) -> None:
        self._bytes += len(text) + _OVERHEAD
        if self._bytes > self.kept_bytes:
            self._parts.clear()
            self._bytes = len(text) + _OVERHEAD
        self._parts[text] = value


def _has_same_spec(obj: Json, earlier: Json) -> bool:
    generation = obj["metadata"].get("generation")
    if not generation or generation != earlier["metadata"].get("generation") or "spec" not in obj:
        return False
    if obj["metadata"].get("uid") != earlier["metadata"].get("uid"):  # another object of the same name
        return False
    try:
        return bool(obj["spec"] == earlier.get("spec"))
    except RecursionError:  # nested a thousand deep
        return False
