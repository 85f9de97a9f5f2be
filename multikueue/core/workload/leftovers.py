"""What is seen of earlier attempts on workers in sight: while a job copy of one is there, nobody gets the job.

Its pods may still end, or a worker is unable to remove it: a webhook refuses, a finalizer holds, a node is dead. It is
waited for, and after a while its Workload gives its quota back, as waiting holds that. A person may give it up, by UID
on the Workload, or on the MultiKueueCluster for all that was created there before a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import changed_at, deleted_at, parse_timestamp
from multikueue.core.model.earlier_run_facts import EarlierRun
from multikueue.core.model.giving_up import given_up, holding_finalizers
from multikueue.core.model.grace import ends_by
from multikueue.core.model.kinds import POD, WORKLOAD
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION, MAX_LABEL_VALUE
from multikueue.core.model.marks import Whose
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, is_terminating, name_of, uid
from multikueue.core.model.outside_text import plain
from multikueue.core.model.placements import last_place
from multikueue.core.workload.check_updates import end_waits, give_back, note_last_worker, say_waits
from multikueue.core.workload.effects import AnnounceWorkload, Effect, LookForPods, Plan
from multikueue.core.workload.removal import remove_attempt
from multikueue.core.workload.seen import graces, runs
from multikueue.core.workload.seen.runs import earlier_jobs, is_given_up, may_be_ours, may_have_pods, stuck
from multikueue.core.workload.seen.situation import Situation, certain
from multikueue.core.workload.seen.snapshot import JobCopy, Worker
from multikueue.core.workload.ways import Way, given

MOST_FINALIZERS: Final = 8
"""That are named of one object: whoever may write to a worker can set any number."""
_UNSEEN: Final = (
    "is not stopped, and its jobs cannot be seen: start Kueue there, have the kind served and listed, "
    f"or give it up by {GIVE_UP_ANNOTATION}"
)
_FOREIGN: Final = "is not of our making, and must be gone first"


@attrs.frozen
class Leftover:
    """An object on a worker that must be gone before the job is run anywhere: it may run the job already."""

    worker: Worker
    kind: str
    object: Json
    why: str

    def __str__(self) -> str:
        named = plain(f'{self.kind} "{name_of(self.object)}" (UID {uid(self.object)})')
        return f'worker cluster "{self.worker.name}": {named} {self.why}'

    def for_programs(self, grace: timedelta) -> EarlierRun:
        """The same as a fact; `grace`: how long its pods may take to end."""
        copy, deleted, held = self.object, deleted_at(self.object), tuple(_holding_finalizers(self.object))
        due = None if deleted is None else ends_by(deleted, grace)
        return EarlierRun(self.worker.name, self.kind, name_of(copy), uid(copy), deleted, due, held)


def earlier_runs(situation: Situation) -> tuple[Leftover, ...]:
    """The job copies of earlier attempts that are seen on any worker, terminating or not, but for those that a person
    has given up. While there is one, no new run begins.
    """
    return _not_given_up(situation, (run for worker in situation.workers for run in _earlier_on(situation, worker)))


def earlier_pods(situation: Situation) -> tuple[Worker, tuple[Leftover, ...]] | None:
    """The worker that had the Workload last, with the pods of the earlier attempt that are known there; None: there are
    none. Without pods: nobody has looked for them yet, and there may be some.

    Their job copy is gone, so only their label shows them. It cannot name a job whose name is too long for a label.
    """
    owner, why = situation.facts.owner, "of an earlier attempt has not ended"
    worker = situation.snapshot.worker(last_place(situation.workload) or situation.last_worker or "")
    is_named = bool(situation.traits.pods_label) and owner is not None and len(owner.name) <= MAX_LABEL_VALUE
    if not is_named or worker is None or not worker.in_sight:
        return None
    pods = _not_given_up(situation, (Leftover(worker, POD.gvk.kind, pod, why) for pod in worker.pods or ()))
    return (worker, pods) if pods or worker.pods is None else None


def look_for_pods(situation: Situation, earlier: tuple[Worker, tuple[Leftover, ...]]) -> Plan:
    """Look for pods of the earlier attempt until there are none: this attempt is offered to nobody before that."""
    (worker, pods), owner = earlier, certain(situation.facts.owner, "their label names it")
    namespace, selector = situation.snapshot.namespace_for(worker), f"{situation.traits.pods_label}={owner.name}"
    look = LookForPods(worker.name, namespace, selector, situation.facts.attempt)
    again = min(max(graces.PODS_AGAIN, situation.snapshot.quiet_for), graces.MOST_PODS_AGAIN)
    return wait_for(situation, pods, look).within(again)


def in_the_way_of(situation: Situation, chosen: Worker) -> tuple[Leftover, ...]:
    """What other workers show that keeps the chosen one from being recorded, but for what a person has given up.

    What the chosen worker shows does not: a job there has the same name, so the two exclude each other.
    """
    others = (worker for worker in situation.workers if worker.name != chosen.name)
    return _not_given_up(situation, (leftover for worker in others for leftover in _others_on(situation, worker)))


def _not_given_up(situation: Situation, leftovers: Iterable[Leftover]) -> tuple[Leftover, ...]:
    return tuple(left for left in leftovers if not is_given_up(situation, left.worker, left.object))


def _earlier_on(situation: Situation, worker: Worker) -> Iterator[Leftover]:
    if worker.reachable and situation.facts.leaves == worker.name:  # a move: all of it goes first
        earlier = (job for job in worker.jobs if not situation.whose(worker, job.object).runs_for_it)
        yield from (_leftover(worker, job, "is not gone yet") for job in earlier)
        if (copy := worker.copy) is not None and situation.this_copy(worker) is None:
            yield Leftover(worker, WORKLOAD.gvk.kind, copy, "is not gone yet")
        return
    if worker.in_sight:
        yield from (of_earlier_attempt(worker, job) for job in earlier_jobs(situation, worker))


def overdue(situation: Situation) -> Iterator[Leftover]:
    """The job copies that were deleted longer ago than their pods' grace period and `LEFTOVER_GRACE`."""
    for worker in situation.workers:
        for job in worker.all_jobs if worker.in_sight else ():
            if overdue_in(situation, job.object) == timedelta(0) and not is_given_up(situation, worker, job.object):
                ended = _held_by(job.object) or "look at the node of its pods"
                way_out = f"if it does not run, {GIVE_UP_ANNOTATION}={worker.name}/{uid(job.object)} gives it up"
                yield _leftover(worker, job, f"should have ended by now: {ended}; {way_out}")


