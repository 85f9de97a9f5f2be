"""The life of a workload, as a table: the first row that applies decides.

Read the table at the end from top to bottom; each row is one function above it, in the same order. A row answers with
effects, never with "and then": what follows is decided when the caches show what the effects have done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import CheckState, has_quota, is_elastic, is_finished, is_replaced
from multikueue.core.workload.assigned import follow_assigned, follow_unchecked
from multikueue.core.workload.check_updates import reject
from multikueue.core.workload.earlier_attempts import note_last_worker
from multikueue.core.workload.effects import Announce, Effect, Plan
from multikueue.core.workload.ending import clean_all, clean_finished, keeps_job_alive
from multikueue.core.workload.evicting import POD_GRACE, stop_evicted, tell_gone, tell_stopped
from multikueue.core.workload.groups import is_split, must_wait, tell_split
from multikueue.core.workload.pending import dispatch, wait_for_group
from multikueue.core.workload.siblings import with_owned_jobs
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.slices import follow_slice, is_placed_slice, leave_to_successor
from multikueue.core.workload.snapshot import PlanSettings, Snapshot
from multikueue.errors import RuleError

SUCCESSION: Final = 10.0
"""Seconds after which we look whether a newer slice has taken over a job. It tells nobody when it has."""


def plan(snapshot: Snapshot, now: datetime, settings: PlanSettings, dispatcher: Dispatcher) -> Plan:
    """Decide what to do about one Workload.

    Args:
        snapshot: everything known about it.
        now: the manager's wall clock.
        settings: the operator's choices.
        dispatcher: chooses the workers it is offered to.
    """
    situation = Situation(with_owned_jobs(snapshot), settings, dispatcher, now)
    row = next(row for row in TABLE if row.applies(situation))
    try:
        decided = row.decide(situation)
    except RuleError as error:
        decided = Plan(tuple(_reject_and_clean(situation, f"The job cannot be copied: {error}")))
    problems, look_again = (*_problems(situation), *decided.problems), _earliest(decided.look_again, situation)
    warnings = tuple(Announce("Warning", problem) for problem in problems)
    effects = (*decided.effects, *warnings)
    return Plan(effects, look_again=look_again, row=row.name, problems=problems)


def _problems(situation: Situation) -> tuple[str, ...]:
    """Which rules of the kind have failed for the objects that are seen, in this decision or earlier, each once."""
    snapshot, adapter = situation.snapshot, situation.snapshot.adapter
    if snapshot.workload is None or adapter is None:
        return ()
    if snapshot.check is None and not _check_was_taken_off(situation):
        return ()  # it is somebody else's
    copies = (copy.object for worker in snapshot.workers for copy in (*worker.jobs, *worker.shared))
    found = (adapter.problems_of(obj) for obj in (*snapshot.jobs.values(), *copies))
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))


def _earliest(look_again: float | None, situation: Situation) -> float | None:
    """When to look again, now that refusals are asked again, too: no event tells when."""
    waits = [worker.refusal.left.total_seconds() for worker in situation.workers if worker.refusal is not None]
    return min(waits if look_again is None else [look_again, *waits], default=None)


def _is_gone(situation: Situation) -> bool:
    workload = situation.snapshot.workload
    return workload is None or bool(workload["metadata"].get("deletionTimestamp"))


def _check_is_unknown(situation: Situation) -> bool:
    return situation.snapshot.check is None and situation.snapshot.check_unknown


def _check_was_taken_off(situation: Situation) -> bool:
    """Whether our check was taken off its queue while a worker has it: there is nobody else who could run it.

    Where only our check holds the job back on the manager, it runs there from now on, and not on the worker.
    """
    adapter = situation.snapshot.adapter
    if situation.snapshot.check is not None or adapter is None or adapter.keeps_check_pending:
        return False
    if situation.finished or not situation.has_quota or is_replaced(situation.workload):
        return False
    copied = any(not worker.is_empty for worker in situation.workers)
    return copied if situation.evicted else situation.assigned_to is not None


def _follow_unchecked(situation: Situation) -> Plan:
    return stop_evicted(situation) if situation.evicted else follow_unchecked(situation)


def _is_not_ours(situation: Situation) -> bool:
    return situation.snapshot.check is None


def _clean_up(situation: Situation) -> Plan:
    kept = any(keeps_job_alive(worker) for worker in situation.workers)
    return Plan(tuple(clean_all(situation.workers)), look_again=SUCCESSION if kept else None)


def _leave(situation: Situation) -> Plan:
    cleaned, snapshot = _clean_up(situation), situation.snapshot
    if snapshot.workload is None or snapshot.check is None or snapshot.adapter is None or situation.assigned_to is None:
        return cleaned
    if is_elastic(snapshot.workload) and any(_is_live(one) for one in snapshot.siblings):
        return cleaned  # another slice has the job
    told = tuple(tell_gone(situation))
    hidden = any(not worker.in_sight for worker in situation.workers)
    waits = not told and (hidden or snapshot.quiet_for < POD_GRACE)
    look_again = cleaned.look_again or (POD_GRACE.total_seconds() if waits else None)
    return Plan((*cleaned.effects, *told), look_again=look_again)


def _is_live(slice_: Json) -> bool:
    return has_quota(slice_) and not is_finished(slice_) and not is_terminating(slice_)


def _let_go(situation: Situation) -> Plan:
    cleaned = _clean_up(situation)
    return attrs.evolve(cleaned, effects=(*cleaned.effects, *note_last_worker(situation), *tell_stopped(situation)))


def _is_rejected(situation: Situation) -> bool:
    return situation.state is CheckState.REJECTED


def _is_replaced(situation: Situation) -> bool:
    return is_replaced(situation.workload)


def _is_finished(situation: Situation) -> bool:
    return situation.finished


def _has_no_adapter(situation: Situation) -> bool:
    return situation.snapshot.adapter is None


def _reject_unknown_kind(situation: Situation) -> Plan:
    owner = situation.owner
    base = "No multikueue adapter found"
    if owner is not None:
        base += f' for owner kind "{owner.gvk}"'
    return Plan(tuple(_reject_and_clean(situation, base)))


def _job_is_unknown(situation: Situation) -> bool:
    return situation.job is None and not situation.adapter.workload_only


def _wait(situation: Situation) -> Plan:
    del situation
    return Plan()


def _is_not_delegated(situation: Situation) -> bool:
    return not _delegation_is_unknown(situation) and _refusal(situation) is not None


def _delegation_is_unknown(situation: Situation) -> bool:
    try:
        _refusal(situation)
    except RuleError:
        return True
    return False


def _reject_undelegated(situation: Situation) -> Plan:
    refusal = _refusal(situation)
    verdict, *cleaning = _reject_and_clean(situation, f"The owner is not managed by Kueue: {refusal}")
    # The verdict is in Kueue's words, which tools know; what a person can do about it is told beside it, once.
    advice = f"{refusal}: create the job again with that value, or enable the webhook that fills it in"
    return Plan((verdict, Announce("Warning", advice), *cleaning))


def _refusal(situation: Situation) -> str | None:
    job = situation.job
    return None if job is None else situation.adapter.not_delegated(job, situation.settings.controller_name)


def _reject_and_clean(situation: Situation, base: str) -> Iterator[Effect]:
    yield reject(situation, base)
    yield from clean_all(situation.workers)


def _has_no_quota(situation: Situation) -> bool:
    return not situation.has_quota


def _is_evicted(situation: Situation) -> bool:
    return situation.evicted


def _is_retrying(situation: Situation) -> bool:
    return situation.state is CheckState.RETRY


def _is_assigned(situation: Situation) -> bool:
    return situation.assigned_to is not None or situation.state is CheckState.READY


def _otherwise(situation: Situation) -> bool:
    del situation
    return True


@attrs.frozen
class Row:
    """One line of the table."""

    name: str
    applies: Callable[[Situation], bool]
    decide: Callable[[Situation], Plan]


TABLE: tuple[Row, ...] = (
    # the Workload is gone, or never was ours: nothing of it may remain on any worker
    Row("gone", _is_gone, _leave),
    Row("check unknown", _check_is_unknown, _wait),  # a check deleted by mistake must not stop running jobs
    Row("check taken off", _check_was_taken_off, _follow_unchecked),  # Kueue takes it off running ones, too
    Row("not ours", _is_not_ours, _clean_up),
    Row("rejected", _is_rejected, _clean_up),
    Row("replaced", _is_replaced, leave_to_successor),
    Row("finished", _is_finished, clean_finished),
    # it can never run through us: say so, once
    Row("unknown kind", _has_no_adapter, _reject_unknown_kind),
    Row("not delegated", _is_not_delegated, _reject_undelegated),
    # it must not run now
    Row("no quota", _has_no_quota, _let_go),
    Row("evicted", _is_evicted, stop_evicted),
    Row("retrying", _is_retrying, _wait),  # Kueue is about to evict it
    # it may run, and we need its job from here on
    Row("job unknown", _job_is_unknown, _wait),
    Row("slice replacement", is_placed_slice, follow_slice),
    Row("assigned", _is_assigned, follow_assigned),
    # no worker has it, and the manager's controllers may run it, too: copies stay until that is clear
    Row("delegation unknown", _delegation_is_unknown, _wait),
    Row("split group", is_split, tell_split),
    Row("waiting group", must_wait, wait_for_group),
    Row("pending", _otherwise, dispatch),
)
