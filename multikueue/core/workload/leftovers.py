"""What is seen of earlier attempts on workers in sight: while it may run there, no other worker gets the job.

A worker may be unable to remove a job: a webhook refuses, a finalizer holds, its Kueue is down. Then the job is waited
for, and its Workload is sent back after a while, as waiting holds quota on both sides. A person may give it up, by UID
on the Workload, or on the MultiKueueCluster for all that was created there before a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.marks import Proof, mark_of
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, is_terminating, name_of, uid
from multikueue.core.model.workloads import retry_count
from multikueue.core.workload.check_message import plain
from multikueue.core.workload.check_updates import deactivate_copy, retry
from multikueue.core.workload.effects import Effect
from multikueue.core.workload.ending import HELD_UP, clean, delete_job, keeps_job_alive
from multikueue.core.workload.facts.possible_runs import (
    LEFTOVER_GRACE,
    given_up,
    has_stopped,
    is_given_up,
    may_go_on,
    may_start_unseen,
    stuck,
)
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import JobCopy, Worker

STUBBORN: Final = 5 * LEFTOVER_GRACE
"""After what time a job that was asked to stop, and still changes, is waited for no longer with quota in hand."""
MAX_DELAY: Final = timedelta(minutes=15)
"""The longest time until a Workload that was sent back for a leftover gets quota again."""


@attrs.frozen
class Leftover:
    """An object on a worker that may run what is about to run elsewhere."""

    worker: ClusterName
    kind: str
    object: Json
    why: str

    def __str__(self) -> str:
        named = plain(f'{self.kind} "{name_of(self.object)}" (UID {uid(self.object)})')
        return f'worker cluster "{self.worker}": {named} {self.why}'


def left_over(situation: Situation, chosen: Worker) -> tuple[Leftover, ...]:
    """What keeps the chosen worker from the job, but for what a person has given up.

    An object of the chosen worker does not: it has the same name, so the two exclude each other.
    """
    others = [worker for worker in situation.workers if worker.name != chosen.name]
    return tuple(
        one for other in others for one in _left_on(situation, other) if not is_given_up(situation, other, one.object)
    )


def _left_on(situation: Situation, worker: Worker) -> Iterator[Leftover]:
    if worker.reachable and situation.facts.leaves == worker.name:  # a move: all of it goes first
        yield from (_leftover(worker, job, "is not gone yet") for job in worker.jobs)
        if (copy := worker.workload) is not None:
            yield Leftover(worker.name, WORKLOAD.gvk.kind, copy, "is not gone yet")
        return
    yield from unseen(situation, worker)
    jobs, unproven = _of_no_attempt(situation, worker), False
    for job in jobs:
        if _is_of_earlier_attempt(situation, worker, job.object) and may_go_on(situation, worker, job.object):
            ending = is_terminating(job.object)
            yield _leftover(worker, job, f"of an earlier attempt {'is still ending' if ending else 'may still run'}")
        elif worker.configured and situation.proof(worker, job.object) is Proof.NONE:
            unproven = True
            yield _leftover(worker, job, _FOREIGN)
    # Kueue's own controller creates the job before it records the worker, and may have been stopped in between.
    copy = worker.workload if worker.configured and worker.in_sight and not unproven else None
    if copy is not None and worker.copy.has_had_owner and situation.proof(worker, copy) is Proof.NONE:
        yield Leftover(worker.name, WORKLOAD.gvk.kind, copy, _FOREIGN)


def unseen(situation: Situation, worker: Worker) -> Iterator[Leftover]:
    """What its Kueue has not stopped, where jobs of the kind are hidden for long."""
    if (copy := stuck(situation, worker)) is not None:
        yield Leftover(worker.name, WORKLOAD.gvk.kind, copy, _UNSEEN)


def _is_of_earlier_attempt(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether we have made a copy for an earlier attempt: its mark is ours, and no worker's of this attempt."""
    named = (situation.marks.of(situation.workload, situation.facts.attempt, one.name) for one in situation.workers)
    return situation.proof(worker, copy) is Proof.OTHER and mark_of(copy) not in named


_UNSEEN: Final = (
    "is not stopped, and its jobs cannot be seen: start Kueue there, have the kind served and listed, "
    f"or give it up by {GIVE_UP_ANNOTATION}"
)
_FOREIGN: Final = "is not of our making, and must be gone first"