def ending_run(situation: Situation) -> str:
    """The head of the check's message for a job that is to run nowhere: what of it may still run; else as it is."""
    listed = ((worker, job) for worker in situation.workers if worker.in_sight for job in worker.all_jobs)
    shown = (_leftover(worker, job, _state(job.object)) for worker, job in listed)
    hidden = (f'worker cluster "{run.worker}": {run.why}' for run in runs.possible_runs(situation) if run.why)
    return next((f"Waiting for {run}" for run in (*shown, *hidden)), situation.head)


def ends_in(situation: Situation) -> Iterator[timedelta]:
    """In what time job copies that were deleted should have ended."""
    if situation.snapshot.workload is not None:
        copies = (job.object for worker in situation.workers for job in worker.all_jobs)
        yield from filter(None, (overdue_in(situation, job) for job in copies))


def overdue_in(situation: Situation, job: Json) -> timedelta | None:
    """How long until a job copy that was deleted should have ended; None: it was not, or has ended."""
    deleted = deleted_at(job)
    if deleted is None or not may_have_pods(situation, job):
        return None
    return max(timedelta(0), situation.facts.pod_grace + graces.LEFTOVER_GRACE - (situation.now - deleted))


def _state(job: Json) -> str:
    return ", ".join(filter(None, ("is still ending", _held_by(job)))) if is_terminating(job) else "may still run"


