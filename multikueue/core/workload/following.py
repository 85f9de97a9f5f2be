"""A Workload with a recorded worker: create its job there once, sync its status, and notice when it is gone.

`clusterName` is sticky. Only the copy on the recorded worker counts: copies elsewhere are removed, whatever they say.

A move is an annotation on the manager's Workload that names its worker. Our check becomes Retry, the manager's Kueue
evicts the Workload, and everything that keeps a job from running twice after an eviction holds here, too. Beyond that,
nobody else is recorded while the worker it leaves shows anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.adapter import Outcome
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.worker_states import Created, Creating, NothingSent, Unusable
from multikueue.core.model.workloads import OUT_OF_SYNC, CheckState, is_serving_pod
from multikueue.core.workload import check_updates, effects, ending, leftovers
from multikueue.core.workload.check_updates import finish, patch_copy, retry, retry_out_of_sync, retry_vanished
from multikueue.core.workload.effects import Effect, Plan
from multikueue.core.workload.groups import create_missing, creates_for_group, missing_on, remove_obsolete
from multikueue.core.workload.removal import remove, remove_all
from multikueue.core.workload.seen.graces import ADOPTION, SYNC_GRACE, VANISHED
from multikueue.core.workload.seen.places import withheld
from multikueue.core.workload.seen.runs import until_end_counts
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Decide, Way, first_of, given, otherwise, wait


def while_seen(*ways: Way) -> Decide:
    """Decide by what the recorded worker shows, or wait until it can be seen."""
    return first_of(Way("out of sight", _is_out_of_sight, _wait_out_of_sight), *ways)


def _is_out_of_sight(situation: Situation) -> bool:
    return situation.recorded_or_none is None or not situation.recorded_or_none.in_sight


def remove_others(situation: Situation) -> Iterator[Effect]:
    """Remove copies everywhere but on the recorded worker.

    A worker whose MultiKueueCluster is gone is noted: an eviction erases the record, and the next process may know
    nothing else of a worker that nobody lists.
    """
    if situation.recorded_or_none is not None and situation.recorded_or_none.removed:
        yield from check_updates.note_worker(situation, situation.recorded_or_none.name)
    yield from remove_all(situation, situation.recorded_on)


def with_last_status(situation: Situation, decided: Plan) -> Plan:
    """The plan; if it takes the Workload off its worker, it writes the job's last status first: no later plan does.

    That status may say why the worker's Kueue has acted. The caches may show the Workload copy before the job: without
    this the status would be lost.
    """
    worker = situation.recorded_or_none if situation.snapshot.workload is not None else None
    takes_away = any(isinstance(effect, effects.ApplyStatus) and effect.takes_away for effect in decided.effects)
    is_refused = situation.snapshot.refused_for >= SYNC_GRACE
    if worker is None or not worker.in_sight or not takes_away or is_refused:
        return decided
    synced = ending.sync_status(situation, situation.jobs_on(worker))
    shown = (effect for effect in synced if effect not in decided.effects)
    return attrs.evolve(decided, effects=(*shown, *decided.effects))


def _wait_for_its_worker(situation: Situation) -> Plan:
    return Plan().within(situation.settings.worker_lost_timeout)


def _is_evicted_unseen(situation: Situation) -> bool:
    facts = situation.recorded.facts
    return situation.recorded.reachable and facts.is_evicted and not facts.is_finished


def _has_ended_unseen(situation: Situation) -> bool:
    return situation.recorded.reachable and situation.recorded.facts.has_ended


def _send_back_evicted(situation: Situation) -> Plan:
    """Its worker's Kueue has evicted it."""
    return Plan(check_updates.send_back_evicted(situation, situation.recorded_copy))


def _record_kept_for(situation: Situation) -> timedelta:
    """For how much longer the recorded worker, which is out of sight, keeps the Workload, as the job may run there.

    Zero where this process knows that no job was ever sent there.
    """
    nothing_sent = _has_sent_nothing(situation, situation.recorded)
    return timedelta(0) if nothing_sent else until_end_counts(situation, situation.recorded)


