"""The life of a workload, as a table: the first row that applies decides. `guarded_plan` is the way in.

Read the table at the end from top to bottom. A row decides on effects only. What comes after them is decided anew, when
the caches show what they have done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.check_message import GROUP
from multikueue.core.model.labels import HOLDING_GATE
from multikueue.core.model.names import ClusterName
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.workloads import CheckState, Rejection
from multikueue.core.workload import ending, evicting, following, groups, leftovers, removal, slices
from multikueue.core.workload.check_updates import reject
from multikueue.core.workload.dependencies import with_dependencies
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, Plan
from multikueue.core.workload.following import remove_others
from multikueue.core.workload.leftovers import remove_stale
from multikueue.core.workload.pending import dispatch
from multikueue.core.workload.reasons import Heading, Telling, tell_reasons, tell_recorded, with_words
from multikueue.core.workload.seen.attribution import situation_of
from multikueue.core.workload.seen.places import is_own_copy, with_places_written
from multikueue.core.workload.seen.runs import possible_runs
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import PlanSettings, Snapshot, hidden
from multikueue.core.workload.unrecorded import find_recorded
from multikueue.core.workload.ways import Way, given, named, otherwise, wait
from multikueue.errors import RuleError


def guarded_plan(snapshot: Snapshot, now: datetime, settings: PlanSettings, dispatcher: Dispatcher) -> Plan:
    """Decide as `plan` does. If that raises, decide without the workers that make it raise, alone or together.

    Objects of workers are checked as they are read. Job kinds and dispatchers of other packages are called through
    guards: `adapters.safe` and `core.dispatchers.guarded`. So an exception here is a defect of ours, and costs the
    Workload one worker, not all of them.

    Raises:
        Exception: `plan` raises even without any copies.
    """
    try:
        return plan(snapshot, now, settings, dispatcher)
    except Exception:  # of any code: adapters may come from elsewhere
        left_out: dict[ClusterName, Exception] = {}
        usable = snapshot.with_workers(lambda worker: hidden(worker, _UNUSABLE) if worker.copies else worker)
        decided = plan(usable, now, settings, dispatcher)
        for tried in (worker for worker in snapshot.workers if worker.copies):
            workers = tuple(tried if worker.name == tried.name else worker for worker in usable.workers)
            more = attrs.evolve(usable, workers=workers)
            try:
                decided, usable = plan(more, now, settings, dispatcher), more
            except Exception as error:
                left_out[tried.name] = error
        return attrs.evolve(decided, left_out=left_out)


_UNUSABLE: Final = "what it shows of this Workload cannot be used, see the log of the controller"


def plan(snapshot: Snapshot, now: datetime, settings: PlanSettings, dispatcher: Dispatcher) -> Plan:
    """Decide what to do about one Workload.

    Args:
        snapshot: everything known about it.
        now: the manager's wall clock.
        settings: the operator's choices.
        dispatcher: chooses the workers it is offered to.
    """
    situation = situation_of(snapshot, now, settings, dispatcher)
    return _completed(situation, *_decide(situation))


def _completed(situation: Situation, row: Row, decided: Plan) -> Plan:
    """The plan, with what every plan gets, whatever has been decided: first effects, then words.

    The order matters. Where the Workload must name a namespace first, the plan loses its creations, so it makes none of
    their dependencies either. A plan that writes the manager's Workload leaves the check's message to the next one.
    """
    decided = following.with_last_status(situation, decided)
    decided = with_places_written(situation, decided)
    decided = with_dependencies(situation, decided)
    decided = decided.within(*_look_again_in(situation))
    if row.waits_for is not None or row.tells is not None:
        decided = with_words(situation, row.waits_for, row.tells, decided)
    if _is_ours(situation):
        telling = (*decided.telling, *_show_waiting(situation, decided))
        problems = (*_problems(situation), *decided.problems)
        warned = (AnnounceWorkload("Warning", text, on_job=True) for text in (*_warnings(situation), *problems))
        decided = attrs.evolve(decided, telling=telling, problems=problems).also(*warned)
    return named(row.name, decided)


def _show_waiting(situation: Situation, decided: Plan) -> Iterator[Effect]:
    """The status that the kind's own controller would write on jobs that wait: it leaves delegated jobs alone."""
    waits = situation.snapshot.check is not None and _is_unplaced(situation)
    if waits and situation.not_delegated is None and all(effect.cluster != MANAGER for effect in decided.effects):
        for job in situation.snapshot.jobs.values():
            yield from ending.patch_status(situation, job, situation.adapter.waiting_patch(job, situation.now))


