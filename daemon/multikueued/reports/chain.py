"""What is wrong between a job's queue and the list of workers, on the manager: names that lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from multikueue.core.config.admission_check import config_name
from multikueue.core.config.quota import check_names
from multikueue.core.inventory.names import ACTIVE, CONFIG_LABEL, CONFLICT_CONDITION
from multikueue.core.inventory.ownership import is_placement_check, name_or_empty
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, name_of, namespace_of, shortened
from multikueued.reports.jobs import missing_queue
from multikueued.reports.objects import ManagerObjects, queue_name, similar
from multikueued.reports.queues import queue_problem
from multikueued.reports.remedies.remedy import Finding, filled

FIRST_WORKER: Final = (
    "multikueue worker add NAME --worker-context CONTEXT connects the first one, and makes the MultiKueueConfig "
    "(docs/workers.md); the daemon must run meanwhile; add --outside if it runs on this machine"
)

_BY_CHECKS: Final = ("AdmissionCheckInactive", "AdmissionCheckNotFound")
"""Reasons of Kueue why a ClusterQueue is not active."""
QUEUE_STOPPED: Final = "queue-stopped"
_TOLD: Final = 200
"""Bytes of what a check says: it lists all that is missing."""
_FROM_PLACEMENT: Final = (
    "a Placement has selected it: the daemon makes that MultiKueueCluster once what the event WorkerNotReady of the "
    "ManagedCluster names is there; with ocm.clusters.source: none it is yours to create"
)

_FILLED_LATER: Final = "nothing: the placement check of that name makes it, and its condition Active says why not yet"


def check_findings(objects: ManagerObjects, only: str = "") -> Iterator[Finding]:
    """What is wrong with our AdmissionChecks and the MultiKueueConfigs that they name.

    Args:
        objects: of the manager.
        only: the check to look at; empty: all.
    """
    if objects.unread & {ADMISSION_CHECK, MULTIKUEUE_CONFIG}:
        return
    for name, check in objects.our_checks.items():
        if only in ("", name):
            yield from _of_check(name, check, objects)
    if objects.our_checks and not only and CLUSTER_QUEUE not in objects.unread:
        yield from _unnamed(objects)


def _unnamed(objects: ManagerObjects) -> Iterator[Finding]:
    if not any(objects.check_of_queue(one) for one in objects.cluster_queues):
        why = f"no ClusterQueue names an AdmissionCheck of MultiKueue ({', '.join(sorted(objects.our_checks))})"
        remedy = "name one in spec.admissionChecksStrategy.admissionChecks of a ClusterQueue"
        yield Finding("no-check", "the manager", why, "", remedy)


def _of_check(name: str, check: Json, objects: ManagerObjects) -> Iterator[Finding]:
    where, active = f"AdmissionCheck {name}", condition(check, "Active")
    placed = _FILLED_LATER if config_name(check) in map(name_or_empty, _placements(objects)) else ""
    fresh = bool(config_name(check)) and not objects.configs and not objects.clusters
    if fresh:  # a manager that nobody has set up yet
        why = f'there is no worker cluster yet, and MultiKueueConfig "{config_name(check)}" does not exist'
        yield Finding("config-missing", where, why, "", placed or FIRST_WORKER)
    if active is None:
        why = "nobody has looked at this check: the daemon does not run, or has another controllerName"
        yield Finding("check-unseen", where, why, "", "start the daemon; compare controllerName on both sides")
    wanted, config = config_name(check), objects.config_of(name)
    told = str((active or {}).get("message") or "")
    if not wanted:
        remedy = "name a MultiKueueConfig in spec.parameters: apiGroup kueue.x-k8s.io, kind MultiKueueConfig, and name"
        yield Finding("check-parameters", where, "it does not refer to a MultiKueueConfig", told, remedy)
        return
    if fresh:
        return
    if config is None:
        guess = similar(wanted, map(name_of, objects.configs))
        why = f'it names MultiKueueConfig "{wanted}", which does not exist{guess}'
        yield Finding(
            "config-missing",
            where,
            why,
            told,
            placed or "correct spec.parameters.name, or create that MultiKueueConfig",
        )
        return
    yield from _of_config(name, config, told, objects)


def _of_config(check: str, config: Json, told: str, objects: ManagerObjects) -> Iterator[Finding]:
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    where, listed = f"MultiKueueConfig {name_of(config)}", objects.workers_of(check)
    known, placed = objects.clusters_by_name, CONFIG_LABEL in labels_of(config)
    free, missing = set(known) - set(listed), [name for name in listed if name not in known]
    similars = {name: "" if placed else similar(name, free) for name in missing}
    counts = Counter(similars.values())  # what looks like several of them is none that is meant
    guesses = {name: guess if counts[guess] == 1 else "" for name, guess in similars.items()}
    plain = [name for name, guess in guesses.items() if not guess]
    groups = [[name] for name, guess in guesses.items() if guess] + ([plain] if plain else [])
    for names in groups:
        first, more = f'"{names[0]}"', f" and {len(names) - 1} more" if len(names) > 1 else ""
        each = "of that name" if not more else "of these names"
        why = f"it lists {first}{more}, and there is no MultiKueueCluster {each}{guesses[names[0]]}"
        remedy = f"correct the name in spec.clusters, or create MultiKueueCluster {first}{more}"
        blocking = len(missing) == len(listed)
        told = shortened(told, _TOLD)
        yield Finding("cluster-missing", where, why, told, _FROM_PLACEMENT if placed else remedy).mild(not blocking)


def queue_findings(workload: Json, objects: ManagerObjects, *, delegated: bool = False) -> Iterator[Finding]:
    """What is wrong with the queues of a Workload on the manager.

    Args:
        workload: of any job with a queue.
        objects: of the manager.
        delegated: whether the job says that MultiKueue runs it.
    """
    wanted = queue_name(workload)
    local, told = (
        objects.local_queue_of(workload),
        str((condition(workload, "QuotaReserved") or {}).get("message") or ""),
    )
    if local is None and LOCAL_QUEUE in objects.unread:
        return
    if local is None:
        why = missing_queue(workload, objects)
        remedy = "correct the label kueue.x-k8s.io/queue-name of the job, or create that LocalQueue"
        yield Finding("local-queue-missing", f"LocalQueue {namespace_of(workload)}/{wanted}", why, told, remedy)
        return
    yield from _stopped(LOCAL_QUEUE, local, workload)
    queue = objects.cluster_queue_of(workload)
    if queue is None:
        for finding in without_cluster_queue(local, objects):
            yield attrs.evolve(finding, told=told)
        return
    if ADMISSION_CHECK not in objects.unread:
        stopped = list(_stopped(CLUSTER_QUEUE, queue, workload))
        yield from stopped or _of_cluster_queue(queue, objects, delegated)


def without_cluster_queue(local: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a LocalQueue leads to a ClusterQueue which does not exist."""
    target = str(dig(local, "spec", "clusterQueue") or "")
    if target in objects.queues_by_name or CLUSTER_QUEUE in objects.unread:
        return
    key, why = ObjectKey.of(local), f'it leads to ClusterQueue "{target}", which does not exist'
    remedy = "create that ClusterQueue, or correct spec.clusterQueue (it cannot be changed: make the LocalQueue again)"
    guess = similar(target, objects.queues_by_name)
    yield Finding("cluster-queue-missing", f"LocalQueue {key}", why + guess, "", remedy, object=f"LocalQueue {key}")


