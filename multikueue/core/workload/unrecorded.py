"""Our check is Ready and no worker is recorded: find the worker that runs the job, and record it.

Somebody else has written one of the two, or taken one away. What runs is neither deleted nor run again meanwhile.
Where it is retried, the manager's Kueue evicts it, and the copies go then.

A worker with a copy of this attempt's mark has it. Without such a copy anywhere, what has no proof is believed where it
runs: Kueue's own controller makes no marks, and a key may be lost. It is believed on the worker that had the Workload
last; if that is not known, on a worker of the config, if only one has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import attrs

from multikueue.core.model.check_message import Message
from multikueue.core.model.marks import Proof
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import admit, nominate, retry, say
from multikueue.core.workload.effects import AnnounceWorkload, Effect, Plan
from multikueue.core.workload.facts.runs import assumed_for
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.history import note_worker


def find_recorded(situation: Situation) -> Plan:
    """Record the one worker that has it; wait while that is not clear; retry where no worker has it."""
    shown, last = [worker for worker in situation.workers if worker.in_sight], situation.last_worker
    trusted = [one for one in shown if one.name == last or (last is None and one.configured)]
    holders = _proven(situation, shown) or _unproven(situation, trusted)
    # One that was taken out of the config, or removed, runs its jobs to their end: it counts where nobody else has it.
    asked = [worker for worker in situation.workers if worker.configured or worker.name == last or not holders]
    hidden = {one.name: left for one in asked if not one.in_sight and (left := assumed_for(situation, one))}
    if hidden:
        waiting = _wait(situation, f"{_listed(hidden)} cannot be seen and may have it", min(hidden.values()))
        holder = holders[0].name if len(holders) == 1 else last if last in hidden else None
        if holder is not None and (noted := tuple(note_worker(situation, holder))):
            # The check's words follow with the next plan: of two writes of one object the second meets a conflict.
            warnings = tuple(effect for effect in waiting.effects if isinstance(effect, AnnounceWorkload))
            return attrs.evolve(waiting, effects=(*noted, *warnings))
        return waiting
    if len(holders) > 1:
        names = _listed(worker.name for worker in holders)
        return _wait(situation, f"{names} have it: remove it from all but one", None)
    if not holders:
        base = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
        return Plan((retry(situation, base),))  # the eviction removes the copies: one out of sight may still run
    having = holders[0]
    if having.name not in situation.facts.nominated:
        # Kueue's webhook accepts as clusterName only a name that was nominated by an earlier write.
        return Plan((nominate(situation, (having.name,)),))
    return Plan(tuple(admit(situation, having.name, CheckState.READY, having.workload)))


def _proven(situation: Situation, workers: list[Worker]) -> list[Worker]:
    """The workers with this attempt's job, by its mark; if none has it, the one with its Workload copy.

    Several Workload copies that no job has ever stood behind are offers: nothing runs there.
    """
    offered = [worker for worker in workers if situation.current(worker) is not None]
    having = [
        worker for worker in workers if situation.has_job(worker) or (worker in offered and worker.copy.has_had_owner)
    ]
    return having or (offered if len(offered) == 1 else [])


def _unproven(situation: Situation, workers: list[Worker]) -> list[Worker]:
    """The workers whose Kueue has adopted a job of it that nobody has marked for another attempt."""
    return [
        worker
        for worker in workers
        if (copy := worker.workload) is not None
        and worker.copy.has_had_owner
        and situation.proof(worker, copy) is Proof.NONE
        and any(situation.proof(worker, job) is Proof.NONE for job in situation.jobs_on(worker))
    ]


def _listed(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"worker cluster{'s' if len(quoted) > 1 else ''} {' and '.join(quoted)}"


def _wait(situation: Situation, why: str, left: timedelta | None) -> Plan:
    """Tell why nothing is recorded, in the check's message and as an event."""
    message = Message(f"No admitting cluster is recorded: {why}")
    words: list[Effect] = [AnnounceWorkload("Warning", message.head)]
    if message.render() != situation.message:
        words.insert(0, say(situation, message))
    return Plan(tuple(words)).within(left)
