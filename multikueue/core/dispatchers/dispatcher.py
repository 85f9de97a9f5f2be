"""Dispatchers: which workers a pending Workload is offered to.

The one that asks everybody is here; `incremental.py` asks in rounds, `external.py` leaves it to somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import attrs

from multikueue.core.model.names import ClusterName, Json

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
"""What Kueue's settings call `AllAtOnce`."""
MAX_NOMINATIONS: Final = 20
"""The API's limit on `status.nominatedClusterNames`."""


@attrs.frozen
class Candidates:
    """The workers of a Workload's config, and what was decided about them so far."""

    configured: Sequence[ClusterName]
    """In the order of the config."""
    available: Sequence[ClusterName]
    """Those of them that can be reached and serve the kind, in the same order."""
    nominated: Sequence[str]
    """Whom it is offered to already."""
    awaited: Sequence[ClusterName] = ()
    """Those of them that have yet to answer for the first time since the manager was started, a minute ago at most."""
    message: str = ""
    """What our check on the Workload says: the `Nomination.message` written last, unless somebody has reset it."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Whom it is offered to already and who is still in the config, in the order they were nominated.

        A worker out of reach stays nominated: a flapping link then rewrites no pending Workload, and a worker that
        admitted before it dropped can still win when it is back.
        """
        return tuple(name for name in self.nominated if name in self.configured)


@attrs.frozen
class Nomination:
    """Whom to offer a Workload to now."""

    names: tuple[str, ...]
    look_again: float | None = None
    """Seconds until time alone would change the answer; None: only a change can."""
    message: str | None = None
    """What our check on the Workload should say; None: what it says already. It is written together with the names, so
    a dispatcher can keep here what it must remember: Kueue replaces it when it evicts the Workload."""
    binding: bool = False
    """Whether somebody else has chosen the names: then nobody else may be given the Workload, and we write none."""


class Dispatcher(Protocol):
    """Chooses workers. Pure: whatever it must remember lies on the Workload."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """The names that `status.nominatedClusterNames` should hold.

        No name is new that is not `available`. It is asked again whenever anything of the Workload or of a worker
        changes, and after `look_again`.
        """
        ...


@attrs.frozen
class AllAtOnce:
    """Offer to every worker that can be reached; the first to admit wins."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        names = sorted({*candidates.kept, *candidates.available})
        return Nomination(tuple(names[:MAX_NOMINATIONS]))