def _decide(situation: Situation) -> tuple[Row, Plan]:
    """The first row that applies, and its plan, with what the row removes or shows beside that."""
    for row in TABLE:
        try:
            if row.applies(situation):
                return row, row.decide(situation).also(*row.also(situation))
        except RuleError as error:
            return row, _rejected(situation, Rejection.NOT_COPIED, f"The job cannot be copied: {error}")
    raise AssertionError("the last row always applies")


def _warnings(situation: Situation) -> Iterator[str]:
    """What its user is warned of: objects that cannot be read, which a Pending check says, too; copies that a
    controller on their worker has adopted, by their labels as a rule; and jobs that should have ended by now.
    """
    if situation.snapshot.unreadable_job:
        yield situation.snapshot.unreadable_job
    for worker in situation.workers:
        if worker.unreadable:
            yield f'Worker cluster "{worker.name}": {worker.unreadable}'
        for copy in worker.jobs:
            if copy.adopter:
                name = f'{copy.resource.gvk.kind} "{name_of(copy.object)}"'
                yield (
                    f'{copy.adopter} on worker cluster "{worker.name}" has adopted the copy {name} and may delete it: '
                    "let its selector not match the labels of what comes from other clusters"
                )
    yield from (f"Waiting for {job}" for job in leftovers.overdue(situation))


def _is_ours(situation: Situation) -> bool:
    """Whether there is a Workload, and it is dispatched by us: only then is its user told of its copies."""
    snapshot = situation.snapshot
    if snapshot.workload is None or snapshot.adapter is None or is_own_copy(situation):
        return False
    return snapshot.check is not None or _check_was_taken_off(situation)


def _problems(situation: Situation) -> tuple[str, ...]:
    """Which rules of the kind have failed for its jobs and their copies, in this decision or earlier: each once."""
    snapshot, adapter = situation.snapshot, situation.adapter
    copies = (copy.object for worker in snapshot.workers for copy in worker.all_jobs)
    problems = (adapter.problems_of(obj) for obj in (*snapshot.jobs.values(), *copies))
    return tuple(dict.fromkeys(itertools.chain.from_iterable(problems)))


def _look_again_in(situation: Situation) -> Iterator[timedelta]:
    """In what times no event tells what is next: a refusal is over, a removal goes on, a deleted job is overdue."""
    yield from (worker.refusal.left for worker in situation.workers if worker.refusal is not None)
    yield from removal.steps_in(situation)
    yield from leftovers.ends_in(situation)


def _check_was_taken_off(situation: Situation) -> bool:
    """Whether our check was taken off its queue while a worker has it: there is nobody else who could run it.

    Where only our check holds the job back on the manager, it runs there from now on, and not on the worker.
    """
    if situation.snapshot.check is not None or not situation.may_be_held_here:
        return False
    if situation.facts.is_finished or not situation.facts.has_quota:
        return False
    return evicting.is_being_stopped(situation) if situation.facts.is_evicted else situation.recorded_on is not None


def _is_held_unchecked(situation: Situation) -> bool:
    """Whether our check was taken off before a worker had it, so that Kueue starts a job here that our gate holds."""
    starts_here = situation.facts.is_admitted and not situation.facts.is_finished
    return situation.snapshot.check is None and situation.held_here and starts_here


def _tell_held(situation: Situation) -> Plan:
    advice = "its queue does not lead to worker clusters any more: delete it and create it again to have it run here"
    warning = AnnounceWorkload("Warning", f"The scheduling gate {HOLDING_GATE} holds it, and {advice}")
    return ending.clean_up(situation).also(warning)


