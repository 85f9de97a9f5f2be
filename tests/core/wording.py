"""Effects in words, so that a table of expectations can be read and compared with the state matrix."""

from __future__ import annotations

from collections.abc import Mapping

from multikueue import PlanSettings
from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.conditions import message as condition_message
from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import VERDICT, check
from tests.core.door import (
    MANAGER,
    SETTINGS,
    WAITS,
    AnnounceWorkload,
    ApplyStatus,
    CheckDependencies,
    CountAdmitted,
    CountRejections,
    CreateDependencies,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    DependencyEffect,
    Effect,
    LookForPods,
    OwnDependencies,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Plan,
    Snapshot,
    decide,
)


def in_words(seen: Snapshot, decided: Plan) -> list[str]:
    """The effects of a plan, in order: `create workload on w1`, `admit on w1`, `retry: Admitting remote lost`."""
    return [_word(seen, effect) for effect in decided.effects]


def words(seen: Snapshot, dispatcher: Dispatcher | None = None, settings: PlanSettings = SETTINGS) -> list[str]:
    """The effects that are decided on where this is seen."""
    return in_words(seen, decide(seen, dispatcher, settings))


def verdict_written(decided: Plan) -> str | None:
    """Why a plan Rejects our check, for programs."""
    (written,) = (effect.object for effect in decided.effects if isinstance(effect, ApplyStatus))
    return (condition(written, VERDICT) or {}).get("reason")


def _word(seen: Snapshot, effect: Effect) -> str:
    match effect:
        case ApplyStatus(cluster, body, field_manager):
            return _status_word(seen, body, field_manager) if cluster == MANAGER else _copy_status_word(cluster, body)
        case PatchJobStatus() | CountRejections():
            return "copy job status" if isinstance(effect, PatchJobStatus) else "count rejections"
        case AnnounceWorkload(kind):
            return "tell" if kind == "Normal" else "warn"
        case CountAdmitted(queue, where):
            return f"count {queue} {where}"
        case CreateWorkload(cluster):
            return f"create workload on {cluster}"
        case PatchWorkload(cluster):
            return f"patch workload on {cluster}"
        case DeleteWorkload(cluster):
            return f"delete workload on {cluster}"
        case CreateJob(cluster):
            return f"create job on {cluster}"
        case PatchJob() | DeleteJob():
            return _job_word(effect)
        case LookForPods() | DependencyEffect():
            about = (effect.selector,) if isinstance(effect, LookForPods) else map(str, effect.dependencies)
            return f"{_BESIDE_IT[type(effect)]} {', '.join(about)} on {effect.cluster}"
    raise AssertionError(f"nobody has words for {effect}")


_BESIDE_IT: Mapping[type, str] = {
    LookForPods: "look for pods with",
    CheckDependencies: "look for",
    CreateDependencies: "make or share",
    OwnDependencies: "have the job own",
}


def _job_word(effect: PatchJob | DeleteJob) -> str:
    if isinstance(effect, PatchJob):
        return f"patch job on {effect.cluster}"
    return f"delete job on {effect.cluster}{' unless it is stopped' if effect.unless_stopped else ''}"


def _status_word(seen: Snapshot, body: Json, field_manager: str) -> str:
    assert seen.workload is not None, "a status was written for a Workload that is gone"
    name = seen.check or ""
    entry = check(body, name) or {}
    base = str(entry.get("message", "")).split(", Previously")[0].split(", resetting for re-admission")[0]
    if is_true(body, "Evicted") and not is_true(seen.workload, "Evicted"):
        return f"give back: {condition_message(body, 'Evicted')}"
    if field_manager != ADMISSION_MANAGER and entry.get("state") == (check(seen.workload, name) or {}).get("state"):
        return f"say {entry['message']}" if condition(body, WAITS) is not None else "end waits"
    if field_manager != ADMISSION_MANAGER or entry.get("state") == "Retry":
        return f"{str(entry['state']).lower()}: {base}"
    if is_true(body, "Finished"):
        return f"finish {(condition(body, 'Finished') or {})['reason']}"
    if is_true(body, "DeactivationTarget") and not is_true(seen.workload, "DeactivationTarget"):
        return f"deactivate {(condition(body, 'DeactivationTarget') or {})['reason']}"
    turned = entry.get("state") != (check(seen.workload, name) or {}).get("state")
    where = dig(body, "status", "clusterName")
    if entry.get("message") == f'The workload got reservation on "{where}", its job is being created there':
        return f"record {where}"
    if turned or dig(body, "status", "clusterName") != dig(seen.workload, "status", "clusterName"):
        return f"admit on {dig(body, 'status', 'clusterName')} as {entry['state']}"
    if dig(body, "status", "admission") != dig(seen.workload, "status", "admission"):
        return "tell topology"
    names = [dig(obj, "status", "nominatedClusterNames") or [] for obj in (body, seen.workload)]
    if names[0] == names[1]:
        return f"say {entry['message']}"
    return "nominate " + " ".join(names[0] or ["nobody"])


def _copy_status_word(cluster: str, body: Json) -> str:
    if is_true(body, "DeactivationTarget"):
        return f"stop on {cluster}"
    opened = any(gate["position"] == "Open" for gate in dig(body, "status", "preemptionGates") or [])
    assert opened, "a copy's status was written for no reason we know"
    return f"open gate on {cluster}"
