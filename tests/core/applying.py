"""What an API server makes of effects: the next snapshot, for tests that follow a decision to its end."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import attrs

from multikueue.core.model.conditions import conditions, replaced
from multikueue.core.model.labels import ADMISSION_MANAGER, FOREGROUND_FINALIZER, OWN_PREFIX
from multikueue.core.model.names import Json
from multikueue.core.model.objects import finalizers_of, is_terminating, uid
from tests.core.door import (
    MANAGER,
    WAITS,
    ApplyStatus,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    JobCopy,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Plan,
    Snapshot,
    Worker,
)

_uids = itertools.count(1)


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch applied, by the letter of RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def carry_out(seen: Snapshot, decided: Plan) -> Snapshot:
    """The snapshot once all effects have been carried out, and what was deleted in the foreground before has ended."""
    seen = attrs.evolve(seen, workers=tuple(map(_collected, seen.workers)))
    stopped = {effect.cluster for effect in decided.effects if isinstance(effect, ApplyStatus)}
    for effect in decided.effects:
        if isinstance(effect, DeleteJob) and effect.unless_stopped and effect.cluster in stopped:
            continue
        seen = _on_manager(seen, effect) if effect.cluster == MANAGER else _on_worker(seen, effect)
    return seen


def _on_manager(seen: Snapshot, effect: Effect) -> Snapshot:
    match effect:
        case ApplyStatus():
            return attrs.evolve(seen, workload=_applied(seen.workload or {}, effect))
        case PatchWorkload(patch=patch):
            return attrs.evolve(seen, workload=merged(seen.workload, patch))
        case PatchJobStatus(key=key, patch=patch):
            local = merged(seen.jobs[key.name], {"status": patch["status"]})
            return attrs.evolve(seen, jobs={**seen.jobs, key.name: local})
    return seen


def _applied(old: Json, effect: ApplyStatus) -> Json:
    """As Kueue's own field manager the applied fields replace the status, but for what is written under ours; there one
    check's entry changes, and conditions of ours."""
    result = copy.deepcopy(old)
    if effect.field_manager == ADMISSION_MANAGER:
        status = copy.deepcopy(effect.object["status"])
        status["conditions"] += [entry for entry in conditions(old) if entry["type"] == WAITS]
        return {**result, "status": status}
    (entry,) = effect.object["status"]["admissionChecks"]
    listed = result["status"]["admissionChecks"]
    result["status"]["admissionChecks"] = [entry if check["name"] == entry["name"] else check for check in listed]
    applied = effect.object["status"].get("conditions", ())
    ours = [entry["type"] for entry in conditions(result) if str(entry["type"]).startswith(OWN_PREFIX)]
    gone = {kind for kind in ours if kind not in {new_entry["type"] for new_entry in applied}}
    result["status"]["conditions"] = [entry for entry in conditions(result) if entry["type"] not in gone]
    for new_entry in applied:
        result["status"]["conditions"] = replaced(conditions(result), new_entry)
    return result


def _on_worker(seen: Snapshot, effect: Effect) -> Snapshot:
    changed = [_changed(worker, effect) if worker.name == effect.cluster else worker for worker in seen.workers]
    return attrs.evolve(seen, workers=tuple(changed))


def _changed(worker: Worker, effect: Effect) -> Worker:
    match effect:
        case CreateWorkload(object=body):
            assert worker.copy is None, "409: a Workload of that name exists"
            return attrs.evolve(worker, copy=_stored(body))
        case CreateJob(resource=resource, object=body):
            names = {job.object["metadata"]["name"] for job in (*worker.jobs, *worker.shared)}
            assert body["metadata"]["name"] not in names, "409"
            return attrs.evolve(worker, jobs=(*worker.jobs, JobCopy(resource, _stored(body))))
        case ApplyStatus():
            return attrs.evolve(worker, copy=_applied(worker.copy or {}, effect))
        case PatchWorkload(patch=patch):
            return attrs.evolve(worker, copy=merged(worker.copy, patch))
        case PatchJob(patch=patch):
            own, shared = (
                tuple(
                    attrs.evolve(copy, object=merged(copy.object, patch))
                    if uid(copy.object) == patch["metadata"]["uid"]
                    else copy
                    for copy in copies
                )
                for copies in (worker.jobs, worker.shared)
            )
            return attrs.evolve(worker, jobs=own, shared=shared)
        case DeleteWorkload():
            return attrs.evolve(worker, copy=_deleted(worker.copy or {}))
        case DeleteJob(uid=wanted, propagation=propagation):
            own, shared = (
                tuple(
                    left
                    for copy in copies
                    if (left := _ending(copy, propagation) if uid(copy.object) == wanted else copy) is not None
                )
                for copies in (worker.jobs, worker.shared)
            )
            return attrs.evolve(worker, jobs=own, shared=shared)
    return worker


def _ending(job: JobCopy, propagation: str) -> JobCopy | None:
    """The job as a DELETE leaves it: what is deleted in the foreground waits for what it owns."""
    held = set(finalizers_of(job.object)) | ({FOREGROUND_FINALIZER} if propagation == "Foreground" else set())
    left = _deleted(merged(job.object, {"metadata": {"finalizers": sorted(held)}}))
    return None if left is None else attrs.evolve(job, object=left, deleted_here=True)


def _collected(worker: Worker) -> Worker:
    """The worker once its garbage collector has seen the last pod of what is deleted in the foreground go."""
    own, shared = (
        tuple(left for copy in copies if (left := _without_pods(copy)) is not None)
        for copies in (worker.jobs, worker.shared)
    )
    return attrs.evolve(worker, jobs=own, shared=shared)


def _without_pods(job: JobCopy) -> JobCopy | None:
    held = finalizers_of(job.object)
    if not is_terminating(job.object) or FOREGROUND_FINALIZER not in held:
        return job
    rest = [finalizer for finalizer in held if finalizer != FOREGROUND_FINALIZER]
    if not rest:
        return None
    return attrs.evolve(job, object=merged(job.object, {"metadata": {"finalizers": rest}}))


def _stored(body: Json) -> Json:
    result = copy.deepcopy(body)
    number = next(_uids)
    result["metadata"] |= {"uid": f"uid-made-{number}", "resourceVersion": f"rv-made-{number}"}
    return result


def _deleted(obj: Json) -> Json | None:
    """Gone, unless a finalizer holds it."""
    if not obj["metadata"].get("finalizers"):
        return None
    result = copy.deepcopy(obj)
    result["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    return result