def _may_be_rejected(situation: Situation) -> bool:
    """Whether the check may become Rejected now: the Workload is active and not evicted, and nothing of it may run.

    While Kueue evicts a Workload it does not follow a Rejected check, nor does it reset that afterwards: the Workload
    would never get quota again. What runs is never taken.
    """
    facts, has_worker = situation.facts, situation.recorded_on is not None or situation.state is CheckState.READY
    if not facts.is_active or facts.is_evicted or has_worker:
        return False
    if facts.has_quota:
        return True  # at most it is offered
    return not possible_runs(situation) and all(worker.is_empty for worker in situation.workers)


def _why_never(situation: Situation) -> tuple[Rejection, str, str] | None:
    """The verdict on what can never run through us, the reason, and what its user can do; None: there is none now.

    A reason is in Kueue's words where it has any, which tools know; what a person can do is told beside it, once.
    """
    if not _may_be_rejected(situation):
        return None
    if situation.snapshot.adapter is None or situation.traits.draining:  # no new jobs of the kind are dispatched
        owner, setting = situation.facts.owner, situation.snapshot.missing_setting
        reason = "No multikueue adapter found" + (f' for owner kind "{owner.gvk}"' if owner is not None else "")
        advice = f"Jobs of this kind are not dispatched, and this one is off until multikueue retry: {setting}"
        return Rejection.KIND_NOT_ENABLED, reason, advice if setting else ""
    if isinstance(undelegated := situation.not_delegated, str):  # the manager's own controllers would run it
        advice = f"{undelegated}: create the job again with that value, or enable the webhook that fills it in"
        return Rejection.NOT_DELEGATED, f"The owner is not managed by Kueue: {undelegated}", advice
    if (job := situation.job) is None:
        return None
    if acted_on := situation.adapter.acted_on(job):
        return Rejection.ACTED_ON_HERE, acted_on, acted_on
    refused = situation.adapter.refused(job)
    return (Rejection.NOT_COPIED, f"The job cannot be copied: {refused}", refused) if refused else None


def _rejected(situation: Situation, verdict: Rejection, base: str, advice: str = "") -> Plan:
    """Reject the check, and remove all copies."""
    advised = [AnnounceWorkload("Warning", advice, on_job=True)] if advice else []
    return Plan((reject(situation, verdict, base), *advised, *removal.remove_all(situation)))


def _is_unplaced(situation: Situation) -> bool:
    """Whether no worker is recorded, and none is to be found; an eviction that is under way has a row of its own."""
    has_none = situation.recorded_on is None and situation.state is not CheckState.READY
    return has_none and not situation.facts.gives_quota_back


def _tell_unknown(situation: Situation) -> Plan:
    """Warn, and touch nothing."""
    return Plan([AnnounceWorkload("Warning", situation.snapshot.unreadable)])


def _for_job(situation: Situation) -> str:
    return ": ".join(filter(None, ("Waiting for its job to be seen", situation.snapshot.unreadable_job)))


def _for_delegation(situation: Situation) -> str:
    return f"It cannot be told who runs the job: {situation.not_delegated}"


def _for_worker(situation: Situation) -> str:
    """The head of the message as it is; without one, that its worker cannot be seen."""
    worker = situation.recorded_or_none
    why = worker.unreadable if worker is not None else ""
    waits = f'Waiting for worker cluster "{situation.recorded_on}"'
    return situation.head or ": ".join(filter(None, (waits, why)))


def _is_of_unknown_kind(situation: Situation) -> bool:
    return situation.snapshot.adapter is None


@attrs.frozen
class Row(Way):
    """One line of the table. It may have a table of its own: see `ways`."""

    waits_for: Heading | None = None
    """Makes the head of the check's message; None: it stays as it is."""
    tells: Telling | None = None
    """Makes what stands behind the head; None: it stays as it is, or goes with another head."""
    also: Callable[[Situation], Iterable[Effect]] = lambda _: ()
    """What is removed or shown beside the decision."""


