"""Which cluster a MultiKueueCluster leads to, as far as can be told."""

from __future__ import annotations

import attrs


@attrs.frozen
class Destination:
    """Where a MultiKueueCluster leads."""

    uid: str
    """Of the cluster; empty: it is not known."""
    server: str
    """Its address."""

    def is_same(self, other: Destination, *, shown: bool = False) -> bool:
        """Whether two are one cluster. Without both UIDs the address tells.

        Args:
            other: the other one.
            shown: whether one shows what was made on the other: without the UIDs that tells, too.
        """
        if self.uid and other.uid:
            return self.uid == other.uid
        return self.server == other.server or shown
