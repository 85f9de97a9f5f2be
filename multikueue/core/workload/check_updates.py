"""What we write on the manager's Workload: on our admission check, that it is sent back, and where it has run before.
Beside that: what a worker's Kueue is told by a Workload copy (`deactivation`, `patch_copy`).

Where a job has run is kept as the last five placements, from when to when, and why they ended. The worker that had it
last is kept, too, while it is out of sight and may still run it.

The placement that lasts is not among them: `status.clusterName` and the conditions tell it. So a job that is never
moved costs no write, and each end of a placement costs one, which may carry another annotation of ours as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from multikueue.core.dispatchers.dispatcher import Nomination, NotTaken
from multikueue.core.model import conditions, eviction, labels, workloads
from multikueue.core.model.adapter import Outcome
from multikueue.core.model.check_message import Message, admitted_on
from multikueue.core.model.conditions import condition, is_true, new_condition, timestamp
from multikueue.core.model.copies import drift_patch, topology_known
from multikueue.core.model.earlier_run_facts import WAITS, EarlierRun, earlier_run_condition
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig, shortened, uid
from multikueue.core.model.outside_text import plain
from multikueue.core.model.placements import FAULT, is_fault, with_placement
from multikueue.core.model.refusal_facts import refusals_condition
from multikueue.core.model.status_apply import admission_status, check_entry, check_status, owned_conditions, with_check
from multikueue.core.model.worker_states import Lost, Unusable
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload import effects
from multikueue.core.workload.effects import MANAGER, ApplyStatus, Effect, PatchWorkload
from multikueue.core.workload.seen.graces import BEHIND_OTHERS, QUOTA_HELD
from multikueue.core.workload.seen.runs import possible_runs, shows_a_run
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.errors import Cause

_OFF_HOLD: Final = "The job has been changed: it is queued again"
_AGAIN: Final = "Previously: "
"""How Kueue begins the message of an eviction that is over."""


def reject(situation: Situation, verdict: workloads.Rejection, base: str) -> Effect:
    """Say that it can never run through us; why, for programs too, in a condition of the same write."""
    generation = dig(situation.workload, "metadata", "generation")
    stated = new_condition(workloads.VERDICT, True, verdict, base, now=situation.now, generation=generation)
    return _alone(situation, CheckState.REJECTED, base, stated)


def retry(situation: Situation, base: str) -> Effect:
    """Ask Kueue to evict it and to try again."""
    return _alone(situation, CheckState.RETRY, base)


def give_back(situation: Situation, base: str) -> Iterator[Effect]:
    """Give quota back that has been held for too long, unless its Kueue is about to act: what waits in its queue comes
    first.

    Kueue (0.16.8 to v0.19.2 at least) queues what a check evicts within milliseconds, and asks what else waits a second
    after quota is free: the evicted one would have it again each time. So it is evicted by us, with a time until which
    it stays out of the queue. Times are by Kueue's clock: what it wrote when it gave the quota, and what has passed
    since this process saw that; of what it did not see, by ours. It goes round once in `QUOTA_HELD`.
    """
    if workloads.is_about_to_be_evicted(situation.workload, situation.check):
        return
    began, held = situation.facts.reserved_at or situation.now, situation.snapshot.held_for
    at = max(situation.now, began + situation.snapshot.quiet_for) if held is None else began + held
    queued = max(at + BEHIND_OTHERS, began + QUOTA_HELD)
    body = admission_status(eviction.given_back(situation.workload, base, at, queued), {})
    yield ApplyStatus(MANAGER, body, labels.ADMISSION_MANAGER, takes_away=True)


def retry_vanished(situation: Situation) -> Effect:
    """Ask Kueue to try again because the worker does not have it any more."""
    return retry(situation, "Admitting remote no longer exists")


def send_back_evicted(situation: Situation, copy: Json) -> Iterator[Effect]:
    """The recorded worker evicted it, as this copy says: ask Kueue to try again, and tell the user. Its time is over
    wherever it is over.

    Then the manager's Kueue is asked to deactivate it, by the condition that it writes itself when the time is over on
    a single cluster: it evicts the Workload, and queues it again only if its user makes it active again.
    """
    if workloads.is_out_of_time(copy):
        if not is_true(situation.workload, "DeactivationTarget"):
            yield from _deactivate(situation, situation.recorded.name)
        return
    why = ", as its job was stopped here" if workloads.was_stopped_from_manager(copy) else ""
    evicted = f'Workload evicted on worker cluster: "{situation.recorded.name}"{why}, resetting for re-admission'
    message, there = f'{evicted}. Previously: "{situation.state}"', plain(conditions.message(copy, "Evicted"))
    if is_fault(copy):
        yield from _note_fault(situation, f"{evicted}. There: {there}")
    yield _admission(situation, _checked(situation, CheckState.RETRY, Message(message)), takes_away=True)
    yield effects.AnnounceWorkload("Normal", f"{message}. There: {there}")


def send_back_lost(situation: Situation) -> Iterator[Effect]:
    """The recorded worker has been lost for too long: ask Kueue to try again."""
    lost = "Admitting remote lost"
    if isinstance(situation.recorded.reach, Lost):
        yield from _note_fault(situation, lost)
    yield retry(situation, lost)


def _deactivate(situation: Situation, cluster: str) -> Iterator[Effect]:
    over = f'the maximum execution time on worker cluster "{cluster}"'
    target = ("DeactivationTarget", workloads.OUT_OF_TIME, f"exceeding {over}")
    changes = _with_condition(situation.workload, situation.now, *target)
    yield _admission(situation, changes | {"accumulatedPastExecutionTimeSeconds": None}, takes_away=True)
    yield effects.AnnounceWorkload("Warning", f"Workload exceeded {over}: it is not tried again")


def retry_out_of_sync(situation: Situation, cluster: str) -> Iterator[Effect]:
    """Ask Kueue to try again because the worker's Kueue found job and Workload different, and warn the user."""
    base = f'Remote workload on worker cluster "{cluster}" is out of sync with its user job, resetting for re-dispatch'
    yield retry(situation, base)
    yield effects.AnnounceWorkload("Warning", f'{base}, Previously: "{situation.state}"')


