"""What is wrong with a job itself, by what its Workload, its job and its config are; no message of ours is read.

What the manager's Kueue says of quota stands in its message and nowhere else, so that one is matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from multikueue.adapters.available import AVAILABLE, setting_for
from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import CheckState
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies import Finding, filled, row

MANAGER_RULES: Final = (
    row(
        "quota-too-small",
        r"insufficient quota for (?P<resource>[\w./-]+)|maximum capacity",
        "the job asks for more {resource} than ClusterQueue {cluster_queue} has here in all",
        "raise nominalQuota of {resource} here (the sum of the workers', as a rule), or request less",
    ),
    row(
        "quota-in-use",
        r"insufficient unused quota|waiting|pending|preempt",
        "the quota of ClusterQueue {cluster_queue} is in use here",
        "nothing: it gets quota when other jobs end; or raise the quota",
        blocking=False,
    ),
)
"""About quota on the manager."""


def time_is_over(workload: Json, where: str, told: str) -> Iterator[Finding]:
    """That a job has run for as long as it may."""
    if workloads.is_out_of_time(workload):
        remedy = "raise maximumExecutionTimeSeconds, and set spec.active of the Workload to true to have it run again"
        yield Finding("time-is-over", where, "it ran for longer than it may", told, remedy)


def why_rejected(workload: Json, job: Json | None, where: str, told: str, context: Mapping[str, str]) -> Finding:
    """Why a check of ours was Rejected: the job tells it, for Kueue resets the check a moment later.

    Args:
        workload: the manager's.
        job: behind it, as far as it could be read.
        where: what it is about.
        told: what the check says, or the eviction that followed.
        context: what remedies fill in.
    """
    found = workloads.owner(workload)
    # What the daemon's settings declare is not known here.
    rows = (one for one in AVAILABLE if found is not None and one.resource.gvk == found.gvk)
    kind, behind = next(rows, None), job or {}
    refusal = kind.not_delegated(behind, CONTROLLER_NAME) if kind is not None and behind else None
    if refusal is not None:
        why = f"the job does not say that MultiKueue runs it: {refusal}"
        remedy = (
            "create it again with managedBy set to that value, or enable the daemon's webhook, which fills it in "
            "(webhook.enabled: true)"
        )
        return Finding("not-delegated", where, why, told, remedy)
    if kind is not None and (acting := kind.acted_on(behind)):
        remedy = "then create the job again; or remove that controller from the manager, if its definitions are enough"
        return Finding("acted-on-here", where, acting, told, remedy)
    if found is None:
        remedy = filled("act on what the check says; then multikueue retry {job} -n {namespace}", context)
        why = "its check was rejected: it can never run through MultiKueue"
        return Finding("rejected", where, why, told, f"{remedy}, or create it again if it has to change")
    why = f'its check was rejected; as a rule because the daemon\'s settings do not name kind "{found.gvk}"'
    begin = "{setting} in the daemon's settings if it is not there, restart it, and then "
    remedy = filled(begin + "multikueue retry {job} -n {namespace}", {**context, "setting": setting_for(found.gvk)})
    return Finding("kind-not-enabled", where, why, told, remedy)


def waiting_findings(workload: Json, where: str, told: str, objects: ManagerObjects) -> Iterator[Finding]:
    """What a Workload with quota waits for.

    Args:
        workload: the manager's.
        where: what it is about.
        told: what the check says.
        objects: of the manager.
    """
    check = objects.check_of(workload)
    if check is None:
        return
    if not workloads.other_checks_ready(workload, check):
        why = "another AdmissionCheck of its ClusterQueue is not Ready: copies are made after that"
        remedy = "look at status.admissionChecks of the Workload: it names that check and what it says"
        yield Finding("other-checks", where, why, told, remedy)
    config, listed = objects.config_of(check), objects.workers_of(check)
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    known = [objects.clusters_by_name[one] for one in listed if one in objects.clusters_by_name]
    if config is not None and not known:
        why = "the MultiKueueConfig lists no worker that exists"
        yield Finding("no-worker-known", where, why, told, "list MultiKueueClusters that exist in spec.clusters")
    elif _is_unrecorded(workload, check) and len(known) > 1 and all(is_true(one, "Active") for one in known):
        # While a worker is away it may be the one that has it.
        why, remedy = "several workers have the job", "delete its copies on all but one of them: the check names them"
        yield Finding("recorded-twice", where, why, told, remedy)


def _is_unrecorded(workload: Json, check: str) -> bool:
    return workloads.check_state(workload, check) is CheckState.READY and workloads.cluster_name(workload) is None