TABLE: tuple[Row, ...] = (
    # what cannot be read decides nothing
    Row("unreadable", lambda seen: bool(seen.snapshot.unreadable), _tell_unknown),
    Row("copy", is_own_copy, wait),  # of another Workload, which is planned
    # the Workload is gone, or never was ours: nothing of it may remain on any worker
    Row("gone", lambda seen: seen.snapshot.workload is None or is_terminating(seen.workload), evicting.clean_up_gone),
    # a check deleted by mistake must not stop running jobs
    Row("check unknown", lambda seen: seen.snapshot.check is None and seen.snapshot.check_unknown, wait),
    # Kueue takes it off running ones, too
    Row("evicted unchecked", lambda seen: _check_was_taken_off(seen) and seen.facts.is_evicted, evicting.stop_evicted),
    Row("check taken off", _check_was_taken_off, following.follow_unchecked, also=remove_others),
    Row("held without check", _is_held_unchecked, _tell_held),
    Row("not ours", lambda seen: seen.snapshot.check is None, ending.clean_up),
    Row("pods deleted", evicting.are_pods_deleted, evicting.end_deleted_by_pods),
    Row(
        "rejected", lambda seen: seen.state is CheckState.REJECTED and not seen.facts.gives_quota_back, ending.clean_up
    ),
    Row("replaced", lambda seen: seen.facts.is_replaced, slices.leave_to_successor),
    Row("expired", *given(ending.expiring_job, ending.delete_expired)),
    Row("finished", lambda seen: seen.facts.is_finished, ending.clean_finished, also=ending.show_settled),
    Row("has ended", *given(lambda seen: ending.earlier_end(seen) if _is_unplaced(seen) else None, ending.show_end)),
    # it can never run through us: say so, once
    Row("never runs", *given(_why_never, lambda seen, verdict: named(verdict[0], _rejected(seen, *verdict)))),
    Row("settled", *given(evicting.settled_end, evicting.end_settled), leftovers.ending_run),
    # it must not run now
    Row("retry asked", *given(evicting.retry_asked, evicting.activate)),
    Row("no quota", lambda seen: not seen.facts.has_quota, evicting.clean_up_unadmitted),
    Row("evicted", lambda seen: seen.facts.is_evicted, evicting.stop_evicted),
    Row("retrying", lambda seen: seen.state is CheckState.RETRY, wait),  # Kueue is about to evict it
    # it may run
    Row("unrecorded", lambda seen: seen.recorded_on is None and seen.state is CheckState.READY, find_recorded),
    Row("unregistered kind", _is_of_unknown_kind, following.follow_copy, tells=tell_recorded, also=remove_others),
    # we need its job from here on
    Row("job unknown", lambda seen: seen.job is None and not seen.traits.workload_only, wait, _for_job),
    Row("stopped here", *given(evicting.job_stopped_here, evicting.stop_here)),  # by its Kueue, without an eviction
    Row("slice replacement", slices.is_recorded_slice, slices.follow_slice, _for_worker, tell_recorded, remove_others),
    Row("recorded", lambda seen: seen.recorded_on, following.follow_job, _for_worker, tell_recorded, remove_others),
    # no worker has it, and the manager's controllers may run it, too: copies stay until that is clear
    Row("delegation unknown", lambda seen: isinstance(seen.not_delegated, RuleError), wait, _for_delegation),
    Row("earlier run", *given(leftovers.earlier_runs, leftovers.wait_for), also=remove_stale),
    Row("earlier pods", *given(leftovers.earlier_pods, leftovers.look_for_pods), also=remove_stale),
    Row("split group", lambda seen: len(seen.group_workers) > 1, groups.tell_split, lambda _: GROUP),
    Row("waiting group", groups.must_wait, wait, lambda _: GROUP, also=remove_stale),
    Row("pending", otherwise, dispatch, tells=tell_reasons, also=remove_stale),  # it says itself what it waits for
)
