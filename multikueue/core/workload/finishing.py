"""The end of a job: its status comes home first, then its Workload is finished, then the copies go.

The manager's Kueue finishes a Workload by itself once it sees that the job has ended. We do it only where that does
not happen: writing at the same moment would make one of the two writes fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.workload.check_updates import finish
from multikueue.core.workload.cleaning import clean_all
from multikueue.core.workload.effects import Effect, PatchJobStatus, Plan
from multikueue.core.workload.situation import Situation

KUEUE_GRACE: Final = timedelta(seconds=5)
"""How long the manager's Kueue may take to finish a Workload whose job has ended; it takes milliseconds."""


def bring_end_home(situation: Situation, copy: Json, jobs: Sequence[Json]) -> Plan:
    """The assigned worker's Workload copy is Finished: finish the manager's.

    Args:
        situation: the Workload.
        copy: the Finished copy.
        jobs: the job copies. One that is gone is not made again: it has run.
    """
    quiet = situation.snapshot.quiet_for >= KUEUE_GRACE
    ends = bool(jobs) and situation.adapter.ends
    if ends and not situation.have_ended(jobs) and not quiet:
        # The job's own watch is a little behind the Workload's.
        return Plan(look_again=KUEUE_GRACE.total_seconds())
    patches = tuple(patch for job in jobs for patch in sync_status(situation, job))
    if ends and (patches or not quiet):
        return Plan(patches, look_again=KUEUE_GRACE.total_seconds())
    return Plan((*patches, finish_as(situation, copy)))


def finish_as(situation: Situation, copy: Json) -> Effect:
    """Finish the manager's Workload in the words of a Finished copy."""
    ended = condition(copy, "Finished") or {}
    return finish(situation, str(ended.get("reason", "")), str(ended.get("message", "")))


def clean_finished(situation: Situation) -> Plan:
    """The manager's Workload is Finished: remove the copies, but not before the job's last status is home."""
    name = situation.assigned_to
    worker = situation.snapshot.worker(name) if name else None
    if worker is None or not worker.reachable or situation.snapshot.adapter is None:
        return Plan(tuple(clean_all(situation.workers)))
    ended = [job for job in situation.jobs_on(worker) if situation.adapter.outcome(job) is not None]
    patches = tuple(patch for job in ended for patch in sync_status(situation, job))
    keep = name if patches or not worker.serves_kind else None
    look_again = KUEUE_GRACE.total_seconds() if patches else None  # they may change nothing, and then nobody tells us
    return Plan((*patches, *clean_all(situation.workers, keep=keep)), look_again=look_again)


def sync_status(situation: Situation, remote: Json) -> Iterator[Effect]:
    """Copy the job's status home, if the kind's rule wants it and it differs."""
    local = situation.job_of(remote)
    if local is not None:
        yield from patch_status(situation, local, situation.adapter.status_patch(local, remote, situation.now))


def patch_status(situation: Situation, local: Json, patch: Json | None) -> Iterator[Effect]:
    """Write the status of the manager's job, wherever its kind has it; but not what was written in vain."""
    adapter, key = situation.adapter, ObjectKey.of(local)
    if patch is not None and patch != situation.snapshot.in_vain.get(key.name):
        yield PatchJobStatus(adapter.resource, key, patch, subresource=adapter.status_subresource)
