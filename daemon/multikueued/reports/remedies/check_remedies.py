"""What is wrong with a job itself, by what its Workload, its job and its config are; no message of ours is read.

What the manager's Kueue says of quota stands in its message and nowhere else, so that one is matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from multikueue.adapters.registry import AVAILABLE, setting_for
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME, JOB_UID_LABEL, QUEUE_LABEL, RETRIABLE_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, labels_of
from multikueue.core.model.workloads import CheckState, Rejection
from multikueued.reports.jobs import JobReport
from multikueued.reports.objects import Chain
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding, finding

MANAGER_RULES: Final = RULES["manager-words"]
"""About quota on the manager."""


def time_is_over(workload: Json, where: str, message: str, context: Mapping[str, str]) -> Iterator[Finding]:
    """That a job has run for as long as it may. `context` is what the remedy fills in."""
    if workloads.is_out_of_time(workload):
        yield finding("time-is-over", where, message, instead=_more_time(workload), **context)


def _more_time(workload: Json) -> str:
    """The row that says how. Setting `spec.active` is not enough: Kueue v0.19.2 leaves a DeactivationTarget behind,
    which takes it back. Whoever deletes the Workload of pods ends them.
    """
    owner = workloads.owner(workload)
    return "time-is-over@pods" if owner is None or owner.gvk.kind == "Pod" else "time-is-over"


def why_rejected(workload: Json, job: Json | None, where: str, message: str, context: Mapping[str, str]) -> Finding:
    """Why a check was Rejected: a condition tells it if it is ours, for Kueue resets the check a moment later.

    Of an older version there is none; then the job tells whatever it can.

    Args:
        workload: the manager's.
        job: behind it, as far as it could be read.
        where: what it is about.
        message: what the check says, or the eviction that followed.
        context: what remedies fill in.
    """
    owner, behind = workloads.owner(workload), job or {}
    kind = next((each for each in AVAILABLE if owner is not None and each.resource.gvk == owner.gvk), None)
    refusal = kind.not_delegated(behind, CONTROLLER_NAME) if kind is not None and behind else None
    acting = kind.acted_on(behind) if kind is not None else ""
    by_job = Rejection.NOT_DELEGATED if refusal is not None else Rejection.ACTED_ON_HERE if acting else None
    if owner is None:
        return REJECTED_SOMEHOW.about(where, message, context)
    words = {
        "refusal": refusal or "it names nobody, or somebody else",
        "unfit": (kind.refused(behind) if kind is not None else "") or "a rule of the job's kind fails for it",
        "acting": acting or "a controller of the manager acts on the job, and would run it here, too",
        "gvk": str(owner.gvk),
        "setting": setting_for(owner.gvk),
    }
    remedy = REJECTED.get(workloads.verdict(workload) or by_job or "", REJECTED_SOMEHOW)
    return remedy.about(where, message, {**context, **words})


REJECTED_SOMEHOW: Final = REMEDIES["rejected"]
REJECTED: Final = {row.rejection: row for row in REMEDIES.values() if row.rejection}
"""By why our check was Rejected: a `Rejection`."""


def waiting_findings(chain: Chain, where: str, message: str) -> Iterator[Finding]:
    """What a Workload with quota waits for.

    Args:
        chain: of the Workload.
        where: what it is about.
        message: what the check says.
    """
    check, objects = chain.check, chain.objects
    if check is None:
        return
    if not workloads.other_checks_ready(chain.workload, check):
        yield finding("other-checks", where, message)
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    clusters = map(objects.clusters_by_name.get, chain.workers)
    known = [cluster for cluster in clusters if cluster is not None]
    unrecorded = chain.check_state is CheckState.READY and workloads.cluster_name(chain.workload) is None
    if check in objects.configs_by_check and not known:
        yield finding("no-worker-known", where, message)
    elif unrecorded and len(known) > 1 and all(is_true(cluster, "Active") for cluster in known):
        # While a worker is away it may be the one that has it.
        yield finding("recorded-twice", where, message)


def deleted_job_findings(workload: Json, report: JobReport) -> Iterator[Finding]:
    """That its job was deleted by a client that leaves behind what belongs to it: then nothing else names it.

    Args:
        workload: the manager's.
        report: its line.
    """
    where = f"Workload {report.workload}"
    if workloads.finish_reason(workload) == workloads.OWNER_NOT_FOUND:
        yield finding("job-deleted@finished", where, **report.words)
    elif workloads.owner(workload) is None and JOB_UID_LABEL in labels_of(workload):
        yield finding("job-deleted", where, **report.words)


POD_MISSING: Final = REMEDIES["pod-missing"]
_REPLACED_AFTER: Final = timedelta(minutes=1)
"""How long who made a group of pods has to replace one of them, before somebody has to act."""


def group_findings(workload: Json, report: JobReport, now: datetime) -> Iterator[Finding]:
    """That its Kueue waits for a new pod of a group, unless the group says that its pods are not replaced.

    Args:
        workload: the manager's.
        report: its line.
        now: the wall clock.
    """
    waits = condition(workload, "WaitingForReplacementPods") or {}
    pods = (annotations_of(pod_set.get("template") or {}) for pod_set in dig(workload, "spec", "podSets") or ())
    if waits.get("status") != "True" or any(noted.get(RETRIABLE_ANNOTATION) == "false" for noted in pods):
        return
    missing = POD_MISSING.about(f"Workload {report.workload}", str(waits.get("message") or ""), report.words)
    since = parse_timestamp(waits.get("lastTransitionTime"))
    yield missing.mild(since is not None and now - since < _REPLACED_AFTER)


def queue_changes(report: JobReport, job: Json, workload: Json) -> Iterator[Finding]:
    """That a job was given another queue while it has quota: Kueue tries that in vain until the quota is given back.

    Args:
        report: its line.
        job: the manager's.
        workload: the manager's.
    """
    wanted = labels_of(job).get(QUEUE_LABEL, "")
    if wanted and wanted != report.queue and workloads.has_quota(workload):
        yield finding("queue-changed", report.job, wanted=wanted, **report.words)
