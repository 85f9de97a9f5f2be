"""Dispatchers: which workers a pending Workload is offered to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import attrs

from multikueue.core.names import ClusterName, Json

MAX_NOMINATIONS: Final = 20
"""The API's limit on `status.nominatedClusterNames`."""


@attrs.frozen
class Candidates:
    """The workers of a Workload's config."""

    configured: Sequence[ClusterName]
    """In the order of the config."""
    available: Sequence[ClusterName]
    """Those of them that can be reached and serve the kind, in the same order."""
    nominated: Sequence[str]
    """Whom it is offered to already."""


@attrs.frozen
class Nomination:
    """Whom to offer a Workload to now."""

    names: tuple[str, ...]
    look_again: float | None = None
    """Seconds until time alone would change the answer; None: only a change can."""


class Dispatcher(Protocol):
    """Chooses workers. Pure: whatever it must remember lies on the Workload."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """The names that `status.nominatedClusterNames` should hold; never one that is not in the config."""
        ...


@attrs.frozen
class AllAtOnce:
    """Offer to every worker that can be reached; the first to admit wins.

    Workers already nominated stay so while they cannot be reached: a flapping link then rewrites no pending Workload,
    and a worker that admitted before it dropped can still win when it is back.
    """

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        kept = {name for name in candidates.nominated if name in candidates.configured}
        names = sorted(kept.union(candidates.available))
        return Nomination(tuple(names[:MAX_NOMINATIONS]))