_RESUME: Final = (
    "whoever may change ClusterQueues resumes it: kubectl patch clusterqueue {name} --type merge -p "
    """'{{"spec": {{"stopPolicy": "None"}}}}'"""
)
_RESUME_LOCAL: Final = (
    "whoever may change LocalQueues resumes it: kubectl -n {namespace} patch localqueue {name} --type merge -p "
    """'{{"spec": {{"stopPolicy": "None"}}}}'"""
)


def _stopped(resource: Resource, queue: Json, workload: Json) -> Iterator[Finding]:
    """That somebody has stopped a queue: what has no quota yet gets none, however much room there is."""
    policy = dig(queue, "spec", "stopPolicy")
    if policy in (None, "None") or workloads.has_quota(workload):
        return
    key, kind = ObjectKey.of(queue), resource.gvk.kind
    remedy = filled(_RESUME_LOCAL if key.namespace else _RESUME, {"name": key.name, "namespace": key.namespace})
    yield Finding(
        QUEUE_STOPPED, f"{kind} {key.name}", f"somebody has stopped it (spec.stopPolicy: {policy})", "", remedy
    )


def _of_cluster_queue(queue: Json, objects: ManagerObjects, delegated: bool) -> Iterator[Finding]:
    where, missing = f"ClusterQueue {name_of(queue)}", list(missing_checks(queue, objects))
    yield from missing
    if not missing and objects.check_of_queue(queue) is None:
        here = "its jobs run on this cluster"
        nobody = "the job says that MultiKueue runs it, and nobody runs it"
        why = f"it has no check of MultiKueue: {nobody if delegated else here}"
        remedy = "name one in spec.admissionChecksStrategy.admissionChecks, or submit the job to another queue"
        yield Finding("queue-without-check", where, why, "", remedy).mild(not delegated)
    elif not missing and queue_problem(queue):
        yield from inactive_queue(queue, objects)
        yield from _of_placements(queue, objects)