def _holding_finalizers(job: Json) -> list[str]:
    return [plain(name) for name in holding_finalizers(job)[:MOST_FINALIZERS]]


def _held_by(job: Json) -> str:
    """Which finalizers hold it; empty: none but Kubernetes' own."""
    names = _holding_finalizers(job)
    return f"held by {'the finalizer' if len(names) == 1 else 'finalizers'} {', '.join(names)}" if names else ""


def _others_on(situation: Situation, worker: Worker) -> Iterator[Leftover]:
    yield from unseen(situation, worker)
    jobs = [job for job in worker.all_jobs if worker.in_sight and may_be_ours(situation, worker, job.object)]
    unproven = [job for job in jobs if situation.whose(worker, job.object) is Whose.UNPROVEN]
    yield from (_leftover(worker, job, _FOREIGN) for job in unproven)
    # Somebody has erased the record of this attempt's own, on a worker that gets nothing more.
    own = (job for job in jobs if situation.is_this(worker, job.object) and may_have_pods(situation, job.object))
    yield from (_leftover(worker, job, _state(job.object)) for job in own)
    # Kueue's own controller creates the job before it records the worker, and may have been stopped in between.
    copy = worker.copy if worker.in_sight and worker.facts.has_had_owner and not unproven else None
    if copy is not None and situation.whose(worker, copy) is Whose.UNPROVEN and may_be_ours(situation, worker, copy):
        yield Leftover(worker, WORKLOAD.gvk.kind, copy, _FOREIGN)


def unseen(situation: Situation, worker: Worker) -> Iterator[Leftover]:
    """The Workload copy that a worker's Kueue has not stopped, where jobs cannot be seen for long: see `stuck`."""
    if (copy := stuck(situation, worker)) is not None:
        yield Leftover(worker, WORKLOAD.gvk.kind, copy, _UNSEEN)


def ending_jobs(worker: Worker) -> tuple[Leftover, ...]:
    """The jobs on a worker that are being deleted, of whichever attempt: their names are free once they are gone."""
    return tuple(_leftover(worker, job, _state(job.object)) for job in worker.all_jobs if is_terminating(job.object))


def of_earlier_attempt(worker: Worker, job: JobCopy) -> Leftover:
    """The job copy of an earlier attempt, as a leftover."""
    return _leftover(worker, job, "of an earlier attempt " + _state(job.object))


def _leftover(worker: Worker, job: JobCopy, why: str) -> Leftover:
    return Leftover(worker, job.resource.gvk.kind, job.object, why)


def tell_held_up(situation: Situation, leftovers: tuple[Leftover, ...]) -> Iterator[Effect]:
    """Warn of what keeps an admitted Workload from being recorded. Of what is being deleted, `overdue` warns later."""
    for leftover in leftovers:
        if not is_terminating(leftover.object):
            yield AnnounceWorkload("Warning", f"Waiting for {leftover}")
    for why in _whys_not_given_up(situation, leftovers) if leftovers else ():
        yield AnnounceWorkload("Warning", f"Waiting for {leftovers[0]}: {why}")


def _whys_not_given_up(situation: Situation, leftovers: tuple[Leftover, ...]) -> Iterator[str]:
    """What is wrong with an annotation that was to give up something of this, and gives up nothing."""
    if noted := annotations_of(situation.workload).get(GIVE_UP_ANNOTATION):
        named = given_up(situation.workload)
        shown = ((worker.name, map(uid, (*worker.copies, *worker.slices))) for worker in situation.workers)
        if not any(named.get(name, set()).intersection(uids) for name, uids in shown):
            yield f'the annotation {GIVE_UP_ANNOTATION} gives up nothing: no worker has "{plain(noted)}" as WORKER/UID'
    for worker in {leftover.worker.name: leftover.worker for leftover in leftovers}.values():
        before = worker.annotations.get(GIVE_UP_BEFORE_ANNOTATION)
        if before and parse_timestamp(before) is None:
            wanted = "a time like 2026-01-31T12:00:00Z"
            yield f'{GIVE_UP_BEFORE_ANNOTATION} of worker cluster "{worker.name}" gives up nothing: it is not {wanted}'