def nominate(situation: Situation, names: tuple[str, ...], message: Message | None = None) -> Effect:
    """Offer it to these workers, and say so. Kueue's webhook lets only a nominated one become `clusterName`."""
    changes = _checked(situation, situation.state, message) if message is not None else {}
    text = message.render() if message is not None else situation.message
    return _admission(situation, {"nominatedClusterNames": list(names), **changes, **_refusals(situation, text)})


def say(situation: Situation, message: Message) -> Effect:
    """Change what our check says, and nothing else."""
    changes = _checked(situation, situation.state, message) | _refusals(situation, message.render())
    return _admission(situation, changes)


def say_waits(situation: Situation, message: Message, runs: Sequence[EarlierRun]) -> Effect:
    """Say that it waits for earlier runs, and for which, for programs.

    Under our own manager name, as they are written everywhere: what two have applied, and one takes away, is left in
    pieces that no server accepts again; and what Kueue applies does not take it away.
    """
    entry = _entry(situation, situation.state, message)
    status = check_status(situation.workload, entry, earlier_run_condition(runs, entry["message"], situation.now))
    return ApplyStatus(MANAGER, status, situation.settings.controller_name)


def end_waits(situation: Situation) -> Iterator[Effect]:
    """Take away that it waits for earlier runs: there is none any more."""
    entry = workloads.check(situation.workload, situation.check)
    if entry is not None and is_true(situation.workload, WAITS):
        yield ApplyStatus(MANAGER, check_status(situation.workload, entry), situation.settings.controller_name)


def _refusals(situation: Situation, message: str) -> Json:
    """The change of the status that says for programs why workers refuse it, beside a message of our check."""
    facts = {str(worker.name): worker.refusal.facts for worker in situation.workers if worker.refusal is not None}
    written = shortened(message, labels.MAX_CONDITION_MESSAGE)
    refusals = refusals_condition(facts, written, situation.now) if facts else None
    return {} if refusals is None else {"conditions": [*owned_conditions(situation.workload), refusals]}


def record(situation: Situation, cluster: ClusterName) -> Iterator[Effect]:
    """Record the worker that gets the job, before the job is created there: the check stays Pending.

    One whose check may stay Pending for good is announced at once.
    """
    if situation.traits.keeps_check_pending or not _webhook_accepts(situation, cluster):
        return admit(situation, cluster, CheckState.PENDING)
    head = f'The workload got reservation on "{cluster}", its job is being created there'
    return iter((_recording(situation, cluster, _checked(situation, CheckState.PENDING, Message(head))),))


def _webhook_accepts(situation: Situation, cluster: ClusterName) -> bool:
    """Whether Kueue's webhook accepts it as `clusterName`: it was nominated by an earlier write, or is recorded."""
    return cluster in (*situation.facts.nominated, situation.recorded_on)


