"""How long a cluster stays selected at least.

Where a score decides who is selected, the choice can change with every report of a score. Each change moves all
new jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import attrs


@attrs.frozen
class Dwelling:
    """The selected clusters, and those that were selected a moment ago."""

    names: frozenset[str]
    joined: Mapping[str, datetime]
    """Since when each of them has been selected, as far as this process has seen."""
    look_again: float | None = None
    """Seconds until the first of those may go that are not selected any more."""


def with_dwelling(names: frozenset[str], joined: Mapping[str, datetime], now: datetime, least: timedelta) -> Dwelling:
    """The clusters to go by: those that have just been selected stay for a while. An empty selection stays empty.

    Args:
        names: the selected clusters.
        joined: since when clusters have been selected, the last time.
        now: the manager's wall clock.
        least: how long a cluster stays at least.
    """
    waits = {
        name: (since + least - now).total_seconds()
        for name, since in joined.items()
        if name not in names and since <= now < since + least
    }
    kept = names | waits.keys() if names else names
    since = {name: joined.get(name, now) for name in sorted(kept)}
    return Dwelling(frozenset(kept), since, min(waits.values(), default=None) if names else None)
