"""Since when a worker is lost that was lost before this process started: what its MultiKueueCluster says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from multikueue.core.machinery.connection import BAD_NAMES, UNREADABLE
from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.conditions import condition, parse_timestamp
from multikueue.core.model.names import Json

NOTED_WITHIN: Final = timedelta(minutes=3)
"""A failed attempt stands on the object at most so long after it was due: requests have deadlines of 30 s, and a write
that fails is repeated within a minute."""


def remembered_loss(cluster: Json, started: datetime, led_until: datetime | None) -> datetime | None:
    """Since when a worker counts as lost that was lost before this process started; None: the object says it was not.

    Only the time counts in which a leader watched: a worker that was away together with us may be back already. So the
    time without a leader is added to what the object says. If it is not known, or if the loss had ended without
    anybody noting that, the loss begins with our start.

    Args:
        cluster: the MultiKueueCluster.
        started: when this process began to connect to workers.
        led_until: when the leader before it was at work last.
    """
    active = condition(cluster, "Active")
    if active is None or active.get("status") == "True" or active.get("reason") in (UNREADABLE, BAD_NAMES):
        return None
    noted = parse_timestamp(active.get("lastTransitionTime"))
    if noted is not None and noted >= started:
        return noted  # by this process
    if noted is None or led_until is None or _had_ended(cluster, led_until):
        return started
    return min(started, noted + max(started - led_until, timedelta(0)))


def _had_ended(cluster: Json, led_until: datetime) -> bool:
    """Whether a leader went on for long after the next attempt was due: had that failed, it would stand here."""
    facts = connection_facts(cluster)
    due = facts.next_attempt if facts is not None else None
    return due is not None and led_until - due > NOTED_WITHIN