def admit(situation: Situation, cluster: ClusterName, state: CheckState, copy: Json | None = None) -> Iterator[Effect]:
    """Say that a worker has it: `clusterName`, the check in `state`, and what `copy` has placed. It is nominated first.

    Args:
        situation: the Workload.
        cluster: the worker.
        state: of our check from now on.
        copy: the worker's Workload.
    """
    if not _webhook_accepts(situation, cluster):
        yield nominate(situation, (cluster,))
        return
    message = Message(admitted_on(cluster), tuple(beside_admitted(situation, state)))
    yield _recording(situation, cluster, _checked(situation, state, message) | _topology(situation, copy))
    if situation.recorded_on != cluster or not situation.traits.keeps_check_pending:
        # Else it was announced, and counted, when it was recorded.
        yield effects.AnnounceWorkload("Normal", message.head)
        yield from _tell_unheeded(situation)
        yield effects.CountAdmitted(situation.facts.cluster_queue, cluster)


def _tell_unheeded(situation: Situation) -> Iterator[Effect]:
    """Tell its user, once, what of the job has no effect."""
    job = situation.job
    if job is not None and (fields := situation.adapter.unheeded(job)):
        text = f"{', '.join(fields)} may have no effect, as the job is delegated: delete it once it has ended"
        yield effects.AnnounceWorkload("Normal", text, on_job=True)


def beside_admitted(situation: Situation, state: CheckState) -> Iterator[str]:
    """What the user of a Workload that a worker has should know beside that: settings, or pods."""
    undelegated = situation.not_delegated if isinstance(situation.not_delegated, str) else ""
    if missing := situation.snapshot.missing_setting or undelegated:
        yield f"new jobs like it are not dispatched: {missing}"
    if situation.settings.pods_ready and situation.free_here:
        kept = state is CheckState.PENDING
        yield f"{'the check stays Pending' if kept else 'it may run on the manager'}: {situation.free_here}"


def _recording(situation: Situation, cluster: ClusterName, beside: Json) -> Effect:
    """The write of `clusterName`, with what is written beside it.

    Nominations may be another field manager's. Leaving them out would only take back our own; the API server refuses a
    `clusterName` beside any, so they are made an empty list of ours.
    """
    recorded: Json = {"clusterName": cluster, "nominatedClusterNames": [] if situation.facts.nominated else None}
    return _admission(situation, beside | recorded)


def tell_topology(situation: Situation, copy: Json) -> Iterator[Effect]:
    """Record that the worker has placed pods whose topology the manager's Kueue awaits; see `topology_known`."""
    if changes := _topology(situation, copy):
        yield _admission(situation, changes)


def _topology(situation: Situation, copy: Json | None) -> Json:
    admission = topology_known(situation.workload, copy) if copy is not None else None
    return {} if admission is None else {"admission": admission}


def finish(situation: Situation, outcome: Outcome) -> Effect:
    """Record how the job ended."""
    ended = _with_condition(situation.workload, situation.now, "Finished", outcome.reason, outcome.message)
    return _admission(situation, ended, takes_away=True)


def requeue(situation: Situation) -> Iterator[Effect]:
    """Have its Kueue queue it again, which forgets that where it is active again."""
    if workloads.is_left_out(situation.workload):
        yield _admission(situation, _with_condition(situation.workload, situation.now, *workloads.REACTIVATED))


def take_off_hold(situation: Situation) -> Effect:
    """Have it queued again that is on hold, as its Kueue does where a StatefulSet is scaled up again.

    It has left its worker: quota alone would admit it there once more.
    """
    checked = _checked(situation, CheckState.PENDING, Message(_OFF_HOLD)) | {"clusterName": None}
    queued = _with_condition(situation.workload, situation.now, "QuotaReserved", "Pending", _OFF_HOLD, yes=False)
    return _admission(situation, checked | queued)


def deactivation(workload: Json | None, cluster: ClusterName, copy: Json, now: datetime) -> ApplyStatus:
    """Ask the worker's Kueue to stop the job: the manager has evicted it, or does not want it any more.

    `workload`: the manager's; None: it is gone.
    """
    why = conditions.message(workload or {}, "Evicted")
    message = f"Evicted on manager: {why}" if why else "Over on manager"
    changes = _with_condition(copy, now, "DeactivationTarget", workloads.STOPPED_FROM_MANAGER, message)
    return ApplyStatus(cluster, admission_status(copy, changes), labels.ADMISSION_MANAGER, optional=True)


