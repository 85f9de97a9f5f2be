"""The registry: which row handles a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from multikueue.adapters.kind import JobKind
from multikueue.core.names import GVK
from multikueue.errors import AdapterError


class AdapterRegistry:
    """Rows keyed by GVK. Built once from a list and passed to whoever needs it.

    Raises:
        AdapterError: two rows for one kind.
    """

    def __init__(self, kinds: Iterable[JobKind]) -> None:
        self._kinds: dict[GVK, JobKind] = {}
        for kind in kinds:
            gvk = kind.resource.gvk
            if gvk in self._kinds:
                raise AdapterError(f"two adapters for {gvk}: leave one of them out")
            self._kinds[gvk] = kind

    def get(self, gvk: GVK) -> JobKind | None:
        """The row for exactly this kind; None if there is none."""
        return self._kinds.get(gvk)

    def __iter__(self) -> Iterator[JobKind]:
        return iter(self._kinds.values())

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return f"AdapterRegistry([{', '.join(kind.resource.gvk.kind for kind in self)}])"
