"""What is wrong with a job itself, by what its Workload, its job and its config are; no message of ours is read.

What the manager's Kueue says of quota stands in its message and nowhere else, so that one is matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from multikueue.adapters.registry import AVAILABLE, setting_for
from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import CheckState, Rejection
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Finding, Remedy, filled, row

NOT_COVERED: Final = r"resource (?P<resource>[\w./-]+) unavailable in ClusterQueue"
NOT_SELECTED: Final = r"namespace doesn't match ClusterQueue selector"
NO_FLAVOR: Final = r"flavor [\w.-]+ doesn't match node affinity|untolerated taint .* in flavor"
"""Words of Kueue for what no time changes, here and on workers."""
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
    row(
        "quota-too-small",
        NOT_COVERED,
        "the job asks for {resource}, of which ClusterQueue {cluster_queue} has no quota here",
        "name {resource} in coveredResources and in each flavor of a resourceGroup here, or do not request it",
    ),
    row(
        "namespace-not-selected",
        NOT_SELECTED,
        'ClusterQueue {cluster_queue} takes no jobs of namespace "{namespace}" here',
        "label the namespace as its spec.namespaceSelector asks, or widen that",
    ),
    row(
        "no-flavor",
        NO_FLAVOR,
        "no flavor of ClusterQueue {cluster_queue} takes the job's pods here",
        "compare nodeSelector, affinity and tolerations of the job with nodeLabels and nodeTaints of its flavors",
    ),
)
"""About quota on the manager."""


def time_is_over(workload: Json, where: str, told: str, context: Mapping[str, str]) -> Iterator[Finding]:
    """That a job has run for as long as it may. `context` is what the remedy fills in."""
    if workloads.is_out_of_time(workload):
        yield Finding(
            "time-is-over", where, "it ran for longer than it may", told, filled(_more_time(workload), context)
        )


def _more_time(workload: Json) -> str:
    """Setting `spec.active` is not enough: Kueue v0.19.2 leaves a DeactivationTarget behind, which takes it back.

    Whoever deletes the Workload of pods ends them.
    """
    owner = workloads.owner(workload)
    if owner is None or owner.gvk.kind == "Pod":
        return "create it again with more time: kueue.x-k8s.io/max-exec-time-seconds"
    return (
        "give the job more time by its label kueue.x-k8s.io/max-exec-time-seconds; then have Kueue make its Workload "
        "anew, and it runs again: kubectl -n {namespace} delete workload {workload}"
    )


def why_rejected(workload: Json, job: Json | None, where: str, told: str, context: Mapping[str, str]) -> Finding:
    """Why a check was Rejected: a condition tells it if it is ours, for Kueue resets the check a moment later.

    Of an older version there is none; then the job tells whatever it can.

    Args:
        workload: the manager's.
        job: behind it, as far as it could be read.
        where: what it is about.
        told: what the check says, or the eviction that followed.
        context: what remedies fill in.
    """
    owner, behind = workloads.owner(workload), job or {}
    kind = next((one for one in AVAILABLE if owner is not None and one.resource.gvk == owner.gvk), None)
    refusal = kind.not_delegated(behind, CONTROLLER_NAME) if kind is not None and behind else None
    acting = kind.acted_on(behind) if kind is not None else ""
    by_job = Rejection.NOT_DELEGATED if refusal is not None else Rejection.ACTED_ON_HERE if acting else None
    if owner is None:
        return REJECTED_SOMEHOW.about(where, told, context)
    words = {
        "refusal": refusal or "it names somebody else",
        "unfit": (kind.refused(behind) if kind is not None else "") or "a rule of the job's kind fails for it",
        "acting": acting or "a controller of the manager acts on the job, and would run it here, too",
        "gvk": str(owner.gvk),
        "setting": setting_for(owner.gvk),
    }
    remedy = REJECTED.get(workloads.verdict(workload) or by_job, REJECTED_SOMEHOW)
    return remedy.about(where, told, {**context, **words})


_RETRY: Final = "multikueue retry {job} -n {namespace}"
REJECTED_SOMEHOW: Final = Remedy(
    "rejected",
    "an AdmissionCheck has rejected it",
    f"act on what the check says; then {_RETRY}, or create it again if it has to change",
)
REJECTED: Final[Mapping[Rejection | None, Remedy]] = MappingProxyType(
    {
        Rejection.KIND_NOT_ENABLED: Remedy(
            "kind-not-enabled",
            'its check was rejected, because the daemon\'s settings do not name kind "{gvk}"',
            f"{{setting}} in the daemon's settings, restart it, and then {_RETRY}",
        ),
        Rejection.NOT_DELEGATED: Remedy(
            "not-delegated",
            "the job does not say that MultiKueue runs it: {refusal}",
            "create it again with managedBy set to that value, or enable the daemon's webhook, which fills it in "
            "(webhook.enabled: true)",
        ),
        Rejection.ACTED_ON_HERE: Remedy(
            "acted-on-here",
            "{acting}",
            "then create the job again; or remove that controller from the manager, if its definitions are enough",
        ),
        Rejection.NOT_COPIED: Remedy(
            "cannot-be-copied",
            "no copy can be made of it: {unfit}",
            "correct the job, or the declaration of its kind in the daemon's settings, and create it again",
        ),
        Rejection.NOT_TAKEN: Remedy(
            "not-taken",
            "no worker took it for as long as giveUp.after of its dispatch profile says",
            f"see that a worker has room for it, or give it a profile that waits for longer; then {_RETRY}",
        ),
    }
)
"""By why our check was Rejected."""


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