def missing_checks(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a ClusterQueue names AdmissionChecks which do not exist."""
    known = {name_of(check) for check in objects.checks}
    for name in check_names(queue):
        if name not in known:
            why = f'it names AdmissionCheck "{name}", which does not exist{similar(name, known)}'
            remedy = "correct spec.admissionChecksStrategy.admissionChecks, or create that AdmissionCheck"
            yield Finding("check-missing", f"ClusterQueue {name_of(queue)}", why, queue_problem(queue), remedy)


def inactive_queue(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a ClusterQueue is not active, for another reason than a check of which other findings tell."""
    problem = queue_problem(queue)
    if problem and not follows_from_checks(queue, objects):
        remedy = "mend what it names; the other findings say more about checks"
        yield Finding("queue-inactive", f"ClusterQueue {name_of(queue)}", "it admits no jobs", problem, remedy)


def follows_from_checks(queue: Json, objects: ManagerObjects) -> bool:
    """Whether a ClusterQueue is inactive only because of AdmissionChecks, of which other findings tell."""
    if (condition(queue, "Active") or {}).get("reason") not in _BY_CHECKS:
        return False
    ours, named = objects.check_of_queue(queue), check_names(queue)
    workers = (objects.clusters_by_name.get(name, {}) for name in objects.workers_of(ours or ""))
    is_told = (
        any(check_findings(objects, ours)) or not all(is_true(one, "Active") for one in workers) if ours else False
    )
    mine = objects.our_checks.get(ours or "", {})
    return (
        any(name not in map(name_of, objects.checks) for name in named)
        or any(name_of(one) in named and not is_true(one, "Active") for one in _placements(objects))
        or (not is_true(mine, "Active") and is_told)
    )


def _of_placements(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """The placement checks that keep a ClusterQueue inactive: only they know why."""
    named = check_names(queue)
    for one in _placements(objects):
        if name_of(one) in named:
            yield from inactive_placement(one)


def inactive_placement(check: Json) -> Iterator[Finding]:
    """That a placement check is not active, that nobody handles it, or that OCM's addon does as well."""
    where, told = f"AdmissionCheck {name_of(check)}", condition(check, ACTIVE)
    conflict = condition(check, CONFLICT_CONDITION) if is_true(check, CONFLICT_CONDITION) else None
    remedy = "do what its words say; docs/ocm.md has a table of them"
    if conflict is None and told is None:
        why = "nobody handles it: the daemon's setting ocm.enabled is off, and OCM's addon does not run"
        yield Finding("placement-inactive", where, why, "", remedy)
    elif (found := conflict or told) is not None and (conflict is not None or found.get("status") != "True"):
        words = f"{found.get('reason')}: {found.get('message')}"
        why = "it is not active" if conflict is None else "OCM's addon handles it as well"
        yield Finding("placement-inactive", where, why, words, remedy)


def _placements(objects: ManagerObjects) -> Iterator[Json]:
    return (one for one in objects.checks if is_placement_check(one))