def _leftover(worker: Worker, job: JobCopy, why: str) -> Leftover:
    return Leftover(worker.name, job.resource.gvk.kind, job.object, why)


def _of_no_attempt(situation: Situation, worker: Worker) -> list[JobCopy]:
    """The jobs seen there that do not count as this attempt's, of a group too."""
    listed = (*worker.jobs, *worker.shared) if worker.in_sight else ()
    return [job for job in listed if not situation.is_current(worker, job.object)]


def whys_not_given_up(situation: Situation, left: tuple[Leftover, ...]) -> Iterator[str]:
    """What is wrong with an annotation that was to give up something of this, and gives up nothing."""
    names = {one.worker for one in left}
    if noted := annotations_of(situation.workload).get(GIVE_UP_ANNOTATION):
        named = given_up(situation)
        if not any(named.get(worker.name, set()) & _uids_on(worker) for worker in situation.workers):
            yield f'the annotation {GIVE_UP_ANNOTATION} gives up nothing: no worker has "{plain(noted)}" as WORKER/UID'
    for worker in situation.workers:
        before = worker.annotations.get(GIVE_UP_BEFORE_ANNOTATION)
        if worker.name in names and before and parse_timestamp(before) is None:
            wanted = "a time like 2026-01-31T12:00:00Z"
            yield f'{GIVE_UP_BEFORE_ANNOTATION} of worker cluster "{worker.name}" gives up nothing: it is not {wanted}'


def _uids_on(worker: Worker) -> set[str]:
    found = [job.object for job in (*worker.jobs, *worker.shared)]
    return set(map(uid, found if worker.workload is None else [*found, worker.workload]))


def is_stubborn(situation: Situation, left: tuple[Leftover, ...]) -> bool:
    """Whether it is waited for no longer with quota in hand: nothing changes, or it was asked to stop long ago."""
    asked = (_asked_to_stop(situation, one.worker) for one in left)
    return situation.snapshot.quiet_for >= LEFTOVER_GRACE or any(ago >= STUBBORN for ago in asked)


def _asked_to_stop(situation: Situation, worker: ClusterName) -> timedelta:
    """How long ago the Workload copy beside a leftover was deactivated, or evicted for good."""
    found = situation.snapshot.worker(worker)
    copy = found.workload if found is not None and found.workload is not None else {}
    # While it waits for quota its Kueue has evicted it by itself, and may start it again.
    for_good = found is not None and not found.copy.waits_for_quota
    kinds = ("DeactivationTarget", "Evicted") if for_good else ("DeactivationTarget",)
    stops = (condition(copy, kind) for kind in kinds if is_true(copy, kind))
    times = (parse_timestamp((one or {}).get("lastTransitionTime")) for one in stops)
    return max((situation.now - time for time in times if time is not None), default=timedelta(0))


def send_back(situation: Situation, why: str) -> Effect:
    """Give the quota back while a leftover is there; each time for longer, as Kueue's `retryCount` tells."""
    tried = min(retry_count(situation.workload, situation.check), 8)
    return retry(situation, why, after=min(LEFTOVER_GRACE * 2**tried, MAX_DELAY))


def withdraw(
    situation: Situation, worker: Worker, unless: Callable[[Json], bool] = lambda _: False
) -> Iterator[Effect]:
    """Remove what is on one worker, as `clean`; but what may run there keeps its quota there until it is gone.

    The worker's Kueue is asked to stop it first: the deletion of the job may be refused, or held up. What was evicted
    there and may be started again is asked only once that is so: while it changes all the time the question is refused.
    Where jobs of the kind cannot be seen, what runs is asked as well, and its copy goes once it has stopped: without it
    nothing would say that it runs.
    """
    copy = worker.workload
    jobs = [job for job in worker.jobs if not unless(job.object)]
    known = worker.in_sight and situation.snapshot.adapter is not None
    waited = situation.snapshot.quiet_for >= HELD_UP
    going = known and any(
        not has_stopped(situation, worker, job.object) or (waited and may_go_on(situation, worker, job.object))
        for job in jobs
    )
    if worker.reachable and not worker.in_sight:
        going = worker.copy.runs or may_start_unseen(worker)
    if not going or copy is None or unless(copy) or keeps_job_alive(worker):
        yield from clean(worker, unless)
        return
    if worker.copy.can_be_asked and (waited or not worker.copy.is_stopping):
        yield deactivate_copy(situation, worker.name, copy)
    for job in jobs:
        yield from delete_job(worker.name, job)
