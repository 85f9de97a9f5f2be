"""A Workload that no worker takes gives its quota on the manager back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from multikueue.core.dispatchers.dispatcher import Candidates, NotTaken
from multikueue.core.dispatchers.scored import copies
from multikueue.core.dispatchers.scored.facts import job_of
from multikueue.core.dispatchers.scored.profile import Profile, Then
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import reserved_at, retry_count

FIRST_WAIT: Final = timedelta(minutes=1)
LONGEST_WAIT: Final = timedelta(hours=1)


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
    if profile.then is Then.DEACTIVATE:
        return NotTaken(message)
    return NotTaken(message, requeue_wait(retry_count(workload, job_of(candidates).check)))


def requeue_wait(retries: int) -> timedelta:
    """How long Kueue waits before it gives it quota again: without it, it would at once."""
    doubled: int = 2 ** min(max(0, retries), 10)
    return min(FIRST_WAIT * doubled, LONGEST_WAIT)