def patch_copy(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Change the Workload copy there where it differs, in what can be changed."""
    copy = worker.copy
    if copy is not None and (patch := drift_patch(situation.workload, copy)) is not None:
        yield PatchWorkload(worker.name, ObjectKey.of(copy), patch)


def _with_condition(workload: Json, now: datetime, kind: str, reason: str, message: str, *, yes: bool = True) -> Json:
    """The change of the status of a Workload, or of a copy, that makes a condition true, or false."""
    return {"conditions": owned_conditions(eviction.with_condition(workload, kind, yes, reason, message, now))}


def _alone(situation: Situation, state: CheckState, base: str, *beside: Json) -> Effect:
    """A write of our check alone, under our own manager name, with conditions of ours."""
    entry = _entry(situation, state, Message(f'{base}, Previously: "{situation.state}"'))
    status = check_status(situation.workload, entry, *beside)
    return ApplyStatus(MANAGER, status, situation.settings.controller_name, takes_away=True)


def _admission(situation: Situation, changes: Json, *, takes_away: bool = False) -> Effect:
    body = admission_status(situation.workload, changes)
    return ApplyStatus(MANAGER, body, labels.ADMISSION_MANAGER, takes_away=takes_away)


def _checked(situation: Situation, state: CheckState, message: Message) -> Json:
    """The change of the status that writes our check."""
    return {"admissionChecks": with_check(situation.workload, _entry(situation, state, message))}


def _entry(situation: Situation, state: CheckState, message: Message) -> Json:
    """Our check's entry. A time to try again, which daemons before 0.1.0 named, Kueue keeps, and owns it as well."""
    known, after, since = workloads.check(situation.workload, situation.check) or {}, None, situation.now
    if state is CheckState.RETRY and "requeueAfterSeconds" in known:
        after, since = timedelta(0), situation.facts.reserved_at or since
    return check_entry(situation.workload, situation.check, state, message.render(), since, after)


def not_taken(situation: Situation, why: NotTaken) -> tuple[Effect, ...]:
    """Give the quota back: nobody has taken it in time."""
    if why.deactivate:
        return (reject(situation, workloads.Rejection.NOT_TAKEN, why.message),)
    return (*give_back(situation, why.message), effects.AnnounceWorkload("Normal", why.message))


def rejections(nomination: Nomination) -> Iterator[Effect]:
    """Count why workers are not offered it: that another is better is no reason against one."""
    whys = ((name, reason.why) for name, reason in nomination.reasons.items())
    if counted := tuple((name, why.value) for name, why in whys if why is not Cause.NOT_BEST):
        yield effects.CountRejections(counted)


def _new_placements(situation: Situation) -> str | None:
    """The annotation to write, because a placement has ended; None: it says so, or none has."""
    if (ended := situation.snapshot.placement) is None or situation.recorded_on is not None:
        return None
    evicted, at = condition(situation.workload, "Evicted") or {}, situation.snapshot.worker(ended.worker)
    until = evicted.get("lastTransitionTime") if evicted.get("status") == "True" else timestamp(situation.now)
    refused = at is not None and (at.refusal is not None or isinstance(at.kind, Unusable))
    why = str(evicted.get("message") or "").removeprefix(_AGAIN)
    return with_placement(situation.workload, ended, why, until, {"cause": REFUSED} if refused else {})


def _note_fault(situation: Situation, why: str) -> Iterator[Effect]:
    """Keep on the Workload that this is the worker's fault: once its copy there is gone nothing else does. The write
    gives it another resourceVersion, so the next decision sends it back, or this one where the write is refused."""
    ended, fault = situation.snapshot.placement, {"fault": FAULT}
    if ended and (noted := with_placement(situation.workload, ended, why, timestamp(situation.now), fault)):
        yield annotated(situation, {labels.PLACEMENTS_ANNOTATION: noted}, optional=True)


@once
def note_last_worker(situation: Situation) -> tuple[Effect, ...]:
    """Keep the last recorded worker on the Workload while it is out of sight, so that a restart does not forget it.

    So is one in sight whose MultiKueueCluster is gone, while it shows a run of this job: nothing else names it then.
    The same write notes a placement that has ended.
    """
    annotations: dict[str, str | None] = {}
    last = situation.last_worker if situation.recorded_on is None else None
    may_run_there = last is not None and any(run.worker == last for run in possible_runs(situation))
    unlisted = (worker.name for worker in situation.workers if worker.removed and shows_a_run(situation, worker))
    if situation.facts.noted_worker != (wanted := last if may_run_there else next(unlisted, None)):
        annotations[labels.LAST_WORKER_ANNOTATION] = wanted
    if (ended := _new_placements(situation)) is not None:
        annotations[labels.PLACEMENTS_ANNOTATION] = ended
    return (annotated(situation, annotations),) if annotations else ()


def note_worker(situation: Situation, worker: ClusterName) -> Iterator[Effect]:
    """Keep the worker that has it on the Workload until it can be recorded: a restart does not forget it then."""
    if situation.facts.noted_worker != worker:
        yield annotated(situation, {labels.LAST_WORKER_ANNOTATION: worker})


def annotated(situation: Situation, annotations: Mapping[str, str | None], *, optional: bool = False) -> Effect:
    """The write of annotations of ours on the Workload; None: the annotation goes."""
    metadata: Json = {"uid": uid(situation.workload), "annotations": dict(annotations)}
    return PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata}, optional)
