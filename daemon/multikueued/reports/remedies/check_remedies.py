"""What is wrong with a job itself, by what its Workload, its job and its config are; no message of ours is read.

What the manager's Kueue says of quota stands in its message and nowhere else, so that one is matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from multikueue.adapters.registry import AVAILABLE, setting_for
from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import CheckState, Rejection
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding, finding

MANAGER_RULES: Final = RULES["manager-words"]
"""About quota on the manager."""


def time_is_over(workload: Json, where: str, told: str) -> Iterator[Finding]:
    """That a job has run for as long as it may."""
    if workloads.is_out_of_time(workload):
        yield finding("time-is-over", where, told)


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
    remedy = REJECTED.get(workloads.verdict(workload) or by_job or "", REJECTED_SOMEHOW)
    return remedy.about(where, told, {**context, **words})


REJECTED_SOMEHOW: Final = REMEDIES["rejected"]
REJECTED: Final = {row.rejection: row for row in REMEDIES.values() if row.rejection}
"""By why our check was Rejected: a `Rejection`."""


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
        yield finding("other-checks", where, told)
    config, listed = objects.config_of(check), objects.workers_of(check)
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    known = [objects.clusters_by_name[one] for one in listed if one in objects.clusters_by_name]
    if config is not None and not known:
        yield finding("no-worker-known", where, told)
    elif _is_unrecorded(workload, check) and len(known) > 1 and all(is_true(one, "Active") for one in known):
        # While a worker is away it may be the one that has it.
        yield finding("recorded-twice", where, told)


def _is_unrecorded(workload: Json, check: str) -> bool:
    return workloads.check_state(workload, check) is CheckState.READY and workloads.cluster_name(workload) is None