_wait_out_of_sight: Final[Decide] = first_of(
    # While only the kind cannot be seen, the Workload copy can, and what it shows counts: an eviction at once, the
    # job's end after the time that the job is waited for.
    Way("unknown worker", lambda seen: seen.recorded_or_none is None, _wait_for_its_worker),
    Way("evicted there", _is_evicted_unseen, _send_back_evicted),
    Way("may run", *given(_record_kept_for, lambda _, left: Plan().within(left))),
    Way("has ended", _has_ended_unseen, lambda seen: Plan([finish(seen, seen.recorded.facts.outcome)])),
    Way("lost", otherwise, lambda seen: Plan(check_updates.send_back_lost(seen))),
)
"""The recorded worker, or the job's kind there, cannot be seen."""


def _has_sent_nothing(situation: Situation, worker: Worker) -> bool:
    """Whether no job was ever sent there for this attempt. Of a group one Workload sends the job for all."""
    if not isinstance(worker.creation, NothingSent) or isinstance(worker.in_flight, Creating):
        return False
    alone = situation.facts.component_index is None
    known = situation.jobs_on(worker) or situation.shared_job_on(worker)  # a slice may join the job of the one before
    return situation.state is CheckState.PENDING and alone and not (known or worker.facts.has_had_owner)


_JUST_GONE: Final = Way(
    "a moment ago", lambda seen: seen.snapshot.quiet_for < VANISHED, lambda _: Plan().within(VANISHED)
)
"""A job that is gone from its worker may have ended just before, and its end may not show yet."""

begin_anew: Final = first_of(_JUST_GONE, Way("try again", otherwise, lambda seen: Plan([retry_vanished(seen)])))
"""The job is gone from its worker."""


def _ends_there(situation: Situation) -> bool:
    """Whether the recorded worker does not go on with it."""
    worker = situation.recorded
    return worker.copy is None or not worker.facts.goes_on or situation.must_be_replaced(worker.copy)


def _has_ended_unannounced(situation: Situation) -> bool:
    """Whether the job ended before its check was Ready, as short ones do: it is admitted first, and finished then."""
    worker = situation.recorded
    if not (worker.facts.has_ended and awaits_ready(situation)):
        return False
    return all(leftover.worker.name == worker.name for leftover in leftovers.earlier_runs(situation))


def _end_with_copy(situation: Situation) -> Plan:
    return ending.sync_end(situation, situation.recorded_jobs, situation.recorded.facts.outcome)


def _end_with_job(situation: Situation, outcome: Outcome) -> Plan:
    return ending.sync_end(situation, situation.recorded_jobs, outcome)


def _is_out_of_sync(situation: Situation) -> bool:
    return situation.recorded.facts.finish_reason == OUT_OF_SYNC and situation.state is CheckState.READY


follow_end: Final[Decide] = first_of(
    Way("ended before Ready", _has_ended_unannounced, lambda seen: Plan(_admit(seen))),
    Way("has ended", lambda seen: seen.recorded.facts.has_ended, _end_with_copy),
    # Its own end counts before what becomes of its Workload copy, which may be evicted at the same moment, or removed
    # (the worker's retention).
    Way("job has ended", *given(lambda seen: ending.own_end(seen, seen.recorded_jobs), _end_with_job)),
    Way("evicted there", lambda seen: seen.recorded.facts.is_evicted, _send_back_evicted),
    Way("out of sync", _is_out_of_sync, lambda seen: Plan(retry_out_of_sync(seen, seen.recorded.name))),
    Way("gone", otherwise, lambda seen: Plan([retry_vanished(seen)])),
)
"""The recorded worker does not go on with it: its job has ended there, or it is sent back."""


def why_no_job(worker: Worker) -> str:
    """Why no job can be created there; empty: it can."""
    if isinstance(worker.kind, Unusable):
        return f'Worker cluster "{worker.name}" cannot run the job: {worker.kind.why}'
    return f'Worker cluster "{worker.name}" refuses the job: {worker.refusal.why}' if worker.refusal is not None else ""


def send_back(situation: Situation, why: str) -> Plan:
    """No job can be created there, and none was."""
    return Plan([retry(situation, why)])


def _refused(situation: Situation) -> str:
    lacks_job = not situation.recorded.facts.has_had_owner and bool(missing_on(situation, situation.recorded))
    return why_no_job(situation.recorded) if lacks_job else ""


