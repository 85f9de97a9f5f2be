"""Whether a decision is believed at once, later, or not at all.

Removing clusters stops new jobs there and may move running ones, so a decision that takes most of them away has to
last. Adding clusters, or replacing some by others, harms nobody.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.placement.decisions import Decision


@attrs.frozen
class Doubt:
    """A whole decision that is not believed yet."""

    names: frozenset[str]
    since: datetime


@attrs.frozen
class Belief:
    """What to go by."""

    names: frozenset[str] | None
    """The clusters that are selected; None: nothing has ever been believed."""
    doubt: Doubt | None = None
    why: str = ""
    """Why this is not what the decision says now; empty: it is."""
    look_again: float | None = None
    """Seconds until the doubt is over."""


def believe(
    decision: Decision, before: frozenset[str] | None, doubt: Doubt | None, now: datetime, grace: timedelta
) -> Belief:
    """What to go by now.

    Args:
        decision: as it is.
        before: what was gone by until now; None: nothing.
        doubt: the decision that was doubted the last time.
        now: the manager's wall clock.
        grace: how long a doubtful decision must hold.
    """
    if decision.problem:
        return Belief(before, None, decision.problem)
    if not is_doubtful(decision.names, before):
        return Belief(decision.names)
    if doubt is None or doubt.names != decision.names or doubt.since > now:
        doubt = Doubt(decision.names, now)
    left = (doubt.since + grace - now).total_seconds()
    if left <= 0:
        return Belief(decision.names, doubt)
    count = f"names {len(decision.names)} of {len(before or ())} clusters" if decision.names else "is empty"
    why = (
        f"the decision {count} since {timestamp(doubt.since)}, and is followed if it lasts {grace.total_seconds():g} s"
    )
    return Belief(before, doubt, why, left)


def is_doubtful(names: frozenset[str], before: frozenset[str] | None) -> bool:
    """Whether a decision takes away everything, or more than half of what there was."""
    if before is None:
        return not names
    return bool(before) and (not names or 2 * len(names) < len(before))
