"""What is wrong between a job's queue and the list of workers, on the manager: names that lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.config.quota import check_names
from multikueue.core.inventory.names import ACTIVE, CONFIG_LABEL, CONFLICT_CONDITION
from multikueue.core.inventory.ownership import is_placement_check, name_or_empty
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true, message
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
)
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.name_lists import suggestion
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, name_of, shortened
from multikueue.core.model.workloads import CheckState
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.worker_queues import is_stopped, leads_to

_BY_CHECKS: Final = ("AdmissionCheckInactive", "AdmissionCheckNotFound")
"""Reasons of Kueue why a ClusterQueue is not active."""
_PLACEMENT_REMEDIES: Final = {
    "NoClustersAvailable": "placement-inactive@unselective",
    "PlacementNotFound": "placement-inactive@absent",
}
"""Keys of remedies by the reason of a placement check that says too little of what to do."""
_TOLD: Final = 200
"""Bytes of what a check says: it lists all that is missing."""


def check_findings(objects: ManagerObjects, *only: str) -> Iterator[Finding]:
    """What is wrong with our AdmissionChecks and the MultiKueueConfigs that they name.

    Args:
        objects: of the manager.
        only: the checks to look at; none: all.
    """
    if objects.unread & {ADMISSION_CHECK, MULTIKUEUE_CONFIG}:
        return
    for name, check in objects.our_checks.items():
        if not only or name in only:
            yield from _of_check(name, check, objects)
    if objects.our_checks and not only and CLUSTER_QUEUE not in objects.unread:
        yield from _unnamed(objects)


def _unnamed(objects: ManagerObjects) -> Iterator[Finding]:
    """That no queue leads to our checks, unless one may that does not exist: another finding tells of that."""
    lost = any(True for local in objects.local_queues for _ in without_cluster_queue(local, objects))
    lost = lost or any(True for queue in objects.cluster_queues for _ in missing_checks(queue, objects))
    if not lost and not any(objects.check_of_queue(queue) for queue in objects.cluster_queues):
        yield finding("no-check@unnamed", "the manager", checks=", ".join(sorted(objects.our_checks)))


def _of_check(name: str, check: Json, objects: ManagerObjects) -> Iterator[Finding]:
    where, words = f"AdmissionCheck {name}", message(check, "Active")
    wanted, config = config_name(check), objects.configs_by_check.get(name)
    fresh = bool(wanted) and not objects.configs and not objects.clusters
    if fresh:  # a manager that nobody has set up yet
        yield finding("config-missing@first", where, instead=_placed(wanted, objects), wanted=wanted)
    if condition(check, "Active") is None:
        controller = str(dig(check, "spec", "controllerName") or "")
        guess = suggestion(controller, [CONTROLLER_NAME]) if controller != CONTROLLER_NAME else ""
        yield finding("check-unseen", where, controller=controller, guess=guess)
    if not wanted:
        yield finding("check-parameters", where, words)
        return
    if fresh:
        return
    if config is None:
        guess = suggestion(wanted, map(name_of, objects.configs))
        instead = _placed(wanted, objects)
        yield finding("config-missing", where, words, instead=instead, wanted=wanted, guess=guess)
        return
    yield from _of_config(config, shortened(words, _TOLD), objects)


def _placed(config: str, objects: ManagerObjects) -> str:
    """The key of the remedy where a placement fills a config; empty: none fills one of that name."""
    return "config-missing@placed" if config in map(name_or_empty, filter(is_placement_check, objects.checks)) else ""


def _of_config(config: Json, said: str, objects: ManagerObjects) -> Iterator[Finding]:
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    where, listed = f"MultiKueueConfig {name_of(config)}", clusters(config)
    known, placed = objects.clusters_by_name, CONFIG_LABEL in labels_of(config)
    free, missing = set(known) - set(listed), [name for name in listed if name not in known]
    similars = {name: "" if placed else suggestion(name, free) for name in missing}
    counts = Counter(similars.values())  # what looks like several of them is none that is meant
    guesses = {name: guess if counts[guess] == 1 else "" for name, guess in similars.items()}
    apart = [name for name in missing if guesses[name] or name in objects.jobs_by_worker]
    plain = [name for name in missing if name not in apart]
    groups = [[name] for name in apart] + ([plain] if plain else [])
    for names in groups:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        words = {"first": names[0], "more": more, "each": f"of {'these names' if more else 'that name'}"}
        instead, guess = "cluster-missing@placed" if placed else "", guesses[names[0]]
        had = f"MultiKueueCluster {names[0]}" if names[0] in objects.jobs_by_worker else ""
        missing_worker = finding("cluster-missing", where, said, instead=instead, guess=guess, had=had, **words)
        yield missing_worker.mild(len(missing) < len(listed))


def queue_findings(chain: Chain, *, delegated: bool = False) -> Iterator[Finding]:
    """What is wrong with the queues of a Workload on the manager.

    Args:
        chain: of any Workload with a queue.
        delegated: whether the job says that MultiKueue runs it.
    """
    local, queue, unread = chain.local_queue, chain.cluster_queue, chain.objects.unread
    words = message(chain.workload, "QuotaReserved")
    if local is None and LOCAL_QUEUE in unread:
        return
    if local is None:
        yield finding("local-queue-missing", f"LocalQueue {chain.queue}", words, guess=chain.queue_meant)
        return
    waits = not workloads.has_quota(chain.workload)
    stopped = [*stopped_queue(LOCAL_QUEUE, local)] if waits else []
    yield from stopped
    if queue is None and CLUSTER_QUEUE in unread:
        yield from () if stopped else _of_unread_queue(chain, local, delegated)
        return
    if queue is None:
        yield from (attrs.evolve(broken, told=words) for broken in without_cluster_queue(local, chain.objects))
        return
    if ADMISSION_CHECK not in unread:
        stopped = [*stopped_queue(CLUSTER_QUEUE, queue)] if waits else []
        yield from stopped or _of_cluster_queue(queue, chain.objects, delegated)


def _of_unread_queue(chain: Chain, local: Json, delegated: bool) -> Iterator[Finding]:
    """What is wrong with a ClusterQueue that may not be read, by what its LocalQueue and the Workload say."""
    where, problem = f"LocalQueue {name_of(local)}", queue_problem(local)
    if chain.is_admitted_unchecked:
        yield finding("queue-without-check@delegated" if delegated else "queue-without-check", where)
    elif problem and not workloads.has_quota(chain.workload):
        yield finding("queue-inactive", where, message(chain.workload, "QuotaReserved") or problem)


def without_cluster_queue(local: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a LocalQueue leads to a ClusterQueue which does not exist."""
    target = leads_to(local)
    if target in objects.queues_by_name or CLUSTER_QUEUE in objects.unread:
        return
    key, guess = str(ObjectKey.of(local)), suggestion(target, objects.queues_by_name)
    yield finding("cluster-queue-missing", f"LocalQueue {key}", local=key, target=target, guess=guess)


