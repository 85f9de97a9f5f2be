"""Fields of copies that something on a worker sets, each time that they are set back: the third time is the last.

An autoscaler there is such a writer, or an older API, which drops the field. Two writers would go on for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig
from multikueue.runtime.loop import loop_time

MOST: Final = 3
"""How often the same change of a copy is made, one time after the other."""
WITHIN: Final = 3600.0
"""Seconds between two of them after which they count anew: people change copies by hand, too."""
KEPT: Final = 10_000
"""Copies that are remembered; of more, those that were changed longest ago are forgotten."""


@attrs.frozen
class _Made:
    change: Json
    times: int
    at: float
    """On the loop's clock."""


@attrs.define(eq=False)
class ContestedFields:
    """The last change of each copy, and how often it was made. A new process counts anew."""

    _made: dict[tuple[ClusterName, str], _Made] = attrs.field(factory=dict, init=False)
    """By worker and the copy's UID."""

    def __len__(self) -> int:
        return len(self._made)

    def made(self, cluster: ClusterName, patch: Json) -> None:
        """A change was made, by a patch that names the copy's UID."""
        key, before = (cluster, _uid(patch)), self._last(cluster, patch)
        self._made.pop(key, None)
        self._made[key] = _Made(_change(patch), before + 1, loop_time())
        if len(self._made) > KEPT:
            del self._made[next(iter(self._made))]

    def is_left_to_others(self, cluster: ClusterName, patch: Json) -> bool:
        """Whether a change is not made any more."""
        return self._last(cluster, patch) >= MOST

    def is_reported(self, cluster: ClusterName, patch: Json) -> bool:
        """Whether it was reported before that this change is not made any more; from now on it is."""
        is_known = self._last(cluster, patch) > MOST
        if not is_known:
            self.made(cluster, patch)
        return is_known

    def _last(self, cluster: ClusterName, patch: Json) -> int:
        """How often this very change was made, up to the last change of the copy."""
        last = self._made.get((cluster, _uid(patch)))
        if last is None or last.change != _change(patch):
            return 0
        return last.times if last.times >= MOST or loop_time() - last.at < WITHIN else 0


def contested(patch: Json, copy: Json) -> str:
    """What a change is of, and who else has set that: in words for people.

    Args:
        patch: the change.
        copy: as the worker has it now, with its `managedFields`.
    """
    paths = list(_paths(_change(patch)))
    entries = dig(copy, "metadata", "managedFields") or []
    owners = dict.fromkeys(
        str(entry.get("manager"))
        for entry in entries
        if any(dig(entry.get("fieldsV1"), *(f"f:{step}" for step in path)) is not None for path in paths)
    )
    fields = ", ".join(".".join(path) for path in paths)
    return f"{fields} (set there by {', '.join(owners)})" if owners else f"{fields} (which that API may not have)"


def _uid(patch: Json) -> str:
    return str(dig(patch, "metadata", "uid") or "")


def _change(patch: Json) -> Json:
    """The patch without what it is meant for."""
    meant = ("uid", "resourceVersion")
    rest = {field: value for field, value in (patch.get("metadata") or {}).items() if field not in meant}
    return {
        **{field: value for field, value in patch.items() if field != "metadata"},
        **({"metadata": rest} if rest else {}),
    }


def _paths(change: Any, *before: str) -> Iterator[tuple[str, ...]]:
    for field, value in change.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, *before, field)
        else:
            yield (*before, field)
