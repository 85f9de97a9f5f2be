"""A Workload that a worker has, of a kind that is not registered any more: its Workload copy alone is followed.

A setting that was changed must not take what runs. The jobs of the kind cannot be seen, so their status is not synced;
the worker's Kueue still says on the Workload copy how the job ends, and stops it when the manager evicts or deletes it.
"""

from __future__ import annotations

from multikueue.core.model.copies import drift_patch
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import CheckState, has_had_owner, is_finished
from multikueue.core.workload.assigned import finish_by_copy, give_up, on_recorded_worker
from multikueue.core.workload.check_updates import retry, retry_vanished, tell_admitted
from multikueue.core.workload.effects import Effect, PatchWorkload, Plan
from multikueue.core.workload.possible_runs import LEFTOVER_GRACE
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker


def follow_copy(situation: Situation) -> Plan:
    """Decide by what the Workload copy on the recorded worker shows."""
    return on_recorded_worker(situation, _follow)


def _follow(situation: Situation, worker: Worker) -> Plan:
    copy = worker.workload
    if copy is None:
        return Plan((retry_vanished(situation),))
    if is_finished(copy):
        return finish_by_copy(situation, worker, copy)
    if (given_up := give_up(situation, worker, copy)) is not None:
        return given_up
    told: tuple[Effect, ...] = tuple(tell_admitted(situation, worker.name))
    if situation.state is CheckState.PENDING and not has_had_owner(copy):
        return _wait_for_job(situation, told)
    patch = drift_patch(situation.workload, copy)
    return Plan((*told, PatchWorkload(worker.name, ObjectKey.of(copy), patch)) if patch is not None else told)


def _wait_for_job(situation: Situation, told: tuple[Effect, ...]) -> Plan:
    """Its job may have been created by an earlier process; none can be created now."""
    left = LEFTOVER_GRACE - situation.snapshot.quiet_for
    if left.total_seconds() > 0:
        return Plan(told, look_again=left.total_seconds())
    return Plan((retry(situation, f"Its job cannot be created: {situation.snapshot.missing_setting}"),))
