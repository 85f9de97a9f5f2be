"""Our check is Ready and no worker is recorded: find the worker that runs the job, and record it.

Somebody else has written the check, or erased `clusterName`. Until it is clear which worker has the job, no copy is
deleted and no job created. If the check becomes Retry, the manager's Kueue evicts the Workload, and the copies go then.

A worker has the job if a copy there bears this attempt's mark. If there is no such copy on any worker, an unproven job
counts: Kueue's own controller makes no marks, and a key may be lost. It counts on the worker that had the Workload
last; if that is not known, on the only worker of the config that has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.check_message import Message
from multikueue.core.model.marks import Whose
from multikueue.core.model.names import ClusterName
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import admit, note_worker, retry, say
from multikueue.core.workload.effects import AnnounceWorkload, Plan
from multikueue.core.workload.seen.runs import assumed_for
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Way, first_of, named, otherwise


@once
def _having_it(situation: Situation) -> list[Worker]:
    """The workers in sight that have the job."""
    shown, last = [worker for worker in situation.workers if worker.in_sight], situation.last_worker
    trusted = [worker for worker in shown if worker.name == last or (last is None and worker.configured)]
    return _proven(situation, shown) or [worker for worker in trusted if _has_unproven_job(situation, worker)]


@once
def _hidden(situation: Situation) -> Mapping[ClusterName, timedelta]:
    """The workers out of sight that may have the job, and for how long that is assumed.

    A worker that was taken out of the config, or removed, counts only where no worker in sight has the job.
    """
    last, nobody = situation.last_worker, not _having_it(situation)
    asked = (worker for worker in situation.workers if worker.configured or worker.name == last or nobody)
    times = ((worker.name, assumed_for(situation, worker)) for worker in asked if not worker.in_sight)
    return {name: left for name, left in times if left}


def _wait_for_hidden(situation: Situation) -> Plan:
    hidden, holders, last = _hidden(situation), _having_it(situation), situation.last_worker
    waiting = _wait(situation, f"{_listed(hidden)} cannot be seen and may have it", min(hidden.values()))
    holder = holders[0].name if len(holders) == 1 else last if last in hidden else None
    noted = tuple(note_worker(situation, holder)) if holder is not None else ()
    # The check's words follow with the next plan: of two writes of one object the second meets a conflict.
    warnings = (effect for effect in waiting.effects if isinstance(effect, AnnounceWorkload))
    return attrs.evolve(waiting, effects=(*noted, *warnings), row="note it") if noted else named("tell it", waiting)


def _wait_for_one(situation: Situation) -> Plan:
    names = _listed(worker.name for worker in _having_it(situation))
    return _wait(situation, f"{names} have it: remove it from all but one", None)


def _try_again(situation: Situation) -> Plan:
    """The eviction removes the copies: one out of sight may still run."""
    base = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
    return Plan([retry(situation, base)])


def _record_it(situation: Situation) -> Plan:
    having = _having_it(situation)[0]
    return Plan(admit(situation, having.name, CheckState.READY, having.copy))


find_recorded: Final = first_of(
    Way("may be out of sight", lambda seen: bool(_hidden(seen)), _wait_for_hidden),
    Way("several have it", lambda seen: len(_having_it(seen)) > 1, _wait_for_one),
    Way("nobody has it", lambda seen: not _having_it(seen), _try_again),
    Way("record it", otherwise, _record_it),
)
"""Record the one worker that has it; wait while that is not clear; retry where no worker has it."""


def _proven(situation: Situation, workers: list[Worker]) -> list[Worker]:
    """The workers with this attempt's job, by its mark; if none has it, the one with its Workload copy.

    Several Workload copies that no job has ever stood behind are offers: nothing runs there.
    """
    offered = [worker for worker in workers if situation.this_copy(worker) is not None]
    adopted = [worker for worker in offered if worker.facts.has_had_owner]
    having = [worker for worker in workers if worker in adopted or situation.has_job(worker)]
    return having or (offered if len(offered) == 1 else [])


def _has_unproven_job(situation: Situation, worker: Worker) -> bool:
    """Whether its Kueue has adopted a job of it that nobody has marked for another attempt."""
    adopted = worker.copy if worker.facts.has_had_owner else None
    if adopted is None or situation.whose(worker, adopted) is not Whose.UNPROVEN:
        return False
    return any(situation.whose(worker, job) is Whose.UNPROVEN for job in situation.jobs_on(worker))


def _listed(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"worker cluster{'s' if len(quoted) > 1 else ''} {' and '.join(quoted)}"


def _wait(situation: Situation, why: str, left: timedelta | None) -> Plan:
    """Tell why nothing is recorded, in the check's message and as an event."""
    message = Message(f"No admitting cluster is recorded: {why}")
    words = [] if message.render() == situation.message else [say(situation, message)]
    return Plan((*words, AnnounceWorkload("Warning", message.head))).within(left)