def quota_kept_at_most(situation: Situation) -> timedelta:
    """How long quota is held for a run that ends, whatever its grace period, and though its node is dead."""
    grace = min(situation.facts.pod_grace, situation.settings.pod_grace_limit, graces.LONGEST_GRACE)
    return grace + graces.LEFTOVER_GRACE


def quota_kept_for(situation: Situation) -> timedelta:
    """For how much longer an eviction holds quota while its run ends."""
    since = changed_at(situation.workload, "Evicted") or situation.now
    return max(timedelta(0), quota_kept_at_most(situation) - (situation.now - since))


def waited_for(situation: Situation, leftovers: tuple[Leftover, ...]) -> timedelta | None:
    """For how much longer these leftovers are waited for while quota is held: zero is no longer, None is without any.

    Until nothing has changed for that time, or both the deletion and the quota are that old. What was asked to stop,
    and is not deleted, has `STUBBORN`. Another look does not begin it anew.
    """
    if not leftovers:
        return None
    limit, first = quota_kept_at_most(situation), leftovers[0]
    left, since, patience = limit - situation.snapshot.quiet_for, deleted_at(first.object), limit
    if since is None and not first.worker.facts.waits_for_quota:
        since, patience = first.worker.facts.stops_since, max(graces.STUBBORN, limit)
    began = situation.facts.reserved_at
    if since is not None and began is not None:
        left = min(left, max(since, began) + patience - situation.now)
    return max(timedelta(0), left)


def give_quota_back(situation: Situation, leftovers: tuple[Leftover, ...]) -> Iterator[Effect]:
    """Give the quota back while a leftover is there."""
    return give_back(situation, f"Waiting for {leftovers[0]}")


def wait_for(situation: Situation, leftovers: tuple[Leftover, ...], *looks: Effect) -> Plan:
    """Wait until an earlier run is gone: before that no worker is offered the Workload, not even the same one.

    It waits with its quota, as a rule for the pods' grace period; after `quota_kept_at_most` that is given back.
    """
    if noted := note_last_worker(situation):
        return Plan((*noted, *looks), row="note its last run")
    if not leftovers:
        return Plan(looks, row="look").within(quota_kept_at_most(situation))
    if not (left := waited_for(situation, leftovers)):
        back = give_quota_back(situation, leftovers)
        return Plan((*tell_held_up(situation, leftovers), *back, *looks), row="give back")
    why = f"Waiting for {leftovers[0]}"
    earlier = [leftover.for_programs(situation.facts.pod_grace) for leftover in leftovers]
    said = [] if situation.head == why else [say_waits(situation, Message(why), earlier)]
    return Plan((*said, *looks), row="wait").within(left)


def end_past_waits(situation: Situation) -> Iterator[Effect]:
    """Take away that it waits for earlier runs once there is none any more, nor may pods of one be there."""
    return iter(()) if earlier_runs(situation) or earlier_pods(situation) else end_waits(situation)


waits_are_over: Final = Way("waits are over", *given(lambda seen: tuple(end_waits(seen)), lambda _, ended: Plan(ended)))
"""No earlier run is waited for any more: that it waits is taken away. One write of the Workload at a time."""


def remove_stale(situation: Situation) -> Iterator[Effect]:
    """Remove all copies that are not this attempt's: the end of an earlier attempt may not have been seen."""
    for worker in situation.workers:
        yield from remove_attempt(situation, worker, this=False)
