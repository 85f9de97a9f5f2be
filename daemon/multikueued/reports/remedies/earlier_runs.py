"""What a job waits for that waits for an earlier run of it, by what its Workload says for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import changed_at, timestamp
from multikueue.core.model.earlier_run_facts import WAITS, EarlierRun
from multikueue.core.model.grace import DEFAULT_GRACE, MARGIN
from multikueue.core.model.names import Json
from multikueued.reports.ending_copies import MOST_NAMED, LatePod, held_by
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.seen import Seen

EARLIER_RUN: Final = "earlier-run"
"""The id while it has time to end."""
DOES_NOT_END: Final = "copy-does-not-end"
"""The id after that."""


def earlier_run_findings(seen: Seen) -> Iterator[Finding]:
    """What it waits for, since when; and once it takes too long, what holds it and the way out."""
    message = seen.chain.message
    for run in seen.chain.earlier_runs:
        words = {**seen.line.words, "worker": run.worker, "uid": run.uid, "run": str(run)}
        if not _takes_too_long(run, seen.workload, seen.now):
            yield finding(EARLIER_RUN, run.worker, message, ends=_ends(run), **words)
            continue
        pods = _late_pods(run, seen.objects)
        yield finding(DOES_NOT_END, run.worker, message, instead=_way_out(run, pods), hangs=_hangs(run, pods), **words)


def _late_pods(run: EarlierRun, objects: ManagerObjects) -> tuple[LatePod, ...]:
    """Those that the daemon has seen of it, with their nodes; empty: none, or what it has seen may not be read."""
    published = objects.published.get(run.worker)
    copies = published.facts.overdue or () if published is not None else ()
    return next((copy.pods for copy in copies if copy.uid == run.uid), ())


def _takes_too_long(run: EarlierRun, workload: Json, now: datetime) -> bool:
    """Of one that nobody has deleted: whether it is told for longer than its deletion and its pods take as a rule."""
    since = changed_at(workload, WAITS)
    if run.deleted is not None or since is None:
        return run.is_overdue(now)
    return (now - since - MARGIN).total_seconds() >= DEFAULT_GRACE


def _ends(run: EarlierRun) -> str:
    if run.deleted is None:
        return "it may run, and is being removed"
    until = f", its pods have until {timestamp(run.due)} to end" if run.due is not None else ""
    return f"it was deleted at {timestamp(run.deleted)}{until}"


def _hangs(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    if run.deleted is None or run.due is None:
        return "it may run, and could not be deleted"
    return f"it was deleted at {timestamp(run.deleted)} and should have ended at {timestamp(run.due)}{_held(run, pods)}"


def _held(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    late = "".join(f"; {pod}" for pod in pods[:MOST_NAMED])
    if not run.finalizers:
        return late or ", and a pod of it has not"
    return f", {held_by(run.finalizers)}{late}"


def _way_out(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    """The key of the row with the way out; empty: nobody knows what holds it."""
    if run.deleted is None:
        return f"{DOES_NOT_END}@refused"
    if run.finalizers:
        return f"{DOES_NOT_END}@held"
    return f"{DOES_NOT_END}@node" if any(pod.node for pod in pods) else ""