def _in_its_way(situation: Situation) -> tuple[leftovers.Leftover, ...]:
    """What must be gone before the job is created: jobs of earlier attempts anywhere, and any job of its name here."""
    worker = situation.recorded
    if situation.state is CheckState.READY:
        return ()
    listed = tuple(leftovers.of_earlier_attempt(worker, job) for job in situation.stale_jobs_on(worker))
    return listed if situation.has_job(worker) else leftovers.earlier_runs(situation) or listed


def _wait_for_earlier(situation: Situation, earlier: tuple[leftovers.Leftover, ...]) -> Plan:
    """Remove the job that has its name. After a while send the Workload back: it holds quota while it waits."""
    worker = situation.recorded
    if not (left := leftovers.waited_for(situation, earlier)):
        return Plan(leftovers.give_quota_back(situation, earlier), row="give back")
    removed = remove(situation, attrs.evolve(worker, copy=None, jobs=tuple(situation.stale_jobs_on(worker))))
    return Plan(removed, row="remove it").within(left)


def _may_create(situation: Situation) -> bool:
    """Whether the job is still to be created on the recorded worker: once only.

    Its Workload copy there has never had an owner, so no job has ever stood behind it; and this process has not created
    one that the worker's Kueue has not adopted yet. Afterwards a missing job has vanished: it ended and its TTL has
    passed, or somebody deleted it. Of a group, the first Workload on the worker creates the job they share.
    """
    worker = situation.recorded
    if situation.state is not CheckState.PENDING or situation.traits.workload_only or situation.jobs_on(worker):
        return False
    if situation.this_copy(worker) is None or worker.facts.has_had_owner:
        return False
    return not isinstance(worker.creation, Created) and creates_for_group(situation) and situation.not_delegated is None


def awaits_ready(situation: Situation) -> bool:
    """Whether the check is still to become Ready; for jobs that keep it pending it never is."""
    return situation.state is CheckState.PENDING and not situation.check_stays_pending


def _admit(situation: Situation) -> Iterator[Effect]:
    return check_updates.admit(situation, situation.recorded.name, CheckState.READY, situation.recorded_copy)


def _synchronise(situation: Situation) -> Iterator[Effect]:
    worker, jobs = situation.recorded, situation.recorded_jobs
    if awaits_ready(situation):
        if not leftovers.earlier_runs(situation):
            yield from _admit(situation)
    else:
        # one write of the Workload at a time
        yield from tuple(check_updates.tell_topology(situation, situation.recorded_copy)) or end_move(situation)
    yield from tell_unmoved(situation)
    yield from ending.sync_run(situation, jobs)
    yield from patch_copy(situation, worker)
    for job in jobs:
        yield from _forward(situation, worker, job)
    if situation.facts.has_members:
        yield from remove_obsolete(situation, worker)
        yield from create_missing(situation, worker)


def _forward(situation: Situation, worker: Worker, job: Json) -> Iterator[Effect]:
    local = situation.job_of(job)
    if job is situation.shared_job_on(worker):
        return  # it is changed once, for the part of the group that it belongs to
    patch = situation.adapter.forward_patch(local, job, situation.stamp_on(worker)) if local is not None else None
    if patch is not None:
        yield effects.PatchJob(worker.name, situation.adapter.resource, ObjectKey.of(job), patch)


def _is_held_without_job(situation: Situation) -> bool:
    """Whether it is on hold there, and its job is gone: then nothing ends the hold."""
    return situation.recorded.facts.is_on_hold and not (situation.recorded_jobs or situation.traits.workload_only)


def _awaits_earlier_job(situation: Situation) -> bool:
    """Whether its job may have been created by an earlier process, and not be adopted yet."""
    return situation.state is CheckState.PENDING and not situation.recorded.facts.has_had_owner


def _wait_for_job(situation: Situation) -> Plan:
    """None can be created now."""
    left = ADOPTION - situation.snapshot.quiet_for
    if left > timedelta(0):
        return Plan(row="not for long").within(left)
    base = f"Its job cannot be created: {situation.snapshot.missing_setting}"
    return Plan([retry(situation, base)], row="try again")


def _may_move(situation: Situation) -> bool:
    """Whether a move away from the recorded worker was asked for, and is possible."""
    return situation.facts.leaves == situation.recorded_on and not _why_stays(situation)


