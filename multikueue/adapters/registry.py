"""The registry: which row handles a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from multikueue.adapters.kind import JobKind
from multikueue.core.model.names import GVK
from multikueue.errors import AdapterError


class AdapterRegistry:
    """Rows keyed by GVK. Built once from a list and passed to whoever needs it.

    Raises:
        AdapterError: two rows for one kind; the message names where both come from.
    """

    def __init__(self, kinds: Iterable[JobKind]) -> None:
        self._kinds: dict[GVK, JobKind] = {}
        self._sources: dict[GVK, str] = {}
        for number, kind in enumerate(kinds, 1):
            gvk, source = kind.resource.gvk, source_of(kind) or f"row {number}"
            if gvk in self._kinds:
                raise AdapterError(f"two adapters for {gvk}, {self._sources[gvk]} and {source}: leave one out")
            self._kinds[gvk], self._sources[gvk] = kind, source

    def get(self, gvk: GVK) -> JobKind | None:
        """The row for exactly this kind; None if there is none."""
        return self._kinds.get(gvk)

    def source(self, gvk: GVK) -> str:
        """Where the row for this kind comes from; empty if there is none."""
        return self._sources.get(gvk, "")

    @property
    def followed(self) -> tuple[JobKind, ...]:
        """The rows whose jobs are watched: all but those of which somebody else's controller moves the jobs."""
        return tuple(kind for kind in self if not kind.workload_only)

    def __iter__(self) -> Iterator[JobKind]:
        return iter(self._kinds.values())

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return f"AdapterRegistry([{', '.join(kind.resource.gvk.kind for kind in self)}])"


def source_of(kind: JobKind) -> str:
    """Where a row says it comes from; empty if it does not."""
    return kind.source or (f"the built-in {kind.framework}" if kind.framework else "")
