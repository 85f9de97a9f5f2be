"""The dispatcher that is not here: another controller writes `status.nominatedClusterNames`, and we follow it."""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Candidates, Nomination
from multikueue.core.model.names import Json


@attrs.frozen
class External:
    """Offer to whom somebody else has named, and to nobody before that.

    Names that are unknown, out of reach or not in the config stay where they are and mean nothing until that changes;
    a worker whose name is taken away loses its copy.
    """

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        return Nomination(tuple(candidates.nominated), binding=True)