def move(situation: Situation) -> Plan:
    """Send it back so that it runs elsewhere."""
    text = f'Moving away from worker cluster "{situation.recorded_on}", as the annotation {MOVE_FROM_ANNOTATION} asks'
    return Plan((retry(situation, text), effects.AnnounceWorkload("Normal", text)))


def tell_unmoved(situation: Situation) -> Iterator[Effect]:
    """Tell why a Workload stays that somebody asked to move."""
    asked = situation.facts.leaves
    if asked is not None and asked == situation.recorded_on and (why := _why_stays(situation)):
        yield effects.AnnounceWorkload("Warning", f'It is not moved away from worker cluster "{asked}": {why}')


def _why_stays(situation: Situation) -> str:
    return why_not_movable(situation) or _nowhere_to_go(situation)


def why_not_movable(situation: Situation) -> str:
    """Why the job is not moved at all; empty: an eviction costs it nothing but what it has computed so far."""
    if situation.traits.workload_only:
        return "another controller moves jobs of this kind"
    if situation.traits.serves or any(map(is_serving_pod, situation.snapshot.jobs.values())):
        return "it serves and does not end"
    if situation.facts.component_index is not None:
        return "it is a part of a group"
    if situation.traits.keeps_check_pending and situation.state is CheckState.READY:
        return "Kueue deletes pods that it evicts once their check is Ready, and nobody makes them again"
    return ""


def _nowhere_to_go(situation: Situation) -> str:
    able = (worker.name for worker in situation.workers if worker.can_run and worker.name != situation.facts.leaves)
    return "no other worker can be offered it now" if all(name in withheld(situation) for name in able) else ""


def end_move(situation: Situation) -> Iterator[Effect]:
    """Take the request off a Workload that another worker has: it is done, or named a worker that never had it."""
    asked = situation.facts.leaves
    if asked is not None and asked != situation.recorded_on:
        yield check_updates.annotated(situation, {MOVE_FROM_ANNOTATION: None})


def _tell_vanished(situation: Situation) -> Plan:
    """It cannot be sent back without our check, and nobody else runs it: its job would say for ever that it runs."""
    advice = "once its queue has the MultiKueue check again it runs again, or delete it"
    gone = f'Its copies on worker cluster "{situation.recorded_on}" are gone, and nobody runs it: {advice}'
    return Plan((effects.AnnounceWorkload("Warning", gone, on_job=True),))


follow_job: Final = while_seen(
    Way("ends there", _ends_there, follow_end),
    Way("on hold without a job", _is_held_without_job, begin_anew),
    Way("moves", _may_move, move),
    Way("earlier run", *given(_in_its_way, _wait_for_earlier)),
    Way("refused", *given(_refused, send_back)),
    Way("create", _may_create, lambda seen: Plan(create_missing(seen, seen.recorded))),
    Way("follow", lambda seen: seen.recorded_jobs or seen.traits.workload_only, lambda seen: Plan(_synchronise(seen))),
    Way("vanished", otherwise, begin_anew),
)
"""A worker is recorded: create the job there, keep it as its user wants it, and notice its end."""

_tell_gone: Final = first_of(_JUST_GONE, Way("tell it", otherwise, _tell_vanished))
follow_unchecked: Final = first_of(
    Way("out of sight", _is_out_of_sight, wait),
    Way("vanished", lambda seen: seen.recorded.is_empty, _tell_gone),
    Way("has ended", lambda seen: seen.recorded.facts.has_ended, _end_with_copy),
    Way("follow", otherwise, lambda seen: Plan(ending.sync_status(seen, seen.recorded_jobs))),
)
"""Our check is not on it any more. Let the job run on and sync its end; nothing can be asked of Kueue."""

follow_copy: Final = while_seen(
    Way("ends there", _ends_there, follow_end),
    Way("job may be there", _awaits_earlier_job, _wait_for_job),
    Way("follow", otherwise, lambda seen: Plan(patch_copy(seen, seen.recorded))),
)
"""Follow a Workload of a kind that is not registered any more: a setting that was changed takes nothing that runs.

Its jobs cannot be seen, so their status is not synced. The worker's Kueue still says on the Workload copy how the
job ends, and stops it when the manager evicts or deletes it.
"""
