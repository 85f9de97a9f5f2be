"""A Workload that no worker takes gives its quota on the manager back."""

from __future__ import annotations

from datetime import datetime

from multikueue.core.dispatchers.dispatcher import Candidates, NotTaken
from multikueue.core.dispatchers.scored import copies
from multikueue.core.dispatchers.scored.profile import Profile, Then
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import reserved_at


def remaining(workload: Json, profile: Profile, now: datetime) -> float | None:
    """Seconds for which a worker may still take it, 0 or less if they are over; None: for ever."""
    reserved = reserved_at(workload)
    if profile.give_up_after is None or reserved is None:
        return None
    return (reserved + profile.give_up_after - now).total_seconds()


def not_taken_in_time(workload: Json, candidates: Candidates, profile: Profile, now: datetime) -> NotTaken | None:
    """What becomes of a Workload that has waited for too long; None: it goes on.

    One that a worker has taken, and is about to be recorded, goes on.
    """
    left = remaining(workload, profile, now)
    if left is None or left > 0 or any(copies.has_quota(worker) for worker in candidates.workers):
        return None
    message = f"No worker took the workload within {profile.give_up_after}"
    return NotTaken(message, deactivate=profile.then is Then.DEACTIVATE)
