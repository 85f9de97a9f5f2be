"""Why a job was rejected. The manager's Kueue resets the check a moment later, so events and the job tell it, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from multikueue.adapters.available import AVAILABLE, setting_for
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import Owner, owner
from multikueued.reports.check_remedies import CHECK_RULES
from multikueued.reports.events import EventReport
from multikueued.reports.remedies import Finding, filled, found_by

_REJECTED: Final = "were rejected"
"""In Kueue's words about a Workload that it deactivated because a check was Rejected."""


def why_rejected(
    workload: Json, job: Json | None, told: str, events: Sequence[EventReport], context: Mapping[str, str]
) -> Finding | None:
    """The reason why a check of ours was Rejected; None if nothing tells that it was.

    Args:
        workload: the manager's.
        job: behind it, as far as it could be read.
        told: what the check says, or the eviction that followed.
        events: about both, in the order of time.
        context: what remedies fill in.
    """
    where = f"Workload {context.get('workload', '')}".rstrip()
    notes = [event.note for event in reversed(events) if event.type == "Warning"]
    for text in (told, *(notes if _REJECTED in told else ())):  # anybody who may write events may write the notes
        if (found := found_by(CHECK_RULES, where, text, context, own=text is told)) is not None:
            return found
    found_owner = owner(workload)
    if _REJECTED not in told or found_owner is None:
        return None
    return _by_the_job(found_owner, job, where, told, context)


def _by_the_job(behind: Owner, job: Json | None, where: str, told: str, context: Mapping[str, str]) -> Finding:
    """What the job itself tells, once events are gone: servers keep them for an hour."""
    row = next((kind for kind in AVAILABLE if kind.resource.gvk == behind.gvk), None)
    refusal = row.not_delegated(job, CONTROLLER_NAME) if row is not None and job is not None else None
    if refusal is not None:
        why = f"the job does not say that MultiKueue runs it: {refusal}"
        remedy = "create it again with that value, or enable the daemon's webhook, which fills it in"
        return Finding("not-delegated", where, why, told, remedy)
    why = f'its check was rejected; as a rule because the daemon\'s settings do not name kind "{behind.gvk}"'
    begin = "{setting} in the daemon's settings if it is not there, restart it, and then "
    remedy = filled(begin + "multikueue retry {job} -n {namespace}", {**context, "setting": setting_for(behind.gvk)})
    return Finding("kind-not-enabled", where, why, told, remedy)