def stopped_queue(resource: Resource, queue: Json) -> Iterator[Finding]:
    """That somebody has stopped a queue: what has no quota yet gets none, however much room there is."""
    if not is_stopped(queue):
        return
    key, row = ObjectKey.of(queue), "queue-stopped@local" if resource is LOCAL_QUEUE else "queue-stopped"
    where, words = f"{resource.gvk.kind} {key.name}", {"name": key.name, "namespace": key.namespace}
    yield finding(row, where, policy=str(queue["spec"]["stopPolicy"]), **words)


def _of_cluster_queue(queue: Json, objects: ManagerObjects, delegated: bool) -> Iterator[Finding]:
    where, missing = f"ClusterQueue {name_of(queue)}", list(missing_checks(queue, objects))
    yield from missing
    if not missing and objects.check_of_queue(queue) is None:
        yield finding("queue-without-check@delegated" if delegated else "queue-without-check", where)
    elif not missing and queue_problem(queue):
        yield from inactive_queue(queue, objects)
        yield from _of_placements(queue, objects)


def missing_checks(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a ClusterQueue names AdmissionChecks which do not exist."""
    known = objects.checks_by_name
    for name in check_names(queue):
        if name not in known:
            where, guess = f"ClusterQueue {name_of(queue)}", suggestion(name, known)
            yield finding("check-missing", where, queue_problem(queue), name=name, guess=guess)


def inactive_queue(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """That a ClusterQueue is not active, for another reason than a check of which other findings tell."""
    problem = queue_problem(queue)
    if problem and not follows_from_checks(queue, objects):
        is_flavor = (condition(queue, "Active") or {}).get("reason") == "FlavorNotFound"
        instead = "queue-inactive@flavor" if is_flavor else ""
        yield finding("queue-inactive", f"ClusterQueue {name_of(queue)}", problem, instead=instead)


def follows_from_checks(queue: Json, objects: ManagerObjects) -> bool:
    """Whether a ClusterQueue is inactive only because of AdmissionChecks, of which other findings tell."""
    if (condition(queue, "Active") or {}).get("reason") not in _BY_CHECKS:
        return False
    named = check_names(queue)
    waiting = [name for name in objects.checks_of_queue(queue) if not is_true(objects.our_checks[name], "Active")]
    if any(name not in objects.checks_by_name for name in named):
        return True
    if any(name_of(check) in named and not is_true(check, "Active") for check in placement_checks(objects)):
        return True
    if not waiting:
        return False
    workers = (objects.said_of(name) for check in waiting for name in objects.workers_of(check))
    return any(check_findings(objects, *waiting)) or not all(said.connected for said in workers)


def _of_placements(queue: Json, objects: ManagerObjects) -> Iterator[Finding]:
    """The placement checks that keep a ClusterQueue inactive: only they know why."""
    named = check_names(queue)
    for placement in placement_checks(objects):
        if name_of(placement) in named:
            yield from inactive_placement(placement)


def inactive_placement(check: Json) -> Iterator[Finding]:
    """That a placement check is not active, that nobody handles it, or that OCM's addon does as well."""
    where, active = f"AdmissionCheck {name_of(check)}", condition(check, ACTIVE)
    conflict = condition(check, CONFLICT_CONDITION) if is_true(check, CONFLICT_CONDITION) else None
    if conflict is None and active is None and not is_placement_check(check):
        controller = str(dig(check, "spec", "controllerName") or "")
        guess = suggestion(controller, [PLACEMENT_CONTROLLER])
        yield finding("placement-inactive@other", where, controller=controller, guess=guess, ours=PLACEMENT_CONTROLLER)
    elif conflict is None and active is None:
        yield finding("placement-inactive@unhandled", where)
    elif (wrong := conflict or active) is not None and (conflict is not None or wrong.get("status") != "True"):
        reason = str(wrong.get("reason"))
        words = f"{reason}: {wrong.get('message')}"
        row = "placement-inactive" if conflict is None else "placement-inactive@twice"
        instead = _PLACEMENT_REMEDIES.get(reason, "")
        yield finding(row, where, words, instead=instead, placement=name_or_empty(check))


def placement_checks(objects: ManagerObjects) -> Iterator[Json]:
    """The AdmissionChecks that stand for a Placement: by `controllerName`, or by a Placement as parameters."""
    for check in objects.checks:
        names_one = dig(check, "spec", "parameters", "kind") == PLACEMENT.gvk.kind
        if is_placement_check(check) or (names_one and name_of(check) not in objects.our_checks):
            yield check


def queue_problem(queue: Json) -> str:
    """Why a ClusterQueue or LocalQueue takes no jobs; empty: it does, or does not say."""
    active = condition(queue, "Active")
    return "" if active is None or active.get("status") == "True" else str(active.get("message") or name_of(queue))


@attrs.frozen
class ChainLink:
    """One object on the way."""

    kind: str
    name: str
    state: str
    """`Active`, `Inactive`, `Missing`, the state of a Workload or of a check."""
    ok: bool
    told: str
    """What it says; of a check without what workers say, which stands in their answers."""


def links_of(chain: Chain, job: Json | None, report: JobReport, answering: Collection[str]) -> Iterator[ChainLink]:
    """What each object says, in order, up to the first that is missing; `answering` are the workers with answers."""
    objects = chain.objects
    yield ChainLink("Job", report.job, str(report.state), report.state is not JobState.REJECTED, managed_by(job))
    yield _queue(LOCAL_QUEUE, str(chain.queue), chain.local_queue, objects)
    if chain.local_queue is None and not chain.cluster_queue_name and LOCAL_QUEUE not in objects.unread:
        return
    yield _queue(CLUSTER_QUEUE, chain.cluster_queue_name, chain.cluster_queue, objects)
    yield _workload(chain.workload, report)
    if not chain.checks:
        return
    name, words = chain.checks[0], chain.says.without(answering).render()
    ok, state = chain.check_state not in (CheckState.REJECTED, CheckState.RETRY), str(chain.check_state)
    yield ChainLink("AdmissionCheck", name, state if chain.check else "not on it yet", ok, words)
    if chain.config is None and MULTIKUEUE_CONFIG in objects.unread:
        return
    if chain.config is None:
        yield ChainLink("MultiKueueConfig", "", "Missing", False, message(objects.our_checks[name], "Active"))
        return
    read = MULTIKUEUE_CLUSTER not in objects.unread
    complete = not read or objects.clusters_by_name.keys() >= set(chain.workers)
    state = "Active" if is_true(objects.our_checks[name], "Active") else "Inactive"
    words = f"lists {', '.join(chain.workers) or 'nobody'}"
    yield ChainLink("MultiKueueConfig", name_of(chain.config), state, complete, words)


def managed_by(job: Json | None) -> str:
    """What a job says of who runs it."""
    managed = dig(job or {}, "spec", "managedBy")
    return f"managedBy {managed}" if managed else ""


def _queue(resource: Resource, name: str, queue: Json | None, objects: ManagerObjects) -> ChainLink:
    kind = resource.gvk.kind
    if queue is None and resource in objects.unread:
        return ChainLink(kind, name, "Unknown", True, "you may not read it")
    if queue is None:
        return ChainLink(kind, name, "Missing", False, "it does not exist")
    active = condition(queue, "Active")
    if active is None:
        return ChainLink(kind, name, "Unknown", True, "it says nothing yet")
    ok = active.get("status") == "True"
    return ChainLink(kind, name, "Active" if ok else "Inactive", ok, "" if ok else message(queue, "Active"))


def _workload(workload: Json, report: JobReport) -> ChainLink:
    state = "QuotaReserved" if workloads.has_quota(workload) else "Pending"
    if workloads.is_finished(workload):
        state = "Finished"
    elif workloads.is_admitted(workload):
        state = "Admitted"
    ok = state != "Pending" or condition(workload, "QuotaReserved") is None
    return ChainLink("Workload", report.workload, state, ok, "" if ok else message(workload, "QuotaReserved"))
