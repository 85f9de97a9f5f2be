"""What the spokes' reconciler needs to know of Placements."""

from __future__ import annotations

from typing import Protocol


class Selection(Protocol):
    """The ManagedClusters that the Placements of our checks select."""

    @property
    def known(self) -> bool:
        """Whether the Placements of all checks have been read: before that nothing counts as not selected."""
        ...

    def selects(self, cluster: str) -> bool:
        """Whether any of them selects this ManagedCluster."""
        ...
