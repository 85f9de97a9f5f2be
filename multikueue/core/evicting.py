"""A Workload the manager is evicting: stop its job where it runs, then let the manager know that nothing runs.

Kueue keeps the quota until the manager's job shows no active pods. So the status that comes home here decides when
the quota is free; without quota, the next row removes the copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.cleaning import clean
from multikueue.core.conditions import is_true
from multikueue.core.effects import Effect, PatchJobStatus, Plan
from multikueue.core.finishing import sync_status
from multikueue.core.names import ObjectKey
from multikueue.core.situation import Situation
from multikueue.core.snapshot import Worker
from multikueue.core.verdicts import deactivate_copy
from multikueue.core.workloads import is_admitted, is_evicted, is_finished


def stop_evicted(situation: Situation) -> Plan:
    """Stop the copy that runs, remove those that do not, and bring the end home."""
    effects: list[Effect] = []
    running = False
    for worker in situation.workers:
        if worker.is_empty:
            continue
        running = running or (worker.reachable and situation.job_on(worker) is not None)
        effects += _stop(situation, worker)
    if not running:
        effects += _release(situation)
    return Plan(tuple(effects))


def _stop(situation: Situation, worker: Worker) -> Iterator[Effect]:
    copy, job = worker.workload, situation.job_on(worker)
    if not worker.reachable:
        return
    if copy is None or job is None or is_finished(copy):
        yield from clean(worker)
    elif is_admitted(copy) and not is_evicted(copy):
        if not is_true(copy, "DeactivationTarget"):
            yield deactivate_copy(situation, worker.name, copy)
    else:
        yield from sync_status(situation, job)


def _release(situation: Situation) -> Iterator[Effect]:
    """No copy can be seen running: say so on the manager's job, or its quota would be held for ever."""
    local = situation.job
    patch = situation.adapter.release_patch(local) if local is not None else None
    if local is not None and patch is not None:
        yield PatchJobStatus(situation.adapter.resource, ObjectKey.of(local), patch)
