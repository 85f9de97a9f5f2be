"""How long is waited, for what, and why so long: the one table. Each row answers one question.

What an operator chooses is in `PlanSettings`; how soon a dispatcher is asked again is the dispatcher's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# May it still run, where nobody sees it?
FIRST_ANSWER: Final = timedelta(seconds=60)
"""How long a worker may take to answer, or to fail to, for the first time after a start: a request's deadline is half
as long."""
LATE_CREATION: Final = timedelta(seconds=10)
"""How long a creation that was not answered may take to show in a watch that works: a request can be held up on its
way, and arrive after its sender has stopped waiting."""
ADOPTION: Final = timedelta(seconds=60)
"""How long a job that an earlier process has created may take to be adopted, where its kind is not registered any more:
it cannot be seen."""
OLDER_THAN_ITS_WORKLOAD: Final = timedelta(seconds=60)
"""By how much a job that shows a run is older than its Workload, if it ran with another one: Kueue makes a Workload
within seconds."""
SUCCESSOR: Final = timedelta(seconds=60)
"""How long nothing changes before a slice that was replaced counts as the last one: its successor may just not be known
yet, or be about to be made again."""
SHORT_LOSS: Final = timedelta(seconds=60)
"""A worker that answered more recently than this counts as if it were in sight where only words and nominations depend
on it: an API server that is restarted is away for less, and thousands of Workloads need not be written twice for it."""

# How long may it take to stop?
STOP: Final = timedelta(seconds=10)
"""How long a worker's Kueue may take to stop a run. It takes two seconds where it acts at all."""
HELD_UP: Final = timedelta(seconds=5)
"""After so long without a change a deletion counts as refused, or held up."""
FINALIZER: Final = timedelta(seconds=10)
"""How long it may take to let go of a Workload copy that is deleted and has no job any more."""
COLLECTION: Final = timedelta(seconds=5)
"""How long a garbage collector may take to delete the pods of what was deleted in the background."""
LEFTOVER_GRACE: Final = timedelta(seconds=60)
"""How much longer than its pods' grace period the deletion of a job may take: twice Kubernetes' own."""
LONGEST_GRACE: Final = timedelta(minutes=5)
"""Quota is kept for pods that end no longer than this and `LEFTOVER_GRACE`, whatever the grace period and settings."""
QUOTA_HELD: Final = timedelta(seconds=60)
"""How long after it got its quota what has given it back is queued again, at least."""
BEHIND_OTHERS: Final = timedelta(seconds=4)
"""For how long it stays out of the queue, so that what waits there is asked first: Kueue (v0.19.2) does that within a
second, and reads whole seconds."""
STUBBORN: Final = timedelta(minutes=5)
"""After what time a job that was to stop, and still changes, is waited for no longer with quota in hand."""

# When is it looked at again, as no event may tell?
PODS_AGAIN: Final = timedelta(seconds=2)
"""Between the first two looks for pods that only a label shows; each time twice as long, as long as nothing changes."""
MOST_PODS_AGAIN: Final = timedelta(seconds=60)
"""Between two such looks at most: each is a list on the worker."""
SUCCESSION: Final = timedelta(seconds=10)
"""After so long we look whether a newer slice has taken over a job: no event of this Workload tells."""
GONE_AGAIN: Final = timedelta(seconds=5)
"""Between two looks at workers that may run a job whose Workload is gone: no Workload is written whose event tells."""
TOLD_AFTER: Final = timedelta(minutes=1)
"""After so long it is told what a job waits for that its Kueue has stopped."""

# Has it ended, and who says so?
RESUMING: Final = timedelta(seconds=5)
"""How long the manager's Kueue may take to start a job again that a person has suspended; it takes milliseconds."""
FINISHING: Final = timedelta(seconds=30)
"""How long the manager's Kueue may take to finish a Workload whose job shows its end. It takes milliseconds, but with
hundreds of ends at once on a busy machine 20 s, and a write of ours for each would keep it longer still."""
VANISHED: Final = timedelta(seconds=5)
"""How long a job is gone from its worker before it counts as lost: one that has ended may go before its end shows."""
STEADY: Final = timedelta(seconds=5)
"""How long nothing changes before what several objects say is of one moment: each of them has a watch of its own."""
SYNC_GRACE: Final = timedelta(seconds=30)
"""How long the manager may refuse a job's last status before what follows is done without it. What it refuses for what
stands there is known to be in vain; a webhook that forbids it may go on to do so."""
END_SHOWN: Final = timedelta(minutes=2)
"""How long a job may take to show its end after its Workload copy has: a watch that a proxy holds open without events
is found out after 90 s of silence and a probe."""
